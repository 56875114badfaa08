"""Importance matrix files (MLI1): read one, and compute what it must hold from the reference.

    0  "MLI1"   8  n_layers   16  hidden_dim           24  u64 tokens of the layers
    4  version  12 dim        20  q_dim, 0 when = dim  32  u64 tokens of the classifier
    40 version 1: the sums;  version 2: u32 inputs of lout, u32 zero, and the sums from 48

Version 2 is for models with linear attention whose lout has other inputs than q_dim; such a layer's wo slot is as wide.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mlb import FLAG_LINEAR, Model

from oracle.reference import Reference

SLOTS = ("wq", "wo", "w1", "w2")  # of a layer, by one of the matrices that read that input


@dataclass
class Importance:
    """Sums of squares by "layers.<n>.<slot>" and "classifier", one number per input channel, and of how many tokens."""

    version: int
    layer_tokens: int
    classifier_tokens: int
    sums: dict[str, np.ndarray]


def read_importance(path: Path, layer_flags: bytes | None = None) -> Importance:
    """Reads a file and checks that it ends where it should. layer_flags: of the model, when it has linear layers."""
    data = path.read_bytes()
    magic, version, n_layers, dim, hidden_dim, q_dim, layer_tokens, classifier_tokens = struct.unpack_from(
        "<4s5I2Q", data
    )
    assert magic == b"MLI1" and version in (1, 2), (magic, version)
    q_dim = q_dim or dim
    lout_width, offset = q_dim, 40
    if version == 2:
        lout_width, zero = struct.unpack_from("<2I", data, 40)
        assert zero == 0
        offset = 48
    values = np.frombuffer(data, "<f8", offset=offset)
    sums = {}
    for layer in range(n_layers):
        linear = layer_flags is not None and layer_flags[layer] & FLAG_LINEAR
        for slot, width in zip(SLOTS, (dim, lout_width if linear else q_dim, dim, hidden_dim), strict=True):
            sums[f"layers.{layer}.{slot}"], values = values[:width], values[width:]
    sums["classifier"], values = values[:dim], values[dim:]
    assert len(values) == 0 and len(sums["classifier"]) == dim, "the file's length does not fit its header"
    return Importance(version, layer_tokens, classifier_tokens, sums)


# Which matrix's input stands for a slot; those of linear attention fill the slots of wq and wo.
_SLOT_OF = {"wq": "wq", "lqkv": "wq", "wo": "wo", "lout": "wo", "w1": "w1", "w2": "w2"}


def expected_importance(model: Model, tokens: Sequence[int]) -> Importance:
    """What the file must hold after these tokens in exact mode."""
    sums: dict[str, np.ndarray] = {}

    def observe(name: str, x: np.ndarray) -> None:
        at, _, matrix = name.rpartition(".")
        if at == "":
            slot = "classifier"
        elif matrix in _SLOT_OF:
            slot = f"{at}.{_SLOT_OF[matrix]}"
        else:
            return
        sums[slot] = sums.get(slot, 0.0) + x * x

    reference = Reference(model, observe=observe)
    for token in tokens:
        reference.step(token)
    header = model.header
    version = 2 if header.lin_k_heads and header.lin_value_dim != header.q_dim else 1
    return Importance(version, len(tokens), len(tokens), sums)
