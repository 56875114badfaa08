#!/usr/bin/env python3
"""Measures a TinyLoop model beside plain models of as many parameters, and of as many multiplications per id.

    make native
    python3 tools/compare_loop.py examples/models/stories-loop/model.tinyloop
    python3 tools/compare_loop.py MODEL.tinyloop --loops 8 --rounds 20 --isa avx2

Writes two Llama shapes with random weights (seeded, Q4_0 with float16 scales, the classifier shared with the embedding)
of the model's width, heads and vocabulary: one with as many parameters, one that multiplies as often for an id as the
model with its loops. Then `ml_run --bench` measures all three in turn, ROUNDS times, on one thread; the table has the
fastest of each, since what disturbs a measurement only makes it slower. Random weights are as fast as trained ones.
Memory is that of the weights and of a session for 192 positions; the files come from the system's cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tinyloop
from mlb import Q4_0, write_model
from tiny import make_tiny
from tinyloop_layout import Header, TinyLoopError

ROOT = Path(__file__).resolve().parent.parent
STEP = 32  # feed-forward widths are multiples of it
MOST_LAYERS = 64


class Shape(NamedTuple):
    """A Llama of the looped model's width, with grouped queries left out."""

    n_layers: int
    ffn_dim: int


class Subject(NamedTuple):
    """One row of the table."""

    name: str
    file: Path
    parameters: int
    products: int  # multiplications of weights for one id
    options: tuple[str, ...] = ()


def block_weights(dim: int, ffn_dim: int) -> int:
    """Of the matrices of a block, in either family."""
    return 4 * dim * dim + 3 * dim * ffn_dim


def loop_counts(header: Header, loops: int) -> tuple[int, int]:
    """Parameters, and products of an id with so many loops. A row of the embedding is looked up, not multiplied."""
    h = header
    block, norms = block_weights(h.dim, h.ffn_dim), (2 * h.n_blocks + 1) * h.dim
    factor = h.embed_factor_dim
    table = h.vocab_size * (factor or h.dim)
    parameters = h.n_blocks * block + norms + 2 * table + 2 * factor * h.dim
    return parameters, (h.n_pre_blocks + loops) * block + 2 * factor * h.dim + table


def llama_counts(header: Header, shape: Shape) -> tuple[int, int]:
    """The same of a Llama; the classifier is the embedding, so its table counts once in both."""
    matrices = shape.n_layers * block_weights(header.dim, shape.ffn_dim) + header.vocab_size * header.dim
    return matrices + (2 * shape.n_layers + 1) * header.dim, matrices


def nearest(header: Header, wanted: int, counted: Callable[[Shape], int]) -> Shape:
    """The shape that comes nearest to a count, its feed-forward about as wide as the looped model's."""
    widths = range(max(STEP, header.ffn_dim - 3 * STEP), header.ffn_dim + 3 * STEP + 1, STEP)
    shapes = [Shape(n_layers, width) for n_layers in range(1, MOST_LAYERS + 1) for width in widths]
    return min(shapes, key=lambda shape: (abs(counted(shape) - wanted), abs(shape.ffn_dim - header.ffn_dim)))


def write_llama(path: Path, header: Header, shape: Shape) -> None:
    changes = {
        "dim": header.dim,
        "n_layers": shape.n_layers,
        "n_heads": header.n_heads,
        "n_kv_heads": header.n_heads,
        "hidden_dim": shape.ffn_dim,
        "vocab": header.vocab_size,
        "wtype": Q4_0,
        "scale_f16": 1,
    }
    write_model(path, *make_tiny("llama", 1, **changes))


def subjects(model: Path, header: Header, loops: int, folder: Path) -> list[Subject]:
    """The looped model and its peers, which are written to `folder`."""
    parameters, products = loop_counts(header, loops)
    found = [Subject(f"looped, loops: {loops}", model, parameters, products, ("--loops", str(loops)))]
    for name, which, wanted in (("as many parameters", 0, parameters), ("as many products", 1, products)):
        shape = nearest(header, wanted, lambda shape, which=which: llama_counts(header, shape)[which])
        path = folder / f"{name.replace(' ', '-')}.mlb"
        write_llama(path, header, shape)
        title = f"{name}: {shape.n_layers} layers, ffn {shape.ffn_dim}"
        found.append(Subject(title, path, *llama_counts(header, shape)))
    return found


def measure(program: Path, subject: Subject, options: list[str]) -> dict[str, float]:
    command = [program, "-m", subject.file, "--bench", "--json", "--quiet", *subject.options, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(found: list[Subject], rounds: list[list[dict[str, float]]]) -> str:
    """Markdown; rounds[r][i] is a measurement of found[i]."""
    titles = ("model", "parameters", "products", "file, MB", "memory, MB", "load, ms", "prompt", "one by one")
    rows = [titles, ("---",) * len(titles)]
    for i, subject in enumerate(found):
        all_of_it = [row[i] for row in rounds]
        best = {name: max(one[f"{name}_per_second_max"] for one in all_of_it) for name in ("prompt", "generated")}
        rows.append(
            (
                subject.name,
                f"{subject.parameters:,}",
                f"{subject.products:,}",
                f"{subject.file.stat().st_size / 1e6:.2f}",
                f"{(all_of_it[0]['weight_bytes'] + all_of_it[0]['session_bytes']) / 1e6:.2f}",
                f"{min(one['load_seconds'] for one in all_of_it) * 1e3:.1f}",
                f"{best['prompt']:,.0f}",
                f"{best['generated']:,.0f}",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="compare_loop.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", type=Path, help="a .tinyloop file")
    parser.add_argument("--loops", type=int, metavar="N", help="default: as the file says")
    parser.add_argument("--rounds", type=int, default=8, metavar="N", help="measurements of each model; default 8")
    parser.add_argument("--isa", metavar="NAME", help="kernels, of `ml_run --isa list`; default: the best")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "loop", metavar="DIR", help="for models")
    parser.add_argument("--ml-run", type=Path, default=ROOT / "build" / "native" / "ml_run", metavar="FILE")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: must be 1 or more")
    if options.loops is not None and not 1 <= options.loops <= 64:
        parser.error("--loops: must be 1 to 64")
    try:
        header = tinyloop.read_model(options.model).header
        options.out.mkdir(parents=True, exist_ok=True)
        found = subjects(options.model, header, options.loops or header.default_loops, options.out)
        how = ["--repeat", "5", "--threads", "1", *(["--isa", options.isa] if options.isa else [])]
        rounds = [[measure(options.ml_run, subject, how) for subject in found] for _ in range(options.rounds)]
    except TinyLoopError as error:
        print(f"compare_loop.py: {options.model}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"compare_loop.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"compare_loop.py: {error.stderr.strip()}", file=sys.stderr)
        return 1
    print(table(found, rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
