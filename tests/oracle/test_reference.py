"""The float64 reference of the format document against transformers in float64: they may differ by rounding only."""

import numpy as np
import pytest

from oracle.families import CASES
from oracle.hugging_face import config_of, load_mlb, logits, prompt, random_model, write_mlb
from oracle.reference import logits_of

SEED = 11
TOLERANCE = 1e-9  # of logits around 3; float32 anywhere on the way would give 1e-7 and more


@pytest.mark.parametrize("name", CASES)
def test_reference_is_transformers(name, tmp_path):
    case = CASES[name]
    config = config_of(case)
    model = random_model(config, SEED)
    mlb = write_mlb(model, config, case, tmp_path / "model.mlb")
    load_mlb(model, config, mlb)
    tokens = prompt(config, case.prompt, SEED)
    expected = logits(model, tokens)
    difference = np.abs(logits_of(mlb, tokens) - expected).max()
    print(f"{name}: largest difference {difference:.2g}, logits spread over {expected.std():.2g}")
    assert expected.std() > 0.5
    assert difference <= TOLERANCE
