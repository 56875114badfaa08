#!/usr/bin/env python3
"""Trains the two small models of examples/models on stories, on a CPU.

    python3 tools/make_stories.py --count 160000 --out build/stories
    build/venv-hf/bin/python tools/train_tiny.py stories --out build/train/stories
    build/venv-hf/bin/python tools/train_tiny.py stories-loop --out build/train/stories-loop

`stories` is a Llama (tiny_llama.py), `stories-loop` a TinyLoop model (tinyloop_torch.py) that is trained with 1 to 8
loops, drawn anew for every batch, and in its second part with its weights rounded as the file will hold them.

OUT gets the tokenizer, checkpoint.pt now and then, log.jsonl (a line per report), and model.pt at the end. A run that
was stopped goes on from its checkpoint; with the same seed, options and torch the result is the same. Then
tools/pack_tiny.py makes a model package of OUT.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from muon import Muon
from story_tokens import (
    batches,
    encode,
    in_order,
    load_tokens,
    read_stories,
    save_tokenizer,
    save_tokens,
    train_tokenizer,
)
from tiny_llama import LlamaShape, TinyLlama
from tiny_start import begin_loop
from tinyloop_layout import Header
from tinyloop_torch import TinyLoop

LOOPS, LOOP_WEIGHTS = range(1, 9), (3, 3, 3, 3, 2, 2, 1, 1)  # how often each number of loops is drawn
RARE = 0.01  # of all tokens: the most that a rare one may have
HELD_OUT = 150  # stories for the reports during training


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; the defaults are those of `stories`."""

    kind: str = "stories"
    steps: int = 2600
    batch_tokens: int = 3072
    longest: int = 384  # ids of a story
    vocab: int = 1536
    matrix_rate: float = 0.02
    other_rate: float = 0.006
    warmup: int = 40
    decay: float = 0.6  # the part of the steps, at the end, in which the rates fall to 0
    quantized_from: float = 1.0  # the part of the steps before weights are rounded in training
    repeat_weight: float = 3.0  # see weights_of
    repeat_until: float = 0.636  # the part of the steps in which it counts; later all ids count the same
    seed: int = 1


RECIPES = {
    "stories": Recipe(),
    "stories-loop": Recipe(kind="stories-loop", steps=4400, quantized_from=0.4, repeat_until=0.8),
}


def new_model(recipe: Recipe) -> nn.Module:
    if recipe.kind == "stories":
        return TinyLlama(LlamaShape(vocab_size=recipe.vocab), recipe.seed)
    header = Header(
        version=3,
        dim=128,
        n_heads=4,
        ffn_dim=384,
        vocab_size=recipe.vocab,
        embed_factor_dim=64,
        n_pre_blocks=2,
        default_loops=4,
        bits=4,
        group_size=32,
    )
    model = TinyLoop(header, recipe.seed)
    begin_loop(model, recipe.seed)
    return model


def optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside, Adam for embeddings, factors and norms."""
    named = list(model.named_parameters())
    inside = [p for name, p in named if p.dim() == 2 and ("layers." in name or "blocks." in name)]
    others = [p for name, p in named if not any(p is q for q in inside)]
    return [
        Muon(inside, lr=recipe.matrix_rate),
        torch.optim.Adam(others, lr=recipe.other_rate, betas=(0.9, 0.95)),
    ]


def rate(step: int, recipe: Recipe) -> float:
    """The factor of the learning rates: up, level, and down to 0 in a straight line."""
    left = (recipe.steps - step) / (recipe.steps * recipe.decay)
    return min(1.0, (step + 1) / recipe.warmup, left)


def losses_of(model: nn.Module, batch: Tensor, *loops: int) -> Tensor:
    """Negative log-likelihoods of all ids but the first of each row, flat; 0 for -1, which is no id."""
    logits = model(batch[:, :-1].clamp(min=0), *loops)
    return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=-1, reduction="none")


def weights_of(batch: Tensor, rare: Tensor, weight: float) -> Tensor:
    """What each of losses_of counts: 1, `weight` for a rare id that the row has held before, 0 for no id.

    Who is who in a story is told by few of its tokens. Counted like all others they are learned last.
    """
    weights = 1 + (weight - 1) * repeated_of(batch, rare)[:, 1:]
    return (weights * (batch[:, 1:] >= 0)).flatten()


def repeated_of(batch: Tensor, rare: Tensor) -> Tensor:
    """Which ids of the rows are rare and have stood in their row before. rare: (vocab), for each id."""
    n = batch.shape[1]
    before = torch.ones(n, n, dtype=torch.bool).tril(-1)
    return ((batch[:, :, None] == batch[:, None, :]) & before).any(-1) & rare[batch.clamp(min=0)] & (batch >= 0)


def rare_ids(stories: list, vocab: int) -> Tensor:
    """For each id of a vocabulary whether it is rare in these stories."""
    counts = np.bincount(np.concatenate(stories), minlength=vocab)
    return torch.from_numpy(counts < RARE * counts.sum())


@torch.no_grad()
def held_out_loss(model: nn.Module, stories: list, *loops: int) -> float:
    """Mean per token over all the stories."""
    total, count = 0.0, 0
    for batch in in_order(stories, 8192):
        total += losses_of(model, torch.from_numpy(batch), *loops).sum().item()
        count += int((batch[:, 1:] >= 0).sum())
    return total / count


@torch.no_grad()
def repeats_right(model: nn.Module, stories: list, rare: Tensor, *loops: int) -> float:
    """Of all rare ids that a story has held before, such as names: the part that is the model's first choice."""
    right = count = 0
    for batch in map(torch.from_numpy, in_order(stories, 8192)):
        repeated = repeated_of(batch, rare)[:, 1:]
        chosen = model(batch[:, :-1].clamp(min=0), *loops).argmax(-1)
        right += int((repeated & (chosen == batch[:, 1:])).sum())
        count += int(repeated.sum())
    return right / count


def prepare(recipe: Recipe, stories: Path, out: Path) -> None:
    """Makes the tokenizer of a run, unless it has one, and tokens.npz: all stories as ids."""
    train, held_out = (read_stories(stories / name) for name in ("train.txt", "held-out.txt"))
    if not (out / "tokenizer.json").exists():
        save_tokenizer(train_tokenizer(train, recipe.vocab), out)
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    both = {"train": train, "held_out": held_out[:HELD_OUT]}
    save_tokens(out / "tokens.npz", {name: encode(tokenizer, texts, recipe.longest) for name, texts in both.items()})


class Training:
    """A run: its model, what it has learned from, and where it stands."""

    def __init__(self, recipe: Recipe, stories: Path, out: Path) -> None:
        self.recipe, self.out = recipe, out
        out.mkdir(parents=True, exist_ok=True)
        if not (out / "tokens.npz").exists():
            prepare(recipe, stories, out)
        self.train, self.held_out = load_tokens(out / "tokens.npz")
        if not self.train or not self.held_out:
            raise SystemExit(f"train_tiny.py: no story in {stories} has at most {recipe.longest} tokens")
        self.rare = rare_ids(self.train, recipe.vocab)
        self.model = new_model(recipe)
        self.optimizers = optimizers(self.model, recipe)
        self.step, self.tokens, self.seconds = 0, 0, 0.0

    def resume(self) -> None:
        path = self.out / "checkpoint.pt"
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        same = {**state["recipe"], "steps": 0} == {**asdict(self.recipe), "steps": 0}
        if not same:
            raise SystemExit(f"train_tiny.py: {path} is of another recipe; give another --out, or --restart")
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
        print(f"going on from step {self.step}", flush=True)

    def save(self, name: str = "checkpoint.pt") -> None:
        state = {
            "recipe": asdict(self.recipe),
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        temporary = self.out / f"{name}.tmp"
        torch.save(state, temporary)
        temporary.replace(self.out / name)

    def run(self, report_every: int = 20, evaluate_every: int = 200) -> None:
        recipe = self.recipe
        source = batches(self.train, recipe.batch_tokens, recipe.seed)
        for _ in range(self.step):
            next(source)
        began, gathered = time.monotonic() - self.seconds, []
        while self.step < recipe.steps:
            gathered.append(self.one_step(torch.from_numpy(next(source))))
            self.step += 1
            self.seconds = time.monotonic() - began
            last = self.step == recipe.steps
            if self.step % report_every == 0 or last:
                evaluate = self.step % evaluate_every == 0 or last
                self.report(sum(gathered) / len(gathered), evaluate)
                gathered = []
            if self.step % 100 == 0 or last:
                self.save()
        self.save("model.pt")

    def one_step(self, batch: Tensor) -> float:
        recipe = self.recipe
        loops: tuple[int, ...] = ()
        if recipe.kind == "stories-loop":
            loops = tuple(random.Random(f"{recipe.seed}:loops:{self.step}").choices(LOOPS, LOOP_WEIGHTS))
            self.model.quantized = self.step >= recipe.steps * recipe.quantized_from
        losses = losses_of(self.model, batch, *loops)
        early = self.step < recipe.steps * recipe.repeat_until
        weights = weights_of(batch, self.rare, recipe.repeat_weight if early else 1.0)
        ((losses * weights).sum() / weights.sum()).backward()
        n = int((batch[:, 1:] >= 0).sum())
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        factor = rate(self.step, recipe)
        for optimizer, full in zip(self.optimizers, (recipe.matrix_rate, recipe.other_rate), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = full * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.tokens += n
        if not math.isfinite(value := losses.sum().item() / n):
            raise SystemExit(f"train_tiny.py: the loss is {value} at step {self.step}")
        return value

    def report(self, loss: float, evaluate: bool) -> None:
        row = {"step": self.step, "tokens": self.tokens, "seconds": round(self.seconds, 1), "loss": round(loss, 4)}
        if evaluate:
            row["held_out"] = round(held_out_loss(self.model, self.held_out), 4)
        self.log(row)
        left = self.seconds / self.step * (self.recipe.steps - self.step) / 60
        held_out = f", held out {row['held_out']:.4f}" if evaluate else ""
        pace = f"{self.tokens / self.seconds:.0f} tokens/s, {left:.0f} min left"
        print(f"step {self.step}/{self.recipe.steps}, loss {loss:.4f}{held_out}, {pace}", flush=True)

    def log(self, row: dict[str, float]) -> None:
        """Adds a line to log.jsonl, in place of those of later steps, which a stopped run may have left."""
        path = self.out / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if json.loads(line)["step"] < row["step"]]
        path.write_text("".join(f"{line}\n" for line in [*kept, json.dumps(row)]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="train_tiny.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=RECIPES)
    parser.add_argument("--stories", type=Path, default=Path("build/stories"), metavar="DIR", help="of make_stories.py")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the run lives")
    parser.add_argument("--steps", type=int, metavar="N", help="batches to learn from")
    parser.add_argument("--batch-tokens", type=int, metavar="N", help="ids of a batch")
    parser.add_argument("--seed", type=int, metavar="S")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="default 1; the result depends on it")
    parser.add_argument("--restart", action="store_true", help="forget the checkpoint and the log in OUT")
    parser.add_argument("--prepare", action="store_true", help="make the tokenizer and encode the stories, no more")
    options = parser.parse_args(arguments)
    recipe = RECIPES[options.kind]
    for name in ("steps", "batch_tokens", "seed"):
        if (value := getattr(options, name)) is not None:
            recipe = replace(recipe, **{name: value})
    torch.set_num_threads(options.threads)
    if options.restart:
        for name in ("checkpoint.pt", "model.pt", "log.jsonl", "tokenizer.json", "tokens.npz"):
            (options.out / name).unlink(missing_ok=True)
    training = Training(recipe, options.stories, options.out)
    if options.prepare:
        return 0
    training.resume()
    n = sum(parameter.numel() for parameter in training.model.parameters())
    print(f"{n} parameters, {len(training.train)} stories, {sum(map(len, training.train))} tokens", flush=True)
    training.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
