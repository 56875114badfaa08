#!/usr/bin/env python3
"""Measures what tools/train_tiny.py has trained, on held-out stories: what rounding costs, and what loops buy.

    build/venv-hf/bin/python tools/evaluate_tiny.py build/train/stories
    build/venv-hf/bin/python tools/evaluate_tiny.py build/train/stories-loop --stories build/stories

Perplexity is per token, over every token of a story but its first, the end included. "Again" is the part of the rare
tokens which a story has held before, above all its names, that are the model's first choice. The tables are float32
arithmetic on weights as they are, and as a file would hold them. With --package, ml_run (make native) reads that
package's model and scores the first stories too, so that its rounding of activations is measured as well.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from checkpoint_errors import CheckpointError
from pack_tiny import load_run
from quant import quantize_q8_0
from story_tokens import encode, read_stories
from train_tiny import LOOPS, held_out_loss, rare_ids, repeats_right

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "native" / "ml_run"
ENGINE_STORIES = 40


def q8_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The matrices as a Q8_0 file with float16 scales gives them back, the vectors as they are."""
    return {
        name: torch.from_numpy(quantize_q8_0(tensor.numpy(), scale_f16=True).dequantize())
        if tensor.dim() == 2
        else tensor
        for name, tensor in model.state_dict().items()
    }


def llama_table(model: Any, stories: list, rare: torch.Tensor) -> list[tuple[str, float, float]]:
    """What the weights are, their loss, and what is right again."""
    plain = ("float32", held_out_loss(model, stories), repeats_right(model, stories, rare))
    model.load_state_dict(q8_weights(model))
    return [plain, ("Q8_0", held_out_loss(model, stories), repeats_right(model, stories, rare))]


def loop_table(model: Any, stories: list, rare: torch.Tensor) -> dict[int, dict[str, float]]:
    """Losses by loops and by bits, and what is right again in INT4."""
    table: dict[int, dict[str, float]] = {}
    for loops in LOOPS:
        row = table[loops] = {}
        for name, bits in (("float32", None), ("INT4", 4), ("INT2", 2)):
            model.quantized = bits is not None
            if bits:
                model.header = replace(model.header, bits=bits)
            row[name] = held_out_loss(model, stories, loops)
            if name == "INT4":
                row["again"] = repeats_right(model, stories, rare, loops)
    return table


def engine_loss(package: Path, stories: list) -> float:
    """Mean per token, as ml_run computes it."""
    model = next(path for path in sorted(package.iterdir()) if path.suffix in (".mlb", ".tinyloop"))
    total = count = 0.0
    for ids in stories:
        listed = ",".join(map(str, ids))
        command = [PROGRAM, "-m", model, "--ids", listed, "--perplexity", "--json", "--quiet"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        total += math.log(found["perplexity"]) * found["scored_ids"]
        count += found["scored_ids"]
    return total / count


def report_engine(package: Path, model: torch.nn.Module, stories: list) -> None:
    plain, engine = held_out_loss(model, stories), engine_loss(package, stories)
    change = f"{math.expm1(engine - plain):+.2%} to float32"
    print(f"ml_run on the first {len(stories)} stories: perplexity {math.exp(engine):.4f}, {change}\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="evaluate_tiny.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="--out of train_tiny.py")
    parser.add_argument("--stories", type=Path, default=Path("build/stories"), metavar="DIR", help="of make_stories.py")
    parser.add_argument("--count", type=int, default=400, metavar="N", help="held-out stories; default 400")
    parser.add_argument("--package", type=Path, metavar="DIR", help="measure ml_run with this package too")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        recipe, model = load_run(options.run)
        texts = read_stories(options.stories / "held-out.txt")[: options.count]
    except (CheckpointError, OSError) as error:
        print(f"evaluate_tiny.py: {error}", file=sys.stderr)
        return 1
    tokenizer = Tokenizer.from_file(str(options.run / "tokenizer.json"))
    stories = encode(tokenizer, texts, recipe.longest)
    print(f"{len(stories)} held-out stories, {sum(map(len, stories))} tokens\n")
    if options.package:
        report_engine(options.package, model, stories[:ENGINE_STORIES])
    rare = rare_ids(stories, recipe.vocab)
    if recipe.kind == "stories":
        rows = llama_table(model, stories, rare)
        print("| weights | loss | perplexity | to float32 | again |\n|---|---|---|---|---|")
        for name, loss, again in rows:
            change = f"{math.expm1(loss - rows[0][1]):+.2%}"
            print(f"| {name} | {loss:.4f} | {math.exp(loss):.4f} | {change} | {again:.1%} |")
        return 0
    print("| loops | float32 | INT4 | to float32 | again | INT2 |\n|---|---|---|---|---|---|")
    for loops, row in loop_table(model, stories, rare).items():
        plain, int4, int2 = (math.exp(row[name]) for name in ("float32", "INT4", "INT2"))
        change = f"{int4 / plain - 1:+.2%}"
        print(f"| {loops} | {plain:.3f} | {int4:.3f} | {change} | {row['again']:.1%} | {int2:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
