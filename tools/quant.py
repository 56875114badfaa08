"""Weight quantization of the .mlb format: Q8_0, Q4_0 by search, Q4_0 by plain rounding.

A row of weights is cut into blocks of 32 consecutive ones that share a scale d:

    Q8_0   w = q * d             q in -127 .. 127, one byte each
    Q4_0   w = (nibble - 8) * d  16 bytes a block; byte j holds element j (low half) and j + 16 (high half)

         byte 0        byte 1               byte 15
       +----+----+   +----+----+          +----+----+
       | 16 |  0 |   | 17 |  1 |   ...    | 31 | 15 |      high nibble | low nibble
       +----+----+   +----+----+          +----+----+

Scales are stored as float32, or as float16 when the model says so (`scale_f16`). The rules are those of the format
document, section "Quantization rule"; what it leaves open is in docs/FORMAT-notes.md. Every sum here is written as a
fixed tree of float64 additions, so that a model comes out the same on every machine and numpy version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

BLOCK = 32
F16_MAX = 65504.0
Q8_TINY = np.float32(1e-30)  # below it 127 / amax would overflow
CANDIDATE_LEVELS = [-6.0 - 0.2 * step for step in range(13)]  # -6 to -8.4
IMPORTANCE_FLOOR = 0.001

_CHUNK_BLOCKS = 1024  # blocks worked on at once: temporaries stay in the cache, and memory stays bounded


class QuantizeError(ValueError):
    """Weights that the format cannot hold. The message is one line and names the row and block."""


@dataclass
class Quantized:
    """A quantized matrix as numbers: levels and scales, not the packed bytes of the file.

    q: int8, rows x cols. Q8_0: -127 .. 127. Q4_0: nibble - 8, so -8 .. 7.
    d: float32, rows x (cols / 32); exact float16 values if they are to be stored as float16.
    kind: "q8_0" or "q4_0".
    """

    q: np.ndarray
    d: np.ndarray
    kind: str

    def dequantize(self) -> np.ndarray:
        """float32, rows x cols. Non-finite scales give non-finite weights, without a warning."""
        rows, cols = self.q.shape
        with np.errstate(invalid="ignore", over="ignore"):
            blocks = self.q.reshape(rows, cols // BLOCK, BLOCK).astype(np.float32) * self.d[:, :, None]
        return blocks.reshape(rows, cols)


def pack_nibbles(q: np.ndarray) -> np.ndarray:
    """Q4_0 levels (int8, any shape that ends in a multiple of 32) to the bytes of the file, flat uint8."""
    nibbles = (q.reshape(-1, 2, BLOCK // 2) + np.int8(8)).astype(np.uint8)
    return (nibbles[:, 0] | (nibbles[:, 1] << np.uint8(4))).reshape(-1)


def unpack_nibbles(packed: np.ndarray) -> np.ndarray:
    """The inverse of pack_nibbles: flat uint8 to flat int8 levels."""
    halves = packed.reshape(-1, 1, BLOCK // 2)
    nibbles = np.concatenate([halves & np.uint8(15), halves >> np.uint8(4)], axis=1)
    return (nibbles.astype(np.int8) - np.int8(8)).reshape(-1)


def quantize_q8_0(x: np.ndarray, scale_f16: bool = False) -> Quantized:
    """Q8_0 of a matrix (rows x cols, cols a multiple of 32), in the exact float32 operations of the format.

    With scale_f16 the scale is rounded to float16 first and the quants are taken against the rounded one; a scale
    that rounds to zero gives zero quants. Raises QuantizeError for non-finite weights and for scales over 65504.
    """
    out = _Output(x, "q8_0", scale_f16)
    for part, blocks in out.chunks():
        amax = np.abs(blocks).max(axis=0)
        live = amax >= Q8_TINY
        safe = np.where(live, amax, np.float32(1))
        d = np.where(live, amax / np.float32(127), np.float32(0))
        inverse = np.float32(127) / safe
        if scale_f16:
            d = out.round_to_f16(d, part)
            live &= d > 0
            inverse = np.float32(1) / np.where(live, d, np.float32(1))
        q = np.trunc(blocks * inverse + np.copysign(np.float32(0.5), blocks))
        q = np.where(live, np.clip(q, -127, 127), np.float32(0))
        out.put(part, q, d)
    return out.finish()


def quantize_q4_0_fit(x: np.ndarray, scale_f16: bool = False, importance: np.ndarray | None = None) -> Quantized:
    """Q4_0 of a matrix (rows x cols), each block searched for its best fit.

    The largest-magnitude element is mapped to each of the candidate levels in turn; d is the weighted least-squares
    fit to the levels so found, and the first candidate with the smallest weighted error wins. An element weighs x²,
    or, with `importance`, imp * sqrt(s² + x²) where s² is its row's mean square. The format scales tiny blocks up
    first so that float32 powers do not underflow; float64 has room for those of every float32, so nothing is scaled.

    importance: mean squared input of each of the cols channels; only the proportions matter.
    """
    out = _Output(x, "q4_0", scale_f16)
    factors = None if importance is None else importance_factors(importance, out.cols)
    for part, blocks in out.chunks():
        values = blocks.astype(np.float64)
        extreme = _largest_magnitude(values)
        if factors is None:
            weights = values * values
        else:
            weights = out.columns(part, factors) * np.sqrt(out.row_mean_square(part) + values * values)
        levels, d = _search_q4(values, weights, extreme)
        d = out.round_to_f16(d, part) if scale_f16 else d.astype(np.float32)
        out.put(part, np.where(d == 0, 0.0, levels), d)
    return out.finish()


def quantize_q4_0_round(x: np.ndarray, scale_f16: bool = False) -> Quantized:
    """Q4_0 of a matrix (rows x cols) as llama.cpp rounds it, in float32: what checkpoints trained for Q4_0 expect.

    d is the (first) largest-magnitude element over -8. Levels come from the unrounded d, also with scale_f16. A block
    so small that 1 / d overflows has no levels by that rule; it becomes zero.
    """
    out = _Output(x, "q4_0", scale_f16)
    for part, blocks in out.chunks():
        d = _largest_magnitude(blocks) / np.float32(-8)
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.float32(1) / d
        inverse = np.where(np.isfinite(inverse), inverse, np.float32(0))
        levels = np.minimum(np.trunc(blocks * inverse + np.float32(8.5)), 15) - 8
        out.put(part, levels, out.round_to_f16(d, part) if scale_f16 else d)
    return out.finish()


def importance_factors(importance: np.ndarray, cols: int) -> np.ndarray:
    """Mean squared inputs of the channels to factors around 1: divided by their mean, at least 0.001. float64."""
    importance = np.asarray(importance, dtype=np.float64)
    if importance.shape != (cols,):
        raise QuantizeError(f"importance has shape {importance.shape}, the matrix has {cols} columns")
    if not (np.isfinite(importance).all() and (importance >= 0).all()):
        raise QuantizeError("importance holds a negative or non-finite value")
    mean = importance.mean()
    if mean == 0:  # the matrix was never used while measuring: nothing to tell the channels apart
        return np.ones(cols)
    return np.maximum(importance / mean, IMPORTANCE_FLOOR)


def fit_error(x: np.ndarray, quantized: Quantized, importance: np.ndarray | None = None) -> np.ndarray:
    """The measure that the Q4_0 search minimizes, of any quantization of x: float64, rows x (cols / 32)."""
    rows, cols = x.shape
    values = np.asarray(x, dtype=np.float64)
    squares = values * values
    weights = squares
    if importance is not None:
        row_mean = squares.mean(axis=1, keepdims=True)
        weights = importance_factors(importance, cols) * np.sqrt(row_mean + squares)
    blocks = quantized.q.reshape(rows, cols // BLOCK, BLOCK) * quantized.d[:, :, None].astype(np.float64)
    errors = weights * (values - blocks.reshape(rows, cols)) ** 2
    return errors.reshape(rows, cols // BLOCK, BLOCK).sum(axis=2)


# ---------------------------------------------------------------- the search


def _search_q4(values: np.ndarray, weights: np.ndarray, extreme: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best levels (32 x n) and scales (n) of n blocks that stand in columns; everything float64."""
    n = values.shape[1]
    best_error = np.full(n, np.inf)
    best_d = np.zeros(n)
    best_levels = np.zeros(values.shape)
    weighted = weights * values
    alive = extreme != 0
    divisor = np.where(alive, extreme, 1.0)
    for candidate in CANDIDATE_LEVELS:
        levels = np.clip(np.rint(values * (candidate / divisor)), -8, 7)
        square = _sum_block(weights * levels * levels)
        square[~alive] = 1.0
        d = _sum_block(weighted * levels) / square
        miss = values - levels * d
        error = _sum_block(weights * miss * miss)
        better = error < best_error
        best_error[better] = error[better]
        best_d[better] = d[better]
        np.copyto(best_levels, levels, where=better)
    return best_levels, best_d


def _sum_block(columns: np.ndarray) -> np.ndarray:
    """Sums of n blocks that stand in columns (32 x n), as a fixed tree: halves onto halves. Overwrites its input."""
    half = BLOCK // 2
    while half:
        columns[:half] += columns[half : 2 * half]
        half //= 2
    return columns[0].copy()


def _largest_magnitude(columns: np.ndarray) -> np.ndarray:
    """The element of largest magnitude, with its sign, of each column; the first one among equals."""
    index = np.abs(columns).argmax(axis=0)
    return columns[index, np.arange(columns.shape[1])]


# ---------------------------------------------------------------- chunks


class _Output:
    """The matrix being quantized, chunk by chunk, and the result so far.

    A chunk is a range of blocks in file order, handed out as float32 columns (32 x n): operations on one element
    position run along memory, and a block's sum is a tree of whole-row additions.
    """

    def __init__(self, x: np.ndarray, kind: str, scale_f16: bool) -> None:
        x = np.asarray(x)
        if x.ndim != 2 or x.shape[1] % BLOCK or not x.size:
            raise QuantizeError(f"a matrix of rows x (a multiple of {BLOCK}) is needed, not {x.shape}")
        self.rows, self.cols = x.shape
        self._per_row = self.cols // BLOCK
        self._blocks = x.reshape(-1, BLOCK)
        self._kind = kind
        self._scale_f16 = scale_f16
        self._q = np.empty(self._blocks.shape, dtype=np.int8)
        self._d = np.empty(len(self._blocks), dtype=np.float32)
        self._mean_squares: np.ndarray | None = None

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self._blocks), _CHUNK_BLOCKS):
            part = slice(start, min(start + _CHUNK_BLOCKS, len(self._blocks)))
            blocks = self._as_float32(part)
            finite = np.isfinite(blocks)
            if not finite.all():
                block = start + int((~finite).any(axis=1).argmax())
                raise QuantizeError(f"non-finite weight in {self._place(block)}")
            yield part, np.ascontiguousarray(blocks.T)

    def _as_float32(self, part: slice) -> np.ndarray:
        with np.errstate(over="ignore"):  # an overflow becomes an infinity, which chunks() then refuses
            return self._blocks[part].astype(np.float32)

    def put(self, part: slice, levels: np.ndarray, d: np.ndarray) -> None:
        self._q[part] = levels.T
        self._d[part] = d

    def finish(self) -> Quantized:
        return Quantized(self._q.reshape(self.rows, self.cols), self._d.reshape(self.rows, -1), self._kind)

    def round_to_f16(self, d: np.ndarray, part: slice) -> np.ndarray:
        """Scales rounded to the nearest float16 (ties to even), as float32."""
        over = np.abs(d) > F16_MAX
        if over.any():
            block = int(over.argmax())
            raise QuantizeError(
                f"scale {abs(float(d[block])):.6g} in {self._place(part.start + block)} is above {F16_MAX:.0f}, "
                "the largest float16; store float32 scales instead"
            )
        return d.astype(np.float16).astype(np.float32)

    def row_mean_square(self, part: slice) -> np.ndarray:
        """Mean x² of the row that each block of the chunk belongs to."""
        if self._mean_squares is None:
            sums = np.empty(len(self._blocks))
            for start in range(0, len(self._blocks), _CHUNK_BLOCKS):
                piece = slice(start, start + _CHUNK_BLOCKS)
                squares = self._as_float32(piece).astype(np.float64).T ** 2
                sums[piece] = _sum_block(squares)
            self._mean_squares = np.cumsum(sums.reshape(self.rows, self._per_row), axis=1)[:, -1] / self.cols
        return self._mean_squares[np.arange(part.start, part.stop) // self._per_row]

    def columns(self, part: slice, per_channel: np.ndarray) -> np.ndarray:
        """Values of the input channels laid out like the chunk: 32 x n."""
        return per_channel.reshape(self._per_row, BLOCK)[np.arange(part.start, part.stop) % self._per_row].T

    def _place(self, block: int) -> str:
        return f"row {block // self._per_row}, block {block % self._per_row}"
