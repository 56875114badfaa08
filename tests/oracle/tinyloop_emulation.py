"""What production mode makes of a TinyLoop model, in float64: the reference pass with the inputs of quantized matrices
rounded as the engine rounds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from quant import quantize_q8_0
from tinyloop import Model
from tinyloop_reference import logits


def quantized(x: np.ndarray) -> np.ndarray:
    return quantize_q8_0(x.astype(np.float32)).dequantize().astype(np.float64)


def emulated_logits(model: Model, ids: Sequence[int], loops: int | None = None) -> np.ndarray:
    return logits(model.header, model.weights(), ids, loops, see=quantized)
