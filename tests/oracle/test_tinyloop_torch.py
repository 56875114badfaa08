"""The torch module of TinyLoop: the same logits as the numpy reference, the same rounding as the writer, and a
checkpoint of it exported is what its quantized pass saw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tinyloop
import tinyloop_cli
import torch
from tinyloop_cli import TINY
from tinyloop_quant import fake_quantize, quantize
from tinyloop_reference import logits
from tinyloop_torch import TinyLoop, from_weights

IDS = [1, 5, 9, 100, 3, 3, 77]


@pytest.mark.parametrize("factor", [0, 32])
@pytest.mark.parametrize("loops", [None, 1, 6])
def test_torch_and_numpy_agree(factor: int, loops: int | None) -> None:
    header = replace(TINY, embed_factor_dim=factor)
    weights = tinyloop.random_weights(header, seed=1)
    found = from_weights(header, weights)(torch.tensor([IDS]), loops)[0].detach().numpy()
    assert np.abs(found - logits(header, weights, IDS, loops)).max() < 1e-12


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("group_size", [32, 96, 288])
def test_training_rounds_as_the_writer_does(bits: int, group_size: int) -> None:
    x = np.random.default_rng(bits).standard_normal((50, 288)).astype(np.float32) * 0.03
    x[3] = 0
    found = fake_quantize(torch.tensor(x), bits, group_size).numpy()
    assert np.abs(found - quantize(x, bits, group_size).dequantize()).max() <= 1e-8  # weight + (rounded - weight)
    weight = torch.tensor(x, requires_grad=True)
    fake_quantize(weight, bits, group_size).sum().backward()
    assert (weight.grad == 1).all()


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("factor", [0, 32])
def test_exported_checkpoint_is_what_training_saw(tmp_path: Path, bits: int, factor: int) -> None:
    model = TinyLoop(replace(TINY, bits=bits, embed_factor_dim=factor), seed=3)
    model.quantized = True
    checkpoint, file = tmp_path / "model.pt", tmp_path / "model.tinyloop"
    torch.save({"config": model.config_dict(), "model": model.state_dict()}, checkpoint)
    assert tinyloop_cli.main(["export", str(checkpoint), "-o", str(file)]) == 0
    read = tinyloop.read_model(file)
    with torch.no_grad():
        seen = model(torch.tensor([IDS]))[0].numpy()
        model.quantized = False
        unquantized = model(torch.tensor([IDS]))[0].numpy()
    stored = logits(read.header, read.weights(), IDS)
    assert np.abs(seen - stored).max() < 1e-4
    assert np.abs(unquantized - stored).max() > 1e-2
