"""RoPE as GGUF metadata describes it, turned into the "rope_parameters" of a Hugging Face config.

Linear and yarn scaling have keys. Llama 3's has none: the file holds a tensor rope_freqs.weight instead, with the
number by which each pair's frequency is divided. From those numbers the four parameters behind them are found again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from checkpoint_errors import CheckpointError
from gguf_reader import Metadata

TOLERANCE = 1e-4  # relative; the factors are float32
ORIGINAL_CONTEXTS = (8192, *(1 << bit for bit in range(8, 24)))

Parameters = dict[str, Any]


def rope_parameters(
    metadata: Metadata, arch: str, head_size: int, factors: np.ndarray | None, *, partial: bool
) -> Parameters:
    """The parameters of all layers (Gemma 3: of those with full attention).

    factors: rope_freqs.weight, if there. partial: the family may rotate only a part of each head.
    """
    theta = metadata.number(f"{arch}.rope.freq_base", 10000.0)
    if not (math.isfinite(theta) and theta > 0):
        raise CheckpointError(f"{metadata.path}: {arch}.rope.freq_base is {theta}, not a positive number")
    parameters: Parameters = {"rope_theta": theta, "rope_type": "default"}
    rotated = metadata.integer(f"{arch}.rope.dimension_count", head_size)
    if rotated != head_size and not partial:
        raise CheckpointError(f"{metadata.path}: {arch}.rope.dimension_count is {rotated}, heads have {head_size}")
    if rotated != head_size:
        # A reader multiplies and truncates; the half keeps it from landing just below.
        parameters["partial_rotary_factor"] = (rotated + 0.5) / head_size
    kind = metadata.text(f"{arch}.rope.scaling.type", "none")
    if factors is not None:
        if kind != "none":
            raise CheckpointError(f"{metadata.path}: {kind} RoPE scaling and rope_freqs.weight at once")
        return parameters | llama3_parameters(factors, theta, rotated)
    if f"{arch}.rope.scale_linear" in metadata:  # how it was said before there were types
        return parameters | {"rope_type": "linear", "factor": metadata.number(f"{arch}.rope.scale_linear")}
    if kind == "none":
        return parameters
    if kind not in ("linear", "yarn"):
        raise CheckpointError(
            f"{metadata.path}: {arch}.rope.scaling.type {kind!r}: supported are none, linear and yarn"
        )
    parameters |= {"rope_type": kind, "factor": metadata.number(f"{arch}.rope.scaling.factor")}
    return parameters | _yarn(metadata, arch) if kind == "yarn" else parameters


def _yarn(metadata: Metadata, arch: str) -> Parameters:
    at = f"{arch}.rope.scaling"
    # What a given attention factor multiplies differs between the programs that write it and those that read it.
    for key, idle in (
        ("yarn_ext_factor", 1.0),
        ("yarn_attn_factor", 1.0),
        ("attn_factor", 1.0),
        ("yarn_log_multiplier", 0.0),
    ):
        value = metadata.number(f"{at}.{key}", idle)
        if value != idle:
            raise CheckpointError(f"{metadata.path}: {at}.{key} is {value}; only {idle} has one meaning")
    return {
        "original_max_position_embeddings": metadata.integer(f"{at}.original_context_length"),
        "beta_fast": metadata.number(f"{at}.yarn_beta_fast", 32.0),
        "beta_slow": metadata.number(f"{at}.yarn_beta_slow", 1.0),
    }


# ---------------------------------------------------------------- Llama 3


def llama3_factors(parameters: Parameters, theta: float, rotated: int) -> np.ndarray:
    """What rope_freqs.weight holds for given parameters: the number that divides each frequency. float64."""
    inverse = theta ** -(np.arange(0, rotated, 2) / rotated)
    turns = parameters["original_max_position_embeddings"] * inverse / (2 * math.pi)  # in the original context
    low, high, factor = (parameters[name] for name in ("low_freq_factor", "high_freq_factor", "factor"))
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / factor + smooth)


def llama3_parameters(factors: np.ndarray, theta: float, rotated: int) -> Parameters:
    """The parameters that give these factors.

    The factors between 1 and the largest determine only the ratios of original context, low and high factor. Llama's
    own low factor of 1 is assumed, and its high factor of 4 where that fits; the angles are the same in any case.
    """
    factors = np.asarray(factors, dtype=np.float64).reshape(-1)
    if factors.shape != (rotated // 2,) or not np.isfinite(factors).all() or factors.min() < 1 - TOLERANCE:
        raise CheckpointError(f"rope_freqs.weight: {rotated // 2} numbers of at least 1 are needed for RoPE")
    for high, original in [(4.0, original) for original in ORIGINAL_CONTEXTS] + _solved(factors, theta, rotated):
        candidate = {
            "rope_type": "llama3",
            "factor": _rounded(factors.max()),
            "low_freq_factor": 1.0,
            "high_freq_factor": high,
            "original_max_position_embeddings": original,
        }
        if np.abs(llama3_factors(candidate, theta, rotated) / factors - 1).max() < TOLERANCE:
            return candidate
    raise CheckpointError(
        "rope_freqs.weight: not the factors of Llama 3's RoPE scaling, and no other kind is supported"
    )


def _solved(factors: np.ndarray, theta: float, rotated: int) -> list[tuple[float, int]]:
    """High factor and original context from two blended pairs or more, by least squares.

    1 / factor = (1 - s) / f + s gives s for each, and s = (turns - 1) / (high - 1) is a line in the frequency:
    s = a · inverse - b with b = 1 / (high - 1) and a = original / 2π · b.
    """
    largest = factors.max()
    between = (factors > 1 + TOLERANCE) & (factors < largest * (1 - TOLERANCE))
    if between.sum() < 2:
        return []
    inverse = theta ** -(np.arange(0, rotated, 2) / rotated)
    smooth = (1 / factors - 1 / largest) / (1 - 1 / largest)
    (a, minus_b), *_ = np.linalg.lstsq(
        np.stack([inverse[between], np.ones(between.sum())], axis=1), smooth[between], rcond=None
    )
    if minus_b >= 0 or a <= 0:
        return []
    return [(_rounded(1 - 1 / minus_b), max(1, round(2 * math.pi * a / -minus_b)))]


def _rounded(value: float) -> float:
    """Without the noise of float32: to five significant digits."""
    return float(f"{value:.5g}")
