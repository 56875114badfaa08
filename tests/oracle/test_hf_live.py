"""The engine against transformers on models made at random here and now: other weights and prompts each seed.

`make hf` runs it. ML_SEEDS=100-119 in the environment chooses other seeds.
"""

import os

import pytest

from oracle.engine import Engine
from oracle.families import CASES
from oracle.hugging_face import config_of, load_mlb, logits, prompt, random_model, write_mlb
from oracle.logit_bounds import compare_emulated, compare_exact
from oracle.reference import logits_of


def seeds():
    first, _, last = os.environ.get("ML_SEEDS", "21-23").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("name", CASES)
def test_live(ml_run, tmp_path, name, seed):
    case = CASES[name]
    config = config_of(case)
    model = random_model(config, seed)
    path = tmp_path / "model.mlb"
    mlb = write_mlb(model, config, case, path)
    load_mlb(model, config, mlb)
    tokens = prompt(config, case.prompt, seed)
    engine = Engine(ml_run)
    worst = compare_exact(engine.logits(path, tokens, "--exact"), logits(model, tokens))
    least = compare_emulated(engine.logits(path, tokens), logits_of(mlb, tokens, quantize_activations=True), first=0)
    print(f"{name}, seed {seed}: exact within {worst:.2g}, production cosine at least {least:.6f}")
