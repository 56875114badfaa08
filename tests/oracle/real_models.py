#!/usr/bin/env python3
"""Published models, in transformers and here, with the same weights. As a program, prints a table:

    build/venv-hf/bin/python tests/oracle/real_models.py                     all that `make models` has made
    build/venv-hf/bin/python tests/oracle/real_models.py smollm2-135m-q4 --tokens 8192 --exact 512

    exact     `ml_run --exact` against transformers in float32: the largest difference of a logit over all positions of
              a text, and at how many positions the likeliest token differs
    here      perplexity of the production mode, in which activations are quantized, on a longer text
    float32   the same of transformers, whose activations are not

Weights of the .mlb file are put into transformers, so that what is compared is arithmetic and not quantization. The
config comes from the GGUF file that the package was made from. Takes minutes; `make test` runs only the exact part.
"""

from __future__ import annotations

import argparse
import json
import math
import pydoc_data.topics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # when run as a program; pytest has it already

import torch  # noqa: E402
from gguf_map import config_of  # noqa: E402
from gguf_reader import open_gguf  # noqa: E402
from hf_map import plan, restore  # noqa: E402
from mlb import read_model  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel  # noqa: E402

MODELS = ROOT / "build" / "models"
PROGRAM = ROOT / "build" / "native" / "ml_run"
CONTEXT = 512
ROWS = 32  # of logits at a time: a vocabulary of 262144 takes a megabyte each
TEXT = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))  # Python's own manual


def packages() -> list[str]:
    """Those that were made from a GGUF file which is still there."""
    return sorted(path.parent.name for path in MODELS.glob("*/model.json") if gguf_of(path.parent.name).is_file())


def gguf_of(package: str) -> Path:
    return MODELS / f"{package.rpartition('-')[0]}.gguf"


def ml_run(*options: str | Path) -> str:
    """Standard output of the engine's program. It has two threads and as long as it takes."""
    result = subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"ml_run: exit code {result.returncode}\n{result.stderr}")
    return result.stdout


def text_tokens(package: str, count: int, skip: int = 0) -> list[int]:
    """The first `count` tokens of the manual, with the tokenizer's BOS; the characters `skip` of it are left out."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(TEXT[skip : skip + 12 * count])
        file.flush()
        printed = ml_run("--tokenizer", MODELS / package / "tokenizer.mlt", "--tokenize", file.name, "--quiet")
    ids = [int(word) for word in printed.replace(",", " ").split()]
    assert len(ids) >= count, f"the text has only {len(ids)} tokens"
    return ids[:count]


def reference_model(package: str) -> PreTrainedModel:
    """transformers' model in float32 with the package's weights, decoded."""
    config = {key: value for key, value in config_of(open_gguf(gguf_of(package))).items() if value is not None}
    mlb = read_model(MODELS / package / "model.mlb")
    options = {key: value for key, value in config.items() if key != "model_type"}
    hf_config = AutoConfig.for_model(config["model_type"], **options)
    model = AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager", dtype=torch.float32)
    model.eval()
    sources = plan(mlb.header, mlb.layer_flags, config["model_type"], hidden_dim=config["intermediate_size"])
    tensors = restore(sources, {name: mlb.array(name) for name in sources})
    state = {name: torch.from_numpy(values) for name, values in tensors.items()}
    if mlb.header.shared_classifier:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


# ---------------------------------------------------------------- logits


@dataclass
class Difference:
    """Of the logits at all positions of a text."""

    largest: float
    spread: float  # standard deviation of the reference's logits, for scale
    other_choices: int  # positions whose likeliest token differs
    positions: int


def compare_exact(package: str, model: PreTrainedModel, tokens: list[int]) -> Difference:
    with tempfile.TemporaryDirectory(dir=MODELS) as folder:
        out = Path(folder) / "logits.npy"
        ids = " ".join(map(str, tokens))
        (Path(folder) / "text.ids").write_text(ids)
        options = ["--exact", "--threads", "2", "--ctx", str(len(tokens)), "--quiet"]
        ml_run("-m", MODELS / package / "model.mlb", "--ids", Path(folder) / "text.ids", "--logits", out, *options)
        ours = np.load(out, mmap_mode="r")
        with torch.no_grad():
            hidden = model.model(torch.tensor([tokens]), use_cache=False).last_hidden_state[0]
            theirs = (final_logits(model, hidden[at : at + ROWS]) for at in range(0, len(tokens), ROWS))
            return difference(ours, theirs)


def final_logits(model: PreTrainedModel, hidden: torch.Tensor) -> np.ndarray:
    """What the model's own forward() makes of the last hidden states, a few positions at a time."""
    logits = model.lm_head(hidden)
    cap = getattr(model.config, "final_logit_softcapping", None)
    return (torch.tanh(logits / cap) * cap if cap else logits).numpy()


def difference(ours: np.ndarray, theirs_in_parts) -> Difference:
    largest, squares, other, at = 0.0, 0.0, 0, 0
    for theirs in theirs_in_parts:
        part = ours[at : at + len(theirs)]
        if part.shape != theirs.shape or not np.isfinite(part).all():
            raise ValueError(f"logits of shape {part.shape}, {theirs.shape} expected, all finite")
        largest = max(largest, float(np.abs(part - theirs).max()))
        squares += float(theirs.std(axis=1).mean()) * len(theirs)
        other += int((part.argmax(axis=1) != theirs.argmax(axis=1)).sum())
        at += len(theirs)
    if at == 0 or at != len(ours):
        raise ValueError(f"{at} positions compared of {len(ours)}")
    return Difference(largest, squares / at, other, at)


# ---------------------------------------------------------------- perplexity


def perplexity_here(package: str, tokens: list[int]) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
        file.write(" ".join(map(str, tokens)))
        file.flush()
        options = ["--perplexity", "--ctx", str(CONTEXT), "--threads", "2", "--json", "--quiet"]
        printed = ml_run("-m", MODELS / package / "model.mlb", "--ids", file.name, *options)
    return json.loads(printed)["perplexity"]


def perplexity_reference(model: PreTrainedModel, tokens: list[int]) -> float:
    """In windows like those of ml_run: no token of one is context in the next, the first of each is not scored."""
    total, scored = 0.0, 0
    with torch.no_grad():
        for begin in range(0, len(tokens), CONTEXT):
            window = tokens[begin : begin + CONTEXT]
            hidden = model.model(torch.tensor([window]), use_cache=False).last_hidden_state[0]
            for at in range(0, len(window) - 1, ROWS):
                targets = torch.tensor(window[at + 1 : at + 1 + ROWS])
                logits = torch.from_numpy(final_logits(model, hidden[at : at + len(targets)]))
                total += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
                scored += len(targets)
    return math.exp(total / scored)


# ---------------------------------------------------------------- table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", metavar="PACKAGE", nargs="*", help="folders of build/models; default: all")
    parser.add_argument("--exact", type=int, default=512, metavar="N", help="tokens of the exact part; 0: leave it out")
    parser.add_argument("--tokens", type=int, default=8192, metavar="N", help="for perplexity; 0: leave it out")
    options = parser.parse_args()
    print(f"{'package':<20} {'max |d|':>9} {'logit sd':>9} {'choices':>9} {'here':>10} {'float32':>10} {'change':>8}")
    for package in options.packages or packages():
        model = reference_model(package)
        row = f"{package:<20}"
        if options.exact:
            found = compare_exact(package, model, text_tokens(package, options.exact))
            row += f" {found.largest:9.2e} {found.spread:9.3f} {found.other_choices:>4}/{found.positions:<4}"
        else:
            row += f" {'-':>9} {'-':>9} {'-':>9}"
        if options.tokens:
            tokens = text_tokens(package, options.tokens, skip=20000)
            here, reference = perplexity_here(package, tokens), perplexity_reference(model, tokens)
            row += f" {here:10.4f} {reference:10.4f} {100 * (here / reference - 1):+7.3f}%"
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
