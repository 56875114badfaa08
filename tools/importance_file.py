"""Reads importance matrix files (MLI1), which `ml_run --imatrix` writes: how much each input channel matters.

    0  "MLI1"        16  hidden_dim                24  u64 tokens summed into the layers
    4  u32 version   20  q_dim, 0 when it is dim   32  u64 tokens summed into the classifier
    8  n_layers      40  version 1: the sums
    12 dim           40  version 2: u32 lin_v_heads × lin_v_dim, u32 zero; then the sums from 48

Sums are float64, one per channel: for each layer the inputs of wq/wk/wv, of wo, of w1/w3 and of w2, at last that of
the classifier. Linear-attention layers have lqkv/lz in the place of wq/wk/wv and lout in that of wo. Version 2 is for
models whose lout has another width than wo.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from checkpoint_errors import CheckpointError
from mlb_layout import FLAG_LINEAR, Header

MAGIC = b"MLI1"
_HEADER = struct.Struct("<4s5I2Q")
_SLOTS = (("wq", "wk", "wv", "wg", "lqkv", "lz"), ("wo", "lout"), ("w1", "w3"), ("w2",))  # in file order


def read_importance(path: Path, header: Header, layer_flags: bytes | None) -> dict[str, np.ndarray]:
    """Sums of squares by array name, for the matrices of a model with this header. Only proportions have a meaning.

    An output matrix that was not used while measuring (no logits were asked for) is left out. Raises CheckpointError
    for a broken file and for one of another model, OSError.
    """
    data = path.read_bytes()
    offset, tokens = _check_header(path, data, header)
    slots = _slots(header, layer_flags)
    widths = [width for _, width in slots]
    if len(data) - offset != 8 * sum(widths):
        raise CheckpointError(f"{path}: {len(data)} bytes, this model's sums need {offset + 8 * sum(widths)}")
    sums = np.frombuffer(data, "<f8", offset=offset)
    if not (np.isfinite(sums).all() and (sums >= 0).all()):
        raise CheckpointError(f"{path}: holds a sum that is negative or not finite")
    importance: dict[str, np.ndarray] = {}
    at = 0
    for names, width in slots:
        importance |= dict.fromkeys(names, sums[at : at + width])
        at += width
    if tokens[0] == 0:
        raise CheckpointError(f"{path}: no token was measured")
    if tokens[1] == 0:
        del importance[_classifier(header)]
    return importance


def _check_header(path: Path, data: bytes, header: Header) -> tuple[int, tuple[int, int]]:
    """Where the sums begin, and of how many tokens they are."""
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise CheckpointError(f"{path}: no importance matrix file")
    _, version, n_layers, dim, hidden_dim, q_dim, of_layers, of_classifier = _HEADER.unpack_from(data)
    if version not in (1, 2) or (version == 2 and len(data) < 48):
        raise CheckpointError(f"{path}: version {version} of the importance matrix file")
    for name, value, wanted in (
        ("n_layers", n_layers, header.n_layers),
        ("dim", dim, header.dim),
        ("hidden_dim", hidden_dim, header.hidden_dim),
        ("q_dim", q_dim or dim, header.q_dim),
    ):
        if value != wanted:
            raise CheckpointError(f"{path}: is of another model: {name} is {value}, not {wanted}")
    lin_value_dim = header.lin_value_dim or header.q_dim
    given = struct.unpack_from("<2I", data, 40) if version == 2 else (header.q_dim, 0)
    if given != (lin_value_dim, 0):
        raise CheckpointError(f"{path}: is of another model: linear attention {given[0]} wide, not {lin_value_dim}")
    return 48 if version == 2 else 40, (of_layers, of_classifier)


def _slots(header: Header, layer_flags: bytes | None) -> list[tuple[list[str], int]]:
    """Array names and number of channels, in file order."""
    slots = []
    for layer in range(header.n_layers):
        linear = bool(layer_flags and layer_flags[layer] & FLAG_LINEAR)
        widths = (header.dim, header.lin_value_dim if linear else header.q_dim, header.dim, header.hidden_dim)
        for names, width in zip(_SLOTS, widths, strict=True):
            slots.append(([f"layers.{layer}.{name}" for name in names], width))
    return [*slots, ([_classifier(header)], header.dim)]


def _classifier(header: Header) -> str:
    """The matrix that gives the logits. An embedding that is not it multiplies nothing, and has no importance."""
    return "tok_emb" if header.shared_classifier else "wcls"
