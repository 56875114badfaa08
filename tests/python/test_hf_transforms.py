"""Each step from a Hugging Face tensor to an array of the file: what it does, how it is undone, what it refuses."""

import numpy as np
import pytest
from hf_transforms import (
    AddOne,
    DropMiddleAxis,
    InterleavePairs,
    PadZeros,
    TakePart,
    apply_steps,
    interleaved_order,
    source_shape,
    undo_steps,
)

RNG = np.random.default_rng(1)


def random(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_order_of_a_whole_head():
    assert interleaved_order(8, 8).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_order_of_a_partly_rotated_head():
    assert interleaved_order(8, 6).tolist() == [0, 3, 1, 4, 2, 5, 6, 7]
    assert interleaved_order(6, 2).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("head_size,rot_size", [(8, 3), (8, 0), (8, 10), (0, 0)])
def test_order_refuses(head_size, rot_size):
    with pytest.raises(ValueError, match="rot_size"):
        interleaved_order(head_size, rot_size)


@pytest.mark.parametrize("rot_size", [8, 4])
def test_interleaving_keeps_attention_scores(rot_size):
    """Rotate-half on the source and neighbouring pairs on the permuted heads give the same scores."""
    step = InterleavePairs(2, 8, rot_size)
    angles = RNG.uniform(0, 6, rot_size // 2)

    def rotate(x, first, second, angles):
        out = x.copy()
        out[first] = x[first] * np.cos(angles) - x[second] * np.sin(angles)
        out[second] = x[first] * np.sin(angles) + x[second] * np.cos(angles)
        return out

    def half(x, angles):
        return rotate(x, slice(0, rot_size // 2), slice(rot_size // 2, rot_size), angles)

    def pairs(x, angles):
        return rotate(x, slice(0, rot_size, 2), slice(1, rot_size, 2), angles)

    q, k = RNG.standard_normal((2, 16))
    permuted_q, permuted_k = step.apply(q).reshape(2, 8), step.apply(k).reshape(2, 8)
    for head in range(2):
        expected = half(q.reshape(2, 8)[head], 5 * angles) @ half(k.reshape(2, 8)[head], 2 * angles)
        actual = pairs(permuted_q[head], 5 * angles) @ pairs(permuted_k[head], 2 * angles)
        assert actual == pytest.approx(expected, rel=1e-12)


def test_interleaving_moves_rows_within_their_head():
    rows = np.arange(12)[:, None] * np.ones((1, 3))
    moved = InterleavePairs(3, 4, 4).apply(rows)
    assert moved[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11]


def test_parts_of_a_gated_projection():
    """Two heads of two rows: q q g g q q g g."""
    rows = np.array([10, 11, 90, 91, 20, 21, 80, 81])
    query, gate = (TakePart(part, 2, 2, 2) for part in (0, 1))
    assert query.apply(rows).tolist() == [10, 11, 20, 21]
    assert gate.apply(rows).tolist() == [90, 91, 80, 81]
    assert (query.undo(query.apply(rows)) + gate.undo(gate.apply(rows))).tolist() == rows.tolist()


def test_one_is_added_in_the_given_type():
    """A bfloat16 norm weight of 3.140625: added in bfloat16 it would become 4.125."""
    stored = AddOne().apply(np.array([3.140625], np.float32))
    assert stored.dtype == np.float32 and stored[0] == np.float32(4.140625)


def test_padding_appends_zeros():
    assert PadZeros(0, 2, 4).apply(np.ones((2, 2))).tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    assert PadZeros(1, 2, 3).apply(np.ones((2, 2))).tolist() == [[1, 1, 0], [1, 1, 0]]


def test_convolution_kernel_loses_its_middle_axis():
    kernel = random(6, 1, 4)
    assert np.array_equal(DropMiddleAxis().apply(kernel), kernel[:, 0])


INVERTIBLE = {
    "pairs of a matrix": (InterleavePairs(4, 6, 6), (24, 5)),
    "pairs of a vector": (InterleavePairs(4, 6, 4), (24,)),
    "pairs of one head": (InterleavePairs(1, 32, 8), (32,)),
    "pad rows": (PadZeros(0, 7, 32), (7, 3)),
    "pad columns": (PadZeros(1, 7, 32), (3, 7)),
    "middle axis": (DropMiddleAxis(), (6, 1, 4)),
}


@pytest.mark.parametrize("name", INVERTIBLE)
def test_steps_can_be_undone_exactly(name):
    step, shape = INVERTIBLE[name]
    source = random(*shape)
    array = step.apply(source)
    assert array.dtype == source.dtype
    assert step.source_shape(array.shape) == shape
    assert np.array_equal(step.undo(array), source)
    assert np.array_equal(step.apply(step.undo(array)), array)


def test_adding_one_can_be_undone_in_float64():
    """The file's float32 factor is what the reference must apply, so 1 + undo(w) is w to the last bit."""
    factors = np.concatenate([random(1000), np.float32([0, 1e-20, -1e-9, 1, -1, 300])]).astype(np.float64)
    large = np.abs(factors) > 1e-8
    assert np.array_equal(AddOne().apply(AddOne().undo(factors))[large], factors[large])


def test_chains_run_forwards_and_backwards():
    steps = (TakePart(0, 2, 2, 4), InterleavePairs(2, 4, 4))
    source = random(16, 3)
    array = apply_steps(steps, source)
    assert array.shape == (8, 3) and source_shape(steps, array.shape) == source.shape
    kept = undo_steps(steps, array).reshape(2, 2, 4, 3)
    assert np.array_equal(kept[:, 0], source.reshape(2, 2, 4, 3)[:, 0])
    assert not kept[:, 1].any()


REFUSED = {
    "pairs": (InterleavePairs(4, 6, 6), (23, 5)),
    "part": (TakePart(0, 2, 4, 6), (24, 5)),
    "pad": (PadZeros(0, 7, 32), (8, 3)),
    "kernel of two inputs": (DropMiddleAxis(), (6, 2, 4)),
    "flat kernel": (DropMiddleAxis(), (6, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_shapes_are_refused(name):
    step, shape = REFUSED[name]
    with pytest.raises(ValueError, match=r"shape \(\d"):
        step.apply(random(*shape))
