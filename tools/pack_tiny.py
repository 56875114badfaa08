#!/usr/bin/env python3
"""Makes a model package of what tools/train_tiny.py has trained: weights, tokenizer.mlt, model.json, loss.svg.

    build/venv-hf/bin/python tools/pack_tiny.py build/train/stories examples/models/stories
    build/venv-hf/bin/python tools/pack_tiny.py build/train/stories-loop examples/models/stories-loop

A Llama goes the way of every Hugging Face checkpoint: it is saved as one, in RUN/checkpoint, and converted to Q8_0. A
TinyLoop model is written as it was trained. OUT may hold such a package already, with its card, which stays.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

import convert
from checkpoint_errors import CheckpointError
from convert_tokenizer import convert_file
from mlt import write_tokenizer
from model_facts import facts_from_folder
from model_package import LOOP_MODEL, TOKENIZER, describe_loop, new_package, write_description
from tiny_llama import save_checkpoint
from tinyloop import write_weights
from train_tiny import Recipe, new_model

LICENSE = "cc0-1.0"
SOURCE = "krafla-web, tools/train_tiny.py"
SAMPLING = {"temperature": 0.6, "top_p": 0.9}
NAMES = {"stories": "Stories", "stories-loop": "Stories (TinyLoop)"}


def load_run(run: Path) -> tuple[Recipe, torch.nn.Module]:
    """The recipe and the trained model of a run. Raises CheckpointError, OSError."""
    path = run / "model.pt"
    if not path.exists():
        raise CheckpointError(f"{path} is not there: the training has not come to its end")
    state = torch.load(path, map_location="cpu", weights_only=True)
    recipe = Recipe(**state["recipe"])
    model = new_model(recipe)
    model.load_state_dict(state["model"])
    return recipe, model.eval()


def pack(run: Path, out: Path) -> None:
    """Raises CheckpointError, OSError, and what the converters raise."""
    recipe, model = load_run(run)
    folder = run / "checkpoint"
    folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    named = [*("--name", NAMES[recipe.kind]), *("--license", LICENSE), *("--source-note", SOURCE)]
    if recipe.kind == "stories":
        save_checkpoint(model, folder, SAMPLING)
        if convert.main([str(folder), str(out), "--wtype", "q8_0", "--force", "--quiet", *named]):
            raise CheckpointError(f"{folder} was not converted")
    else:
        _pack_loop(model, folder, out)
    (out / "loss.svg").write_text(loss_picture(run / "log.jsonl"))


def _pack_loop(model: Any, checkpoint: Path, out: Path) -> None:
    generation = {"do_sample": True} | SAMPLING
    (checkpoint / "generation_config.json").write_text(json.dumps(generation) + "\n")
    facts = facts_from_folder(checkpoint, {"eos_token_id": 1})
    facts.name, facts.license, facts.source = NAMES["stories-loop"], LICENSE, SOURCE
    tokenizer = convert_file(checkpoint).tokenizer
    weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    with new_package(out, replace=True) as folder:
        write_tokenizer(folder / TOKENIZER, tokenizer)
        write_weights(folder / LOOP_MODEL, model.header, weights)
        write_description(folder, describe_loop(folder, model.header, tokenizer, facts))


# ---------------------------------------------------------------- the loss as a picture

WIDTH, HEIGHT, LEFT, BOTTOM = 480, 240, 40, 30


def loss_picture(log: Path) -> str:
    """An SVG of the losses in a log, in training and held out, by tokens; the scale of the losses is logarithmic."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [row[name] for row in rows for name in ("loss", "held_out") if name in row]
    last, top, low = rows[-1]["tokens"], max(losses), min(losses)

    def at(tokens: float, loss: float) -> str:
        x = LEFT + (WIDTH - LEFT - 10) * tokens / last
        y = 10 + (HEIGHT - BOTTOM - 10) * math.log(top / loss) / math.log(top / low)
        return f"{x:.1f},{y:.1f}"

    ticks = [loss for loss in (0.25, 0.5, 1, 2, 4, 8) if low <= loss <= top]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for loss in ticks:
        y = at(0, loss).split(",")[1]
        parts.append(f'<path d="M{LEFT},{y}H{WIDTH - 10}" stroke="#ddd"/>')
        parts.append(f'<text x="8" y="{float(y) + 4:.1f}">{loss}</text>')
    middle = HEIGHT - 8
    parts.append(f'<text x="{LEFT}" y="{middle}">0</text>')
    parts.append(f'<text x="{WIDTH - 10}" y="{middle}" text-anchor="end">{last / 1e6:.1f} million tokens</text>')
    trained = " ".join(at(r["tokens"], r["loss"]) for r in rows)
    held_out = [at(r["tokens"], r["held_out"]).split(",") for r in rows if "held_out" in r]
    parts.append(f'<polyline points="{trained}" fill="none" stroke="#36c"/>')
    parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="#c33"/>' for x, y in held_out]
    parts.append(f'<text x="{WIDTH - 150}" y="24" fill="#36c">loss in training</text>')
    parts.append(f'<text x="{WIDTH - 150}" y="40" fill="#c33">● held-out loss</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="pack_tiny.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="--out of train_tiny.py")
    parser.add_argument("out", metavar="OUT", type=Path, help="the package")
    options = parser.parse_args(arguments)
    try:
        pack(options.run, options.out)
    except (CheckpointError, OSError, ValueError) as error:
        print(f"pack_tiny.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
