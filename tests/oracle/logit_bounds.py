"""How close two sets of logits have to be, in one place. golden/test_logit_bounds.py shows that each bound can fail.

Every function takes (positions, vocab) arrays, raises Mismatch when they do not agree and returns what it measured.
"""

from __future__ import annotations

import numpy as np

EXACT_TOLERANCE = 1e-4  # times max(1, |logit|), every logit of every position
WHOLE_COSINE = 0.999  # production mode against exact logits, over the whole prompt
SAME_TOP = 0.95  # of the positions: the same most likely token
DECIDED = 0.25  # of the logits' standard deviation: a lead that 8-bit activations do not overturn
POSITION_COSINE = 0.999  # production mode against the same arithmetic in float64, each position
ROUNDING = 1e-5  # of the logits' standard deviation: production mode while no activation took another quant
FIRST = 4  # positions in which none may
SUMS_TOLERANCE = 1e-4  # of each sum of squares, relative to the largest of its vector


class Mismatch(AssertionError):
    """The answer is not the expected one. The message says where and by how much."""


def compare_exact(actual: np.ndarray, expected: np.ndarray) -> float:
    """The engine's exact mode: every logit. Returns the largest difference over max(1, |logit|)."""
    _comparable(actual, expected)
    scaled = np.abs(actual - expected) / np.maximum(1, np.abs(expected))
    worst = np.unravel_index(np.argmax(scaled), scaled.shape)
    if not scaled[worst] <= EXACT_TOLERANCE:
        raise Mismatch(
            f"position {worst[0]}, token {worst[1]}: {actual[worst]:.8g} instead of {expected[worst]:.8g}; "
            f"{np.count_nonzero(scaled > EXACT_TOLERANCE)} of {scaled.size} logits differ"
        )
    return float(scaled[worst])


def compare_production(actual: np.ndarray, exact: np.ndarray) -> float:
    """The engine's production mode against logits computed without quantizing activations. Returns the cosine."""
    _comparable(actual, exact)
    cosine = _cosine(actual.reshape(1, -1), exact.reshape(1, -1))[0]
    if not cosine >= WHOLE_COSINE:
        raise Mismatch(f"cosine {cosine:.6f} over the whole prompt is below {WHOLE_COSINE}")
    second, best = np.sort(exact, axis=1)[:, -2:].T
    decided = best - second >= DECIDED * np.std(exact)
    if np.count_nonzero(decided) < len(exact) / 4:
        raise Mismatch(f"only {np.count_nonzero(decided)} of {len(exact)} positions have a clear favourite")
    _same_top(actual[decided], exact[decided])
    return float(cosine)


def compare_emulated(actual: np.ndarray, emulated: np.ndarray, first: int = FIRST) -> float:
    """The engine's production mode against the same quantized arithmetic in float64. Returns the least cosine.

    What is left is float32 rounding, and an activation here or there (one in some 100,000) that rounding pushes over
    the edge between two quants. From there on logits differ by the noise of one quant; before, they agree to six
    digits. The engine's bits are the same everywhere, so a stored model passes always or never. For models made at
    random, `first` can be 0.
    """
    _comparable(actual, emulated)
    rounding = np.abs(actual[:first] - emulated[:first]).max(initial=0) / np.std(emulated)
    if not rounding <= ROUNDING:
        raise Mismatch(f"the first {first} positions differ by {rounding:.3g} standard deviations")
    cosines = _cosine(actual, emulated)
    worst = int(np.argmin(cosines))
    if not cosines[worst] >= POSITION_COSINE:
        raise Mismatch(f"position {worst}: cosine {cosines[worst]:.6f} is below {POSITION_COSINE}")
    _same_top(actual, emulated)
    return float(cosines[worst])


def compare_sums(actual: np.ndarray, expected: np.ndarray, name: str) -> float:
    """Sums of squares of one matrix's inputs, one per channel. Returns the largest relative difference."""
    _comparable(actual[None], expected[None])
    scaled = np.abs(actual - expected) / np.max(expected)
    worst = int(np.argmax(scaled))
    if not scaled[worst] <= SUMS_TOLERANCE:
        raise Mismatch(f"{name}, channel {worst}: {actual[worst]:.8g} instead of {expected[worst]:.8g}")
    return float(scaled[worst])


def _comparable(actual: np.ndarray, expected: np.ndarray) -> None:
    if actual.ndim != 2 or actual.shape != expected.shape:
        raise Mismatch(f"shape {actual.shape} instead of {expected.shape}")
    if expected.size == 0 or not np.any(expected):
        raise Mismatch("nothing to compare with")
    for what, array in (("expected", expected), ("actual", actual)):
        if not np.isfinite(array).all():
            raise Mismatch(f"{what} values that are not finite: {np.count_nonzero(~np.isfinite(array))}")


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.sum(a * b, axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)


def _same_top(actual: np.ndarray, expected: np.ndarray) -> None:
    same = np.mean(actual.argmax(axis=1) == expected.argmax(axis=1))
    if not same >= SAME_TOP:
        raise Mismatch(f"the most likely token is the same at {same:.1%} of {len(actual)} positions only")
