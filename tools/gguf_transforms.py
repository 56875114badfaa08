"""The steps that GGUF's own order of weights calls for, beside those of hf_transforms.py.

A step may also move whole blocks of quantized weights about, so that they need not be decoded: move_blocks().
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from checkpoint_errors import CheckpointError
from hf_transforms import InterleavePairs, PadZeros, Shape, Step, TakePart, apply_steps
from quant import BLOCK, Quantized


@dataclass(frozen=True)
class GroupHeads:
    """Reorders the value heads of linear attention from tiled, as in GGUF, to grouped, as everywhere else.

    Value head h reads key head h / (V / K) when grouped and h mod K when tiled. With K = 2, V = 4:

        tiled    k0a k1a k0b k1b        grouped    k0a k0b k1a k1b

    The heads are `size` entries each along `axis`, from entry `start` on; what comes before stays.
    """

    axis: int
    start: int
    k_heads: int
    v_heads: int
    size: int

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self._swap(x, self.v_heads // self.k_heads, self.k_heads)

    def undo(self, y: np.ndarray) -> np.ndarray:
        return self._swap(y, self.k_heads, self.v_heads // self.k_heads)

    def _swap(self, x: np.ndarray, outer: int, inner: int) -> np.ndarray:
        along = np.moveaxis(x, self.axis, 0)
        heads = along[self.start :].reshape(outer, inner, self.size, *along.shape[1:])
        swapped = heads.swapaxes(0, 1).reshape(-1, *along.shape[1:])
        return np.ascontiguousarray(np.moveaxis(np.concatenate([along[: self.start], swapped]), 0, self.axis))

    def source_shape(self, shape: Shape) -> Shape:
        return shape


@dataclass(frozen=True)
class NegativeLog:
    """x becomes log(-x): GGUF stores the decay -exp(A_log), the format A_log. Exact to float32's last digit."""

    def apply(self, x: np.ndarray) -> np.ndarray:
        if not (x < 0).all():
            raise CheckpointError(f"a decay of {x[~(x < 0)][0]} where all must be below 0")
        return np.log(-x.astype(np.float64)).astype(np.float32)

    def undo(self, y: np.ndarray) -> np.ndarray:
        return (-np.exp(y.astype(np.float64))).astype(np.float32)

    def source_shape(self, shape: Shape) -> Shape:
        return shape


def move_blocks(steps: Sequence[Step], value: Quantized) -> Quantized | None:
    """Applies steps to quantized weights, or gives None if one of them would take blocks apart.

    Rows may go anywhere, since a block lies within a row: quants and scales take the same way. Columns may move by
    whole blocks.
    """
    for step in steps:
        of_scales = _on_scales(step)
        if of_scales is None:
            return None
        value = Quantized(apply_steps([step], value.q), apply_steps([of_scales], value.d), value.kind)
    return value


def _on_scales(step: Step) -> Step | None:
    """The step that does to the scales of a matrix what `step` does to its weights."""
    by_rows = isinstance(step, InterleavePairs | TakePart) or (
        isinstance(step, PadZeros | GroupHeads) and step.axis == 0
    )
    if by_rows:
        return step
    if isinstance(step, GroupHeads) and step.size % BLOCK == 0 and step.start % BLOCK == 0:
        return replace(step, start=step.start // BLOCK, size=step.size // BLOCK)
    return None
