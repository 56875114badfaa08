"""The weights of GGUF tensors: blocks of Q8_0 and Q4_0 as they are, all else as float32.

Q8_0 and Q4_0 of GGUF are blocks of 32 with a float16 scale, just as in an .mlb file with float16 scales, only that
GGUF keeps each scale beside its quants:

    GGUF   d q q q … q | d q q q … q | …        d: float16   Q8_0 32 × int8   Q4_0 16 bytes, low nibbles first
    .mlb   q q q … q q q q … | d d …

so they change places and lose nothing. The one quant that .mlb cannot hold is Q8_0's -128.
"""

from __future__ import annotations

import numpy as np

from checkpoint_errors import CheckpointError
from gguf_reader import GgufTensor
from quant import BLOCK, Quantized, quantize_q8_0, unpack_nibbles
from safetensors_reader import widen_bf16

CARRIED = {"Q8_0": "q8_0", "Q4_0": "q4_0"}  # GGUF's name: ours


def read_weights(tensor: GgufTensor) -> np.ndarray | Quantized:
    """A matrix of Q8_0 or Q4_0 as Quantized, quants of -128 included; everything else as float32."""
    if tensor.type.name in CARRIED and len(tensor.shape) == 2:
        return _blocks(tensor)
    return read_floats(tensor)


def read_floats(tensor: GgufTensor) -> np.ndarray:
    """float32 of the tensor's shape, decoded if need be."""
    stored = tensor.stored()
    if tensor.type.name in ("F32", "F16", "F64"):
        with np.errstate(over="ignore"):
            return stored.view(f"<f{tensor.type.size}").astype(np.float32).reshape(tensor.shape)
    if tensor.type.name == "BF16":
        return widen_bf16(stored).reshape(tensor.shape)
    from gguf import GGMLQuantizationType, quants  # a heavy import, for the types that need it

    rows = stored.reshape(*tensor.shape[:-1], -1)
    try:
        with np.errstate(all="ignore"):  # a broken scale gives non-finite weights, which the writer refuses by name
            values = quants.dequantize(rows, GGMLQuantizationType[tensor.type.name])
    except NotImplementedError:
        raise CheckpointError(
            f"tensor {tensor.name} is stored as {tensor.type.name}, which cannot be decoded"
        ) from None
    return np.ascontiguousarray(values, dtype=np.float32)


def _blocks(tensor: GgufTensor) -> Quantized:
    rows, cols = tensor.shape
    blocks = tensor.stored().reshape(-1, tensor.type.size)
    d = blocks[:, :2].copy().view("<f2").astype(np.float32).reshape(rows, cols // BLOCK)
    quants = blocks[:, 2:].copy()
    q = quants.view(np.int8) if tensor.type.name == "Q8_0" else unpack_nibbles(quants.reshape(-1))
    return Quantized(q.reshape(rows, cols), d, CARRIED[tensor.type.name])


def mend_minus_128(quantized: Quantized) -> int:
    """Quantizes the blocks of a Q8_0 matrix anew that hold the quant -128. Returns how many there were."""
    q = quantized.q.reshape(-1, BLOCK)
    d = quantized.d.reshape(-1)
    broken = np.flatnonzero((q == -128).any(axis=1))
    if len(broken):
        weights = q[broken].astype(np.float32) * d[broken, None]
        mended = quantize_q8_0(weights, scale_f16=True)
        q[broken] = mended.q
        d[broken] = mended.d[:, 0]
    return len(broken)


def as_q8_0(quantized: Quantized) -> Quantized:
    """A Q4_0 matrix in Q8_0's clothes: the same levels with the same scales, so the same weights exactly."""
    return Quantized(quantized.q, quantized.d, "q8_0")
