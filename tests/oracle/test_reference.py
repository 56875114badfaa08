"""The float64 reference of the format document against transformers in float64: they may differ by rounding only."""

import numpy as np
import pytest
import torch

from oracle.families import CASES
from oracle.hugging_face import config_of, load_mlb, logits, prompt, random_model, write_mlb
from oracle.reference import logits_of

SEED = 11
TOLERANCE = 1e-9  # of logits around 3; float32 anywhere on the way would give 1e-7 and more


def make(name, folder):
    """A model on both sides, with the same weights, and a prompt."""
    case = CASES[name]
    config = config_of(case)
    model = random_model(config, SEED)
    mlb = write_mlb(model, config, case, folder / "model.mlb")
    load_mlb(model, config, mlb)
    return model, mlb, prompt(config, case.prompt, SEED)


@pytest.mark.parametrize("name", CASES)
def test_reference_is_transformers(name, tmp_path):
    model, mlb, tokens = make(name, tmp_path)
    expected = logits(model, tokens)
    difference = np.abs(logits_of(mlb, tokens) - expected).max()
    print(f"{name}: largest difference {difference:.2g}, logits spread over {expected.std():.2g}")
    assert expected.std() > 0.5
    assert difference <= TOLERANCE


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gemma3", "qwen3_5"])
def test_a_step_in_float32_would_show(name, tmp_path):
    """The same models as they come, with the steps that transformers takes in float32: more than the tolerance off."""
    model, mlb, tokens = make(name, tmp_path)
    with torch.no_grad():
        unlifted = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    assert 100 * TOLERANCE < np.abs(logits_of(mlb, tokens) - unlifted).max() < 1e-3
