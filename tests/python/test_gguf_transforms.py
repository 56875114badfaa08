"""The steps for GGUF's own order of weights, on known values, and what they do to blocks."""

import numpy as np
import pytest
from checkpoint_errors import CheckpointError
from gguf_transforms import GroupHeads, NegativeLog, move_blocks
from hf_transforms import AddOne, InterleavePairs, PadZeros, TakePart, apply_steps
from quant import quantize_q4_0_fit, quantize_q8_0


def test_two_key_heads_with_two_value_heads_each():
    """Grouped, value heads 0 and 1 read key head 0; GGUF stores the order 0, 2, 1, 3, so that h mod 2 does."""
    step = GroupHeads(axis=0, start=0, k_heads=2, v_heads=4, size=1)
    assert step.apply(np.array([0, 2, 1, 3])).tolist() == [0, 1, 2, 3]
    assert step.undo(np.array([0, 1, 2, 3])).tolist() == [0, 2, 1, 3]


def test_what_lies_before_the_heads_stays():
    step = GroupHeads(axis=0, start=3, k_heads=2, v_heads=4, size=2)
    rows = np.array([9, 8, 7, 0, 0, 2, 2, 1, 1, 3, 3])[:, None] * np.ones((1, 5))
    assert step.apply(rows)[:, 0].tolist() == [9, 8, 7, 0, 0, 1, 1, 2, 2, 3, 3]


def test_columns():
    step = GroupHeads(axis=1, start=0, k_heads=2, v_heads=6, size=2)
    tiled = np.repeat([0, 3, 1, 4, 2, 5], 2)[None, :]
    assert step.apply(tiled).tolist() == [np.repeat(np.arange(6), 2).tolist()]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("k_heads", "v_heads"), [(1, 4), (2, 4), (4, 12), (4, 4)])
def test_undo_takes_back(axis, k_heads, v_heads):
    step = GroupHeads(axis, start=4, k_heads=k_heads, v_heads=v_heads, size=3)
    x = np.random.default_rng(0).standard_normal((4 + 3 * v_heads,) * 2)
    assert np.array_equal(step.undo(step.apply(x)), x)
    assert np.array_equal(step.apply(x), x) == (k_heads in (1, v_heads))


def test_decay():
    a_log = np.array([-3.5, 0.0, 1.25], dtype=np.float32)
    decay = (-np.exp(a_log)).astype(np.float32)
    assert np.allclose(NegativeLog().apply(decay), a_log, rtol=0, atol=1e-6)
    assert np.allclose(NegativeLog().undo(a_log), decay, rtol=1e-6)
    for bad in (0.0, 1.0, np.nan):
        with pytest.raises(CheckpointError, match="all must be below 0"):
            NegativeLog().apply(np.array([-1.0, bad]))


STEPS = [
    [],
    [InterleavePairs(4, 16, 16)],
    [InterleavePairs(2, 32, 8)],
    [TakePart(1, 2, 2, 16)],
    [TakePart(0, 2, 2, 16), InterleavePairs(2, 16, 8)],
    [PadZeros(0, 64, 96)],
    [GroupHeads(0, 16, 2, 6, 8)],
    [GroupHeads(1, 32, 2, 4, 32)],
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("quantize", [quantize_q8_0, quantize_q4_0_fit])
def test_moved_blocks_are_the_moved_weights(steps, quantize):
    quantized = quantize(np.random.default_rng(1).standard_normal((64, 160)).astype(np.float32))
    moved = move_blocks(steps, quantized)
    assert np.array_equal(moved.dequantize(), apply_steps(steps, quantized.dequantize()))


@pytest.mark.parametrize(
    "step", [AddOne(), PadZeros(1, 160, 192), GroupHeads(1, 0, 2, 4, 40), GroupHeads(1, 16, 2, 4, 32), NegativeLog()]
)
def test_blocks_that_would_come_apart(step):
    quantized = quantize_q8_0(np.ones((4, 160), dtype=np.float32))
    assert move_blocks([step], quantized) is None
