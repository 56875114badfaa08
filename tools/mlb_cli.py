"""The command line of mlb.py: inspect, verify, diff, tiny."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tiny
from mlb import FIELD_OFFSETS, HEADER_SIZE, Header, MlbError, Model, TensorSpec, align, read_model, verify_model

DERIVED = ("head_size", "q_dim", "kv_dim", "rot_size", "lin_channels", "lin_value_dim")

DESCRIPTION = """Looks at .mlb model files and writes tiny ones.

Exit status: 0 fine, 1 a bad file (or, for diff, files that differ), 2 a wrong command line
(or, for diff, a file that cannot be read)."""


class CommandError(Exception):
    """One line for stderr, and the exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit status; a failure is one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.status
    except BrokenPipeError:  # `inspect | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"{error.filename or 'mlb.py'}: {error.strerror or error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlb.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    inspect = commands.add_parser(
        "inspect", help="header fields and tensors, one a line", description="Prints what a file holds, fit for diff."
    )
    inspect.add_argument("file", metavar="FILE", type=Path)
    inspect.add_argument("--hash", action="store_true", help="add the first half-dozen bytes of each tensor's SHA-256")
    inspect.set_defaults(run=_inspect)

    verify = commands.add_parser(
        "verify",
        help="every check of the loader",
        description="Prints ok, or the status and message of the first broken rule (exit status 1).",
    )
    verify.add_argument("files", metavar="FILE", type=Path, nargs="+")
    verify.set_defaults(run=_verify)

    diff = commands.add_parser(
        "diff",
        help="what differs between two files",
        description="Names differing header fields and tensors with their largest difference. "
        "Exit status 0: same content, 1: different, 2: a file cannot be read.",
    )
    diff.add_argument("a", metavar="A", type=Path)
    diff.add_argument("b", metavar="B", type=Path)
    diff.add_argument("--limit", type=int, default=10, metavar="N", help="tensors to name; 0: all (default: 10)")
    diff.set_defaults(run=_diff)

    make = commands.add_parser(
        "tiny",
        help="write a small random model of some feature",
        description="Writes a small model with random weights; the same feature and seed give the same bytes.",
    )
    make.add_argument("feature", metavar="FEATURE", nargs="?", help="one of those that --list names")
    make.add_argument("-o", "--output", metavar="FILE", type=Path)
    make.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    make.add_argument("--list", action="store_true", help="name the features and what they are")
    make.set_defaults(run=_tiny, parser=make)
    return parser


def _open(path: Path, reader: Callable[[Path], Model], status: int = 1) -> Model:
    try:
        return reader(path)
    except MlbError as error:
        raise CommandError(f"{path}: {error.status}: {error}", status) from None


# ---------------------------------------------------------------- inspect and verify


def _inspect(options: argparse.Namespace) -> int:
    try:
        model = read_model(options.file)
    except MlbError as error:
        _print_broken_header(options.file)
        raise CommandError(f"{options.file}: {error.status}: {error}") from None
    _print_header(model.header)
    for name in DERIVED:
        print(f"derived.{name} {getattr(model.header, name)}")
    last = model.spans()[-1]
    print(f"file_size {len(model.data)}")
    print(f"trailing_bytes {max(0, len(model.data) - align(last.offset + last.size))}")
    if model.layer_flags:
        print("flags", *model.layer_flags)
    for spec in model.tensors():
        print(_tensor_line(model, spec, options.hash))
    return 0


def _print_header(header: Header) -> None:
    for name in FIELD_OFFSETS:
        print(f"{name} {header.text(name)}")


def _print_broken_header(path: Path) -> None:
    """What can be told of a file that is refused: it may show why."""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(HEADER_SIZE)
        if len(start) == HEADER_SIZE:
            _print_header(Header.unpack(start))


def _tensor_line(model: Model, spec: TensorSpec, with_hash: bool) -> str:
    spans = model.spans_of(spec.name)
    shape = "x".join(str(n) for n in spec.shape)
    sizes = "+".join(str(span.size) for span in spans)
    line = f"{spec.name} {spec.kind} {shape} offset {spans[0].offset} bytes {sizes}"
    if with_hash:
        digest = hashlib.sha256()
        for span in spans:
            digest.update(model.stored(span))
        line += f" sha256 {digest.hexdigest()[:12]}"
    return line


def _verify(options: argparse.Namespace) -> int:
    failed = 0
    for path in options.files:
        try:
            model = _open(path, verify_model)
        except CommandError as error:
            print(error, file=sys.stderr)
            failed = 1
            continue
        print(f"{path}: ok")
        for note in _oddities(model):
            print(f"{path}: note: {note}")
    return failed


def _oddities(model: Model) -> list[str]:
    """What a loader accepts but a writer of ours would not have written."""
    notes = []
    spans = model.spans()
    end = spans[-1].offset + spans[-1].size
    if len(model.data) < align(end):
        notes.append(f"{align(end) - len(model.data)} bytes of padding after the last array are missing")
    if len(model.data) > align(end):
        notes.append(f"{len(model.data) - align(end)} trailing bytes")
    padding = sum(int(np.count_nonzero(model.data[s.offset + s.size : align(s.offset + s.size)])) for s in spans)
    if padding:
        notes.append(f"{padding} non-zero bytes of padding")
    non_finite = 0
    for span in spans:
        if span.part in ("f32", "d"):
            half = span.part == "d" and span.spec.scale_f16
            values = model.stored(span).view("<f2" if half else "<f4")
            non_finite += int(np.count_nonzero(~np.isfinite(values)))
    if non_finite:
        notes.append(f"{non_finite} non-finite weights and scales")
    return notes


# ---------------------------------------------------------------- diff


def _diff(options: argparse.Namespace) -> int:
    a, b = (_open(path, verify_model, status=2) for path in (options.a, options.b))
    lines = [
        f"{name}: {a.header.text(name)} and {b.header.text(name)}"
        for name in FIELD_OFFSETS
        if getattr(a.header, name) != getattr(b.header, name)
    ]
    for layer, (left, right) in enumerate(zip(a.layer_flags or b"", b.layer_flags or b"", strict=False)):
        if left != right:
            lines.append(f"layer_flags[{layer}]: {left} and {right}")
    tensors = _tensor_differences(a, b)
    shown = tensors[: options.limit or None]
    if len(shown) < len(tensors):
        shown.append(f"... and {len(tensors) - len(shown)} more tensors")
    for line in lines + shown:
        print(line)
    return 1 if lines or tensors else 0


def _tensor_differences(a: Model, b: Model) -> list[str]:
    lines = []
    others = {spec.name: spec for spec in b.tensors()}
    for spec in a.tensors():
        other = others.pop(spec.name, None)
        if other is None:
            lines.append(f"{spec.name}: only in the first file")
        elif spec.shape != other.shape:
            lines.append(f"{spec.name}: shape {spec.shape} and {other.shape}")
        elif line := _value_difference(a, b, spec, other):
            lines.append(line)
    return lines + [f"{name}: only in the second file" for name in others]


def _value_difference(a: Model, b: Model, spec: TensorSpec, other: TensorSpec) -> str | None:
    same_storage = (spec.kind, spec.scale_f16) == (other.kind, other.scale_f16)
    if same_storage and all(
        np.array_equal(a.stored(left), b.stored(right))
        for left, right in zip(a.spans_of(spec.name), b.spans_of(spec.name), strict=True)
    ):
        return None
    left, right = a.array(spec.name), b.array(spec.name)
    kinds = "" if same_storage else f"{spec.kind} and {other.kind}, " if spec.kind != other.kind else "scales, "
    if np.array_equal(left, right, equal_nan=True):
        return f"{spec.name}: {kinds}same values, stored differently"
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(left - right)
    distance[np.isnan(distance) & (np.isnan(left) != np.isnan(right))] = np.inf
    where = np.unravel_index(int(np.nanargmax(distance)), distance.shape)
    place = ", ".join(str(int(i)) for i in where)
    return (
        f"{spec.name}: {kinds}max abs difference {distance[where]:.6g} at [{place}]: {left[where]} and {right[where]}"
    )


# ---------------------------------------------------------------- tiny


def _tiny(options: argparse.Namespace) -> int:
    if options.list:
        for name, feature in tiny.FEATURES.items():
            print(f"{name:<16} {feature.__doc__}")
        return 0
    if options.feature is None or options.output is None:
        options.parser.error("FEATURE and -o FILE are needed (or --list)")
    if options.feature not in tiny.FEATURES:
        raise CommandError(f"mlb.py: unknown feature {options.feature}; `mlb.py tiny --list` names them", 2)
    if options.seed < 0:
        options.parser.error("argument --seed: must not be negative")
    tiny.write_tiny(options.output, options.feature, options.seed)
    return 0
