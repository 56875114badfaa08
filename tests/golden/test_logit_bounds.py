"""The bounds of oracle/logit_bounds.py: an answer that is right passes, answers that are a little wrong do not."""

import numpy as np
import pytest

from oracle.logit_bounds import (
    EXACT_TOLERANCE,
    SUMS_TOLERANCE,
    Mismatch,
    compare_emulated,
    compare_exact,
    compare_production,
    compare_sums,
)

RNG = np.random.default_rng(5)
LOGITS = 3 * RNG.standard_normal((48, 101))


def one_off(by: float) -> np.ndarray:
    """One logit wrong by so much of its tolerance."""
    wrong = LOGITS.copy()
    wrong[17, 40] += by * EXACT_TOLERANCE * max(1, abs(wrong[17, 40]))
    return wrong


def noisy(relative: float) -> np.ndarray:
    return LOGITS + relative * LOGITS.std() * RNG.standard_normal(LOGITS.shape)


def with_bad(value: float) -> np.ndarray:
    wrong = LOGITS.copy()
    wrong[3, 4] = value
    return wrong


WRONG = {
    "zeros": np.zeros_like(LOGITS),
    "one constant": np.full_like(LOGITS, LOGITS.mean()),
    "not a number": with_bad(np.nan),
    "infinite": with_bad(np.inf),
    "shifted by a position": np.roll(LOGITS, 1, axis=0),
    "shifted by a token": np.roll(LOGITS, 1, axis=1),
    "negated": -LOGITS,
    "one position short": LOGITS[:-1],
    "one position twice": np.concatenate([LOGITS[:1], LOGITS[:-1]]),
    "no positions": LOGITS[:0],
    "flat": LOGITS.reshape(-1),
}


@pytest.mark.parametrize("compare", [compare_exact, compare_production, compare_emulated])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_fail(compare, wrong):
    with pytest.raises(Mismatch):
        compare(WRONG[wrong], LOGITS)


def test_exact_accepts_rounding_and_nothing_more():
    assert compare_exact(LOGITS.astype(np.float32), LOGITS) < 1e-6
    assert compare_exact(one_off(0.9), LOGITS) == pytest.approx(0.9 * EXACT_TOLERANCE)
    with pytest.raises(Mismatch, match=r"position 17, token 40: .*; 1 of 4848 logits differ"):
        compare_exact(one_off(1.1), LOGITS)


def test_production_accepts_the_noise_of_8_bits_and_nothing_more():
    assert compare_production(noisy(0.02), LOGITS) > 0.999
    with pytest.raises(Mismatch, match="cosine"):
        compare_production(noisy(0.08), LOGITS)


def test_production_checks_the_favourites():
    wrong = LOGITS.copy()
    for position in range(0, 48, 4):  # the two most likely tokens swapped at every fourth position
        second, best = np.argsort(LOGITS[position])[-2:]
        wrong[position, [second, best]] = wrong[position, [best, second]]
    with pytest.raises(Mismatch, match="most likely"):
        compare_production(wrong, LOGITS)


def test_production_refuses_logits_without_favourites():
    flat = np.tile([[1.0, 1.0, 1.0, -1.0]], (48, 1))
    with pytest.raises(Mismatch, match="clear favourite"):
        compare_production(flat, flat)


def test_emulated_is_sharper_than_production():
    assert compare_emulated(noisy(1e-6), LOGITS) > 0.999999
    with pytest.raises(Mismatch, match="first 4 positions"):
        compare_emulated(noisy(1e-4), LOGITS)
    assert compare_emulated(noisy(1e-4), LOGITS, first=0) > 0.999999
    with pytest.raises(Mismatch, match="cosine"):
        compare_emulated(noisy(0.08), LOGITS, first=0)


def test_sums():
    sums = RNG.uniform(1, 9, 64)
    assert compare_sums(sums, sums, "x") == 0
    wrong = sums.copy()
    wrong[7] += 1.1 * SUMS_TOLERANCE * sums.max()
    for answer in (wrong, np.zeros(64), np.roll(sums, 1), sums * 1.001, sums[:-1]):
        with pytest.raises(Mismatch):
            compare_sums(answer, sums, "x")
