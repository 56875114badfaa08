"""The weights of a .tinyloop file as integers: the one rule by which training rounds and the writer quantizes.

A row is cut into groups of `group_size` consecutive weights that share a scale d, a float16:

    INT4   w = (code - 8) * d       code 0 ... 15
    INT2   w = (2 * code - 3) * d   code 0 ... 3: -3d, -d, d, 3d

`fake_quantize` (torch, with the gradient of the identity) and `quantize` (numpy) are the same arithmetic, so that a
model trained with the first is written by the second without any change. torch is imported only by the first.

Codes are packed in blocks of 32, as the packed kernels want them:

    INT4   16 bytes: byte j holds j (low) and j + 16 (high)
    INT2   8 bytes: byte j holds j, j + 8, j + 16 and j + 24, the lowest two bits first
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

BLOCK = 32
F16_MAX = 65504.0
# The step between the four levels that fits normally distributed weights best is 0.9957 standard deviations (Max 1960),
# of which the mean magnitude is 0.7979; d is half a step.
INT2_MEAN_FACTOR = 0.9957 / 2 / 0.7979


class QuantizeError(ValueError):
    """Weights that the format cannot hold. The message is one line."""


@dataclass
class Codes:
    """A quantized matrix: codes (uint8, rows x cols) and scales (float32 with float16 values, rows x groups)."""

    codes: np.ndarray
    d: np.ndarray
    bits: int

    def dequantize(self) -> np.ndarray:
        """float32, rows x cols: the level times d, rounded once."""
        rows, cols = self.codes.shape
        levels = code_levels(self.bits)[self.codes]
        groups = levels.reshape(rows, self.d.shape[1], -1) * self.d[:, :, None]
        return groups.reshape(rows, cols).astype(np.float32)


def code_levels(bits: int) -> np.ndarray:
    """The integer that each code stands for, float32."""
    codes = np.arange(1 << bits, dtype=np.float32)
    return codes - 8 if bits == 4 else 2 * codes - 3


def _levels_and_scales(xp: Any, float64: Any, float16: Any, groups: Any, bits: int) -> tuple[Any, Any]:
    """The rule, for numpy and torch alike. groups: float32 (..., group_size). Levels and d, both float32.

    INT4: d = max |w| / 7, levels -7 ... 7. INT2: d = 0.624 mean |w|, the nearest of four levels. d is rounded to
    float16 first, and levels are taken against the rounded one; where it is 0, so are the weights.
    """
    size = abs(groups)
    if bits == 4:
        d = xp.amax(size, -1) / 7
    else:
        d = xp.mean(float64(size), -1) * INT2_MEAN_FACTOR
    d = float16(d)[..., None]
    ratio = groups / xp.where(d == 0, xp.ones_like(d), d)
    if bits == 4:
        return xp.clip(xp.round(ratio), -7, 7), d
    return xp.clip(xp.floor(ratio / 2) * 2 + 1, -3, 3), d


def quantize(x: np.ndarray, bits: int, group_size: int) -> Codes:
    """Quantizes a matrix (rows x cols, cols a multiple of group_size). Raises QuantizeError."""
    x = np.ascontiguousarray(x, dtype=np.float32)
    if not np.isfinite(x).all():
        raise QuantizeError("non-finite weight")
    groups = x.reshape(x.shape[0], -1, group_size)

    def float64(a: np.ndarray) -> np.ndarray:
        return a.astype(np.float64)

    def float16(a: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return a.astype(np.float32).astype(np.float16).astype(np.float32)

    levels, d = _levels_and_scales(np, float64, float16, groups, bits)
    if not np.isfinite(d).all():
        raise QuantizeError(f"a scale is above {F16_MAX:.0f}, the largest float16")
    codes = levels + 8 if bits == 4 else (levels + 3) / 2
    return Codes(codes.reshape(x.shape).astype(np.uint8), d[..., 0], bits)


def fake_quantize(weight: torch.Tensor, bits: int, group_size: int) -> torch.Tensor:
    """What `quantize` and `dequantize` make of a float32 matrix; gradients pass as if nothing had happened."""
    import torch

    with torch.no_grad():
        groups = weight.detach().float().reshape(weight.shape[0], -1, group_size)
        levels, d = _levels_and_scales(torch, torch.Tensor.double, lambda a: a.float().half().float(), groups, bits)
        rounded = (levels * d).reshape(weight.shape).to(weight.dtype)
    return weight + (rounded - weight).detach()


def pack_codes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes (uint8, any shape that ends in a multiple of 32) to the file's bytes, flat uint8."""
    per_byte = 8 // bits
    parts = codes.reshape(-1, per_byte, BLOCK // per_byte)
    packed = np.zeros((parts.shape[0], BLOCK // per_byte), dtype=np.uint8)
    for i in range(per_byte):
        packed |= parts[:, i] << np.uint8(i * bits)
    return packed.reshape(-1)


def unpack_codes(packed: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of pack_codes, flat uint8."""
    per_byte = 8 // bits
    blocks = packed.reshape(-1, 1, BLOCK // per_byte)
    mask = np.uint8((1 << bits) - 1)
    parts = [(blocks >> np.uint8(i * bits)) & mask for i in range(per_byte)]
    return np.concatenate(parts, axis=1).reshape(-1)
