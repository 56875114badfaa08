"""Published models give the logits of transformers. Skipped where `make models` has not fetched them.

Perplexities, which take longer, are in the table that tests/oracle/real_models.py prints.
"""

import numpy as np
import pytest

from oracle import real_models

PACKAGES = {"smollm2-135m-q8": 512, "smollm2-135m-q4": 64, "gemma3-270m-q8": 64, "gemma3-270m-q4": 64}  # positions
TOLERANCE = 5e-3


@pytest.mark.parametrize("package", PACKAGES)
def test_exact_mode_agrees_with_transformers(package, ml_run):
    if package not in real_models.packages():
        pytest.skip("published models are not here: `make models` fetches them")
    tokens = real_models.text_tokens(package, PACKAGES[package])
    found = real_models.compare_exact(package, real_models.reference_model(package), tokens)
    assert found.positions == PACKAGES[package]
    assert found.largest < TOLERANCE
    assert found.other_choices == 0
    assert found.spread > 1  # logits that mean something


# ---------------------------------------------------------------- the comparison itself


def logits(positions=40):
    return np.random.default_rng(0).standard_normal((positions, 7)).astype(np.float32)


def parts(values):
    return (values[at : at + 16] for at in range(0, len(values), 16))


def test_comparison_finds_one_element_and_one_choice():
    theirs = logits()
    assert real_models.difference(theirs.astype(np.float64), parts(theirs)).largest == 0
    ours = theirs.astype(np.float64)
    ours[33, 2] += 0.25
    assert real_models.difference(ours, parts(theirs)).largest == pytest.approx(0.25)
    ours[5, ours[5].argmin()] = 9
    found = real_models.difference(ours, parts(theirs))
    assert found.other_choices == 1 and found.largest > 5
    assert real_models.difference(np.zeros_like(theirs), parts(theirs)).largest > 1


@pytest.mark.parametrize("ours", [logits(39), logits(41), logits()[:, :6], np.full((40, 7), np.nan), logits(0)])
def test_comparison_refuses_what_it_cannot_compare(ours):
    with pytest.raises(ValueError, match=r"logits of shape|positions compared"):
        real_models.difference(ours, parts(logits()))
