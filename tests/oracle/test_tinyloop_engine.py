"""The engine's logits of TinyLoop models made at random with those of the torch module: versions 1 to 3, INT2 and INT4,
factored and direct, one loop, the default and twice the default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tinyloop
import torch
from tinyloop_layout import Header
from tinyloop_torch import from_weights

from oracle.engine import Engine
from oracle.logit_bounds import compare_exact, compare_production

BASE = Header(3, 128, 4, 256, 97, 64, 1, 3, 4, 64)
KINDS = [
    replace(BASE, version=version, bits=bits, embed_factor_dim=factor, group_size=64 if version == 3 else 32)
    for version in (1, 2, 3)
    for bits in (2, 4)
    for factor in (0, 64)
    if version > 1 or bits == 4
]


@pytest.mark.parametrize("header", KINDS, ids=lambda h: f"v{h.version}-int{h.bits}-e{h.embed_factor_dim}")
def test_logits(tmp_path: Path, ml_run: Path, header: Header) -> None:
    path = tmp_path / "model.tinyloop"
    tinyloop.write_weights(path, header, tinyloop.random_weights(header, seed=header.version))
    module = from_weights(header, tinyloop.read_model(path).weights())
    ids = np.random.default_rng(1).integers(0, header.vocab_size, 40).tolist()
    for loops in (1, header.default_loops, 2 * header.default_loops):
        with torch.no_grad():
            expected = module(torch.tensor([ids]), loops)[0].numpy()
        way = () if loops == header.default_loops else ("--loops", str(loops))
        compare_exact(Engine(ml_run).logits(path, ids, "--exact", *way), expected)
        compare_production(Engine(ml_run).logits(path, ids, *way), expected)
