"""The steps that turn a Hugging Face tensor into an .mlb array, each small, pure and invertible.

A step knows three things: how to apply itself to an array, how to undo that, and what the shape before it
must have been, given the shape after it. The last lets a converter check a whole checkpoint before it reads
the first weight.

Every step works on a matrix (rows × columns, one row per output) or on a vector, and only on rows unless it
says otherwise. Steps keep the element type: a caller who wants 1 + w in float32 passes float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Shape = tuple[int, ...]


class Step(Protocol):
    """One invertible change of an array. undo(apply(x)) equals x, except where a step says what it drops."""

    def apply(self, x: np.ndarray) -> np.ndarray: ...

    def undo(self, y: np.ndarray) -> np.ndarray: ...

    def source_shape(self, shape: Shape) -> Shape: ...


def interleaved_order(head_size: int, rot_size: int) -> np.ndarray:
    """Where each dimension of a head comes from when rotate-half pairs become interleaved pairs.

    Hugging Face rotates dimension i together with i + rot_size/2, the format rotates 2i together with 2i + 1
    (format document, "RoPE"). Dimensions from rot_size on are not rotated and stay.

        rotate-half   a0 a1 a2 b0 b1 b2 | p0 p1        head_size 8, rot_size 6
        interleaved   a0 b0 a1 b1 a2 b2 | p0 p1
    """
    if head_size < 1 or rot_size % 2 or not 0 < rot_size <= head_size:
        raise ValueError(f"rot_size {rot_size} must be even and at most the head size {head_size}")
    pairs = np.arange(rot_size).reshape(2, rot_size // 2).T.reshape(-1)
    return np.concatenate([pairs, np.arange(rot_size, head_size)])


@dataclass(frozen=True)
class InterleavePairs:
    """Reorders the rows (or the elements of a vector) of n_heads heads for interleaved rotation."""

    n_heads: int
    head_size: int
    rot_size: int

    def _take(self, x: np.ndarray, order: np.ndarray) -> np.ndarray:
        heads = _heads(x, self.n_heads, self.head_size, "interleaving rotary pairs")
        return heads[:, order].reshape(x.shape)

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self._take(x, interleaved_order(self.head_size, self.rot_size))

    def undo(self, y: np.ndarray) -> np.ndarray:
        return self._take(y, np.argsort(interleaved_order(self.head_size, self.rot_size)))

    def source_shape(self, shape: Shape) -> Shape:
        return shape


@dataclass(frozen=True)
class TakePart:
    """Takes one of the parts that a projection holds side by side within each head.

    Qwen3.5's q_proj holds, for each head, head_size rows of queries and then head_size rows of gate:

        head 0: q q q q g g g g   head 1: q q q q g g g g   …      parts = 2; part 0 is q, part 1 is g

    undo() leaves zeros at the other parts, so that the sum of what all parts give is the whole projection.
    """

    part: int
    parts: int
    n_heads: int
    head_size: int

    def apply(self, x: np.ndarray) -> np.ndarray:
        heads = _heads(x, self.n_heads, self.parts * self.head_size, "splitting a projection")
        split = heads.reshape(self.n_heads, self.parts, self.head_size, *x.shape[1:])
        return split[:, self.part].reshape(self.n_heads * self.head_size, *x.shape[1:])

    def undo(self, y: np.ndarray) -> np.ndarray:
        heads = _heads(y, self.n_heads, self.head_size, "joining a projection")
        whole = np.zeros((self.n_heads, self.parts, self.head_size, *y.shape[1:]), y.dtype)
        whole[:, self.part] = heads
        return whole.reshape(self.source_shape(y.shape))

    def source_shape(self, shape: Shape) -> Shape:
        return (self.parts * shape[0], *shape[1:])


@dataclass(frozen=True)
class AddOne:
    """w becomes 1 + w: Gemma and Qwen3.5 store norm weights around zero, the format stores the factor."""

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x + x.dtype.type(1)

    def undo(self, y: np.ndarray) -> np.ndarray:
        return y - y.dtype.type(1)

    def source_shape(self, shape: Shape) -> Shape:
        return shape


@dataclass(frozen=True)
class PadZeros:
    """Appends zeros along an axis until it has `after` entries; undo() drops them.

    Only used on the inner side of the FFN, where it is exact: both activations map 0 to 0, and a zero row of w1
    and w3 meets a zero column of w2.
    """

    axis: int
    before: int
    after: int

    def apply(self, x: np.ndarray) -> np.ndarray:
        self._check(x, self.before)
        widths = [(0, self.after - self.before if axis == self.axis else 0) for axis in range(x.ndim)]
        return np.pad(x, widths)

    def undo(self, y: np.ndarray) -> np.ndarray:
        self._check(y, self.after)
        return y.take(np.arange(self.before), axis=self.axis)

    def source_shape(self, shape: Shape) -> Shape:
        return (*shape[: self.axis], self.before, *shape[self.axis + 1 :])

    def _check(self, x: np.ndarray, size: int) -> None:
        _expect(x.shape[self.axis] == size, "zero padding", x.shape, f"{size} along axis {self.axis}")


@dataclass(frozen=True)
class DropMiddleAxis:
    """channels × 1 × taps, as a grouped convolution stores its kernels, becomes channels × taps."""

    def apply(self, x: np.ndarray) -> np.ndarray:
        _expect(x.ndim == 3 and x.shape[1] == 1, "convolution kernel", x.shape, "channels × 1 × taps")
        return x[:, 0, :]

    def undo(self, y: np.ndarray) -> np.ndarray:
        return y[:, None, :]

    def source_shape(self, shape: Shape) -> Shape:
        return (shape[0], 1, shape[1])


def apply_steps(steps: Sequence[Step], x: np.ndarray) -> np.ndarray:
    """Runs steps in order: source tensor in, file array out."""
    for step in steps:
        x = step.apply(x)
    return x


def undo_steps(steps: Sequence[Step], y: np.ndarray) -> np.ndarray:
    """Undoes steps, last first: file array in, source tensor (or one part of it, see TakePart) out."""
    for step in reversed(steps):
        y = step.undo(y)
    return y


def source_shape(steps: Sequence[Step], shape: Shape) -> Shape:
    """The shape that the source tensor must have for the steps to give `shape`."""
    for step in reversed(steps):
        shape = step.source_shape(shape)
    return shape


def _heads(x: np.ndarray, n_heads: int, head_rows: int, doing: str) -> np.ndarray:
    _expect(x.shape[:1] == (n_heads * head_rows,), doing, x.shape, f"{n_heads} heads × {head_rows} rows")
    return x.reshape(n_heads, head_rows, *x.shape[1:])


def _expect(holds: bool, doing: str, shape: Shape, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{doing}: an array of shape {shape} where {wanted} is needed")
