"""The command line of tinyloop.py: inspect, verify, export, upgrade, tiny."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np

from tinyloop import (
    Codes,
    Header,
    Model,
    QuantizeError,
    TinyLoopError,
    random_weights,
    read_model,
    tensors,
    write_model,
    write_weights,
)
from tinyloop_layout import E_IO, MAX_SEQ
from tinyloop_reference import logits

DESCRIPTION = """Looks at .tinyloop model files and writes them.

Exit status: 0 fine, 1 a bad file or weights that do not fit the format, 2 a wrong command line."""

EXACT_TOLERANCE = 1e-4  # of max(1, |logit|)


class CommandError(Exception):
    """One line for stderr."""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit status; a failure is one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        return 0
    except TinyLoopError as error:
        print(f"{options.file}: {error.status}: {error}", file=sys.stderr)
    except (CommandError, QuantizeError) as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:  # `inspect | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"{error.filename or 'tinyloop.py'}: {error.strerror or error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyloop.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    inspect = commands.add_parser("inspect", help="header, sizes, tensors", description="Prints a file, fit for diff.")
    inspect.add_argument("file", metavar="FILE", type=Path)
    inspect.add_argument("--hash", action="store_true", help="add the first half-dozen bytes of each tensor's SHA-256")
    _add_foreign(inspect)
    inspect.set_defaults(run=_inspect)

    verify = commands.add_parser(
        "verify",
        help="every check of the loader, and the engine's logits",
        description="Reads the file with every check, and compares the logits of `ml_run --exact` with a float64 "
        "reference in numpy, position by position.",
    )
    verify.add_argument("file", metavar="FILE", type=Path)
    verify.add_argument("--ml-run", type=Path, metavar="PROGRAM", help="default: build/native/ml_run, if it is there")
    verify.add_argument("--loops", type=int, metavar="N", help="default: the file's")
    verify.add_argument("--positions", type=int, default=32, metavar="N", help="length of the prompt (32)")
    verify.set_defaults(run=_verify)

    export = commands.add_parser(
        "export",
        help="a torch checkpoint, quantized",
        description='Writes torch.save({"config": ..., "model": state_dict}) of tinyloop_torch.py. Needs torch.',
    )
    export.add_argument("file", metavar="CHECKPOINT", type=Path)
    export.add_argument("-o", "--output", metavar="FILE", type=Path, required=True)
    _add_header_options(export, ("version", "default_loops", "bits", "group_size"))
    export.set_defaults(run=_export)

    upgrade = commands.add_parser(
        "upgrade",
        help="write an older file as version 3",
        description="Same weights, with bits and group size in the header; --bits and --group-size say what the old "
        "file means where it is silent.",
    )
    upgrade.add_argument("file", metavar="FILE", type=Path)
    upgrade.add_argument("-o", "--output", metavar="FILE", type=Path, required=True)
    _add_foreign(upgrade)
    upgrade.set_defaults(run=_upgrade)

    tiny = commands.add_parser("tiny", help="write a small random model")
    tiny.add_argument("-o", "--output", dest="file", metavar="FILE", type=Path, required=True)
    tiny.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    _add_header_options(tiny, tuple(field.name for field in fields(Header)))
    tiny.set_defaults(run=_tiny)
    return parser


def _add_foreign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bits", type=int, metavar="N", help="of a version 1 file (default: 4)")
    parser.add_argument("--group-size", type=int, metavar="N", help="of a version 1 or 2 file (default: 32)")


def _add_header_options(parser: argparse.ArgumentParser, names: tuple[str, ...]) -> None:
    for name in names:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help="header field")


def _given(options: argparse.Namespace) -> dict[str, int]:
    names = (field.name for field in fields(Header))
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


# ---------------------------------------------------------------- inspect


def memory_bytes(header: Header) -> dict[str, int]:
    """What the engine keeps: weights in its layout (rows in groups of 16, a float scale for 32 weights), and the float
    keys and values of one position."""
    weights = 0
    for tensor in tensors(header):
        rows = -(-tensor.rows // 16) * 16
        if tensor.kind == "f32":
            weights += tensor.cols * 4
        elif tensor.kind == "f16":
            weights += rows * tensor.cols * 2
        else:
            weights += rows * tensor.cols * header.bits // 8 + rows * (tensor.cols // 32) * 4
    depth = header.n_pre_blocks + header.default_loops
    return {"weights": weights, "kv_per_position": depth * 2 * header.dim * 4}


def _inspect(options: argparse.Namespace) -> None:
    model = read_model(options.file, options.bits, options.group_size)
    for name, value in asdict(model.header).items():
        print(name, value)
    print("head_dim", model.header.head_dim)
    print("depth", model.header.n_pre_blocks + model.header.default_loops)
    print("max_seq", MAX_SEQ)
    print("parameters", model.n_parameters)
    print("file_size", len(model.data))
    for name, size in memory_bytes(model.header).items():
        print(f"memory.{name}", size)
    for tensor, offset in model.offsets.values():
        kind = f"int{model.header.bits}" if tensor.kind == "quantized" else tensor.kind
        shape = "x".join(map(str, tensor.shape))
        line = f"{tensor.name} {kind} {shape} offset {offset} size {tensor.size(model.header)}"
        if options.hash:
            line += " sha256 " + hashlib.sha256(model.stored(tensor.name)).hexdigest()[:12]
        print(line)


# ---------------------------------------------------------------- verify


def engine_logits(program: Path, model: Path, ids: list[int], *arguments: str) -> np.ndarray:
    """ml_run --logits of all positions."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "logits.npy"
        command = [program, "-m", model, "--ids", ",".join(map(str, ids)), "--logits", out, "--quiet", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise CommandError(result.stderr.strip())
        return np.load(out)


def _check_finite(model: Model) -> None:
    for name in model.offsets:
        value = model.raw(name)
        if not np.isfinite(value.d if isinstance(value, Codes) else value).all():
            raise CommandError(f"{name} holds a value that is NaN or infinite")


def _verify(options: argparse.Namespace) -> None:
    model = read_model(options.file)
    _check_finite(model)
    print(f"{options.file}: {len(model.data)} bytes, {model.n_parameters} parameters, well formed")
    program = options.ml_run or Path(__file__).parent.parent / "build/native/ml_run"
    if not program.exists():
        if options.ml_run:
            raise TinyLoopError(E_IO, f"there is no program {program}")
        print("logits not compared: build/native/ml_run is missing (make native)")
        return
    vocab = model.header.vocab_size
    ids = np.random.default_rng(0).integers(0, vocab, options.positions).tolist()
    reference = logits(model.header, model.weights(), ids, options.loops)
    loops = ["--loops", str(options.loops)] if options.loops else []
    exact = engine_logits(program, options.file, ids, "--exact", *loops)
    difference = float((np.abs(exact - reference) / np.maximum(1, np.abs(reference))).max())
    normal = engine_logits(program, options.file, ids, *loops).astype(np.float64)
    cosine = (normal * reference).sum(axis=1) / (np.linalg.norm(normal, axis=1) * np.linalg.norm(reference, axis=1))
    print(f"exact mode: largest difference {difference:.3g} at {len(ids)} positions")
    print(f"normal mode: least cosine {cosine.min():.6f}")
    if not difference <= EXACT_TOLERANCE:
        raise CommandError(f"{options.file}: the engine's exact logits differ by {difference:.3g}")


# ---------------------------------------------------------------- export, upgrade, tiny


def _export(options: argparse.Namespace) -> None:
    import torch

    checkpoint = torch.load(options.file, map_location="cpu", weights_only=True)
    if not isinstance(checkpoint, dict) or not {"config", "model"} <= checkpoint.keys():
        raise CommandError(f"{options.file}: no checkpoint with config and model")
    header = replace(Header(**checkpoint["config"]), **_given(options))
    weights = {name: tensor.float().numpy() for name, tensor in checkpoint["model"].items()}
    if missing := [tensor.name for tensor in tensors(header) if tensor.name not in weights]:
        raise CommandError(f"{options.file}: the checkpoint lacks {missing[0]}")
    write_weights(options.output, header, weights)
    print(f"{options.output}: {options.output.stat().st_size} bytes")


def _upgrade(options: argparse.Namespace) -> None:
    model = read_model(options.file, options.bits, options.group_size)
    write_model(options.output, replace(model.header, version=3), lambda tensor: model.raw(tensor.name))


TINY = Header(
    version=3,
    dim=64,
    n_heads=4,
    ffn_dim=96,
    vocab_size=101,
    embed_factor_dim=32,
    n_pre_blocks=1,
    default_loops=3,
    bits=4,
    group_size=32,
)


def _tiny(options: argparse.Namespace) -> None:
    header = replace(TINY, **_given(options))
    write_weights(options.file, header, random_weights(header, options.seed))
