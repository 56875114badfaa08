"""Numbers that published bug reports and plain arithmetic give, asked of the reference (oracle/reference.py)."""

import numpy as np
import pytest
from mlb import (
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_YARN,
    Header,
    read_model,
    write_model,
)

from oracle.reference import Reference, decay_of, delta_step, inverse_frequencies, rotate, soft_cap


def header(**fields):
    sizes = {"dim": 128, "n_layers": 1, "n_heads": 2, "n_kv_heads": 2, "hidden_dim": 32, "vocab": 8, "max_seq": 64}
    return Header(**sizes | fields)


def llama3(**fields):
    return header(rope_type=ROPE_LLAMA3, rope_low_freq_factor=1, rope_high_freq_factor=4, rope_theta=500000, **fields)


def ratios(scaled):
    """Scaled frequencies over those without scaling."""
    plain = header(rope_theta=scaled.rope_theta, head_dim=scaled.head_dim)
    return inverse_frequencies(scaled) / inverse_frequencies(plain)


def test_llama3_frequencies_of_head_64():
    scaled = llama3(head_dim=64, rope_factor=32, rope_orig_max_seq=8192)
    got = ratios(scaled)
    assert np.array_equal(got[:15], np.ones(15))
    assert got[15:18] == pytest.approx([0.60557, 0.30374, 0.10345], abs=5e-6)
    assert got[18:] == pytest.approx(np.full(14, 1 / 32))
    assert inverse_frequencies(scaled)[15] == pytest.approx(0.00129054793, rel=1e-8)


def test_llama3_frequencies_of_head_128():
    got = ratios(llama3(head_dim=128, rope_factor=8, rope_orig_max_seq=8192))
    assert np.array_equal(got[:29], np.ones(29))
    assert got[[29, 34]] == pytest.approx([0.82817, 0.19021], abs=5e-6)
    assert np.all(np.diff(got[28:36]) < 0)
    assert got[35:] == pytest.approx(np.full(29, 1 / 8))


def test_linear_scaling_is_for_layers_with_the_global_base_only():
    scaled = header(rope_type=ROPE_LINEAR, rope_factor=8, rope_theta=1e6, rope_local_theta=1e4)
    assert 8 * inverse_frequencies(scaled)[0] == 1.0
    assert 8 * inverse_frequencies(scaled, local=True)[0] == 8.0
    assert inverse_frequencies(scaled, local=True)[1] == pytest.approx(1e4 ** (-2 / 64))


def test_yarn_frequencies():
    """Head 64, base 10000, original context 64: d(4) = 3.25…, so the ramp begins at 3; d(1) = 8.06…, ends at 9."""
    scaled = header(
        rope_type=ROPE_YARN,
        rope_factor=4,
        rope_low_freq_factor=4,
        rope_high_freq_factor=1,
        rope_orig_max_seq=64,
        rope_attn_factor=1,
    )
    ramp = np.clip((np.arange(32) - 3) / 6, 0, 1)
    assert ratios(scaled) == pytest.approx(ramp / 4 + 1 - ramp)


def test_yarn_of_equal_bounds_is_a_step():
    """d(64) is below 0 and so is d(10.5), just: the ramp begins and ends at 0."""
    scaled = header(
        rope_type=ROPE_YARN,
        rope_factor=4,
        rope_low_freq_factor=64,
        rope_high_freq_factor=10.5,
        rope_orig_max_seq=64,
        rope_attn_factor=1,
    )
    assert ratios(scaled) == pytest.approx([1.0] + [0.25] * 31)


def test_rotation_turns_neighbours_and_leaves_the_rest():
    head = np.array([1.0, 0.0, 0.0, 2.0, 5.0, 6.0])
    assert rotate(head, np.array([np.pi / 2, np.pi]), 1.0) == pytest.approx([0, 1, 0, -2, 5, 6])
    assert rotate(head, np.array([0.0, 0.0]), 1.5) == pytest.approx([1.5, 0, 0, 3, 5, 6])


def test_soft_cap():
    assert soft_cap(np.array([100.0]), 50.0) == pytest.approx(48.2014, abs=5e-5)
    assert soft_cap(np.array([60.0]), 30.0) == pytest.approx(28.9208, abs=5e-5)
    assert soft_cap(np.array([60.0]), 0.0) == 60.0


def test_delta_rule_step_by_step():
    steps = [  # query, key, value, a, b → decay, beta, output
        ((1, 0), (1, 0), (1, 2), 0, 0, 0.5, 0.5, (0.35355, 0.70711)),
        ((1, 1), (0, 1), (3, 4), 0, 0, 0.5, 0.5, (0.875, 1.25)),
        ((1, 0), (1, 0), (5, 6), 1, 2, 0.268941, 0.880797, (3.11975, 3.74824)),
    ]
    state = np.zeros((2, 2))
    for query, key, value, a, b, decay, beta, expected in steps:
        got_decay = decay_of(np.array(a), np.array(0.0), np.array(0.0))
        got_beta = 1 / (1 + np.exp(-b))
        assert got_decay == pytest.approx(decay, abs=5e-7)
        assert got_beta == pytest.approx(beta, abs=5e-7)
        state, output = delta_step(state, *map(np.array, (query, key, value)), got_decay, got_beta)
        assert output == pytest.approx(expected, abs=1e-5)


# ---------------------------------------------------------------- whole models


def model_of(path, header, layer_flags=None, **arrays):
    """A model whose arrays are given by name; norms are ones and everything else is zero."""

    def provide(spec):
        if spec.base_name in arrays:
            return np.asarray(arrays[spec.base_name], np.float32)
        return (np.ones if "norm" in spec.name else np.zeros)(spec.shape, np.float32)

    write_model(path, header, layer_flags, provide)
    return read_model(path)


def seen_positions(tmp_path, layer_flags, **fields):
    """Which positions the last of 6 attends to, and how much: uniform scores, every token's value is its own unit."""
    head = header(
        dim=32, n_heads=1, n_kv_heads=1, vocab=8, shared_classifier=1, layer_flags=int(bool(layer_flags)), **fields
    )
    head.n_layers = len(layer_flags) if layer_flags else 1
    model = model_of(tmp_path / "m.mlb", head, layer_flags, tok_emb=np.eye(8, 32), wv=np.eye(32))
    seen = []
    reference = Reference(model, observe=lambda name, x: seen.append(x) if name == "layers.0.wo" else None)
    for token in range(6):
        reference.step(token)
    return seen[5][:8] / seen[0][0]  # the first position sees itself alone


def test_window_counts_the_position_itself(tmp_path):
    quarter = [0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0]
    assert seen_positions(tmp_path, None, sliding_window=4) == pytest.approx(quarter)
    assert seen_positions(tmp_path, bytes([FLAG_WINDOW]), sliding_window=4) == pytest.approx(quarter)


@pytest.mark.parametrize("flags,window", [(None, 0), (bytes([0]), 4), (bytes([FLAG_NOPE]), 4), (bytes([1]), 0)])
def test_no_window_sees_all(tmp_path, flags, window):
    sixth = [1 / 6] * 6 + [0, 0]
    assert seen_positions(tmp_path, flags, sliding_window=window) == pytest.approx(sixth)


def scores_change_when_shifted(tmp_path, flag):
    """Whether one more token before a pair of tokens, itself out of the window, changes what the layer gives."""
    rng = np.random.default_rng(3)
    matrices = {name: rng.standard_normal((32, 32)) / 3 for name in ("wq", "wk", "wv", "wo")}
    head = header(
        dim=32, n_heads=1, n_kv_heads=1, vocab=8, shared_classifier=1, layer_flags=1, rope_local_theta=50, head_dim=32
    )
    head.sliding_window = 2
    model = model_of(
        tmp_path / "m.mlb", head, bytes([FLAG_WINDOW | flag]), tok_emb=rng.standard_normal((8, 32)), **matrices
    )

    def last(tokens):
        reference = Reference(model)
        return [reference.step(token) for token in tokens][-1]

    same_distance = np.abs(last([5, 1, 2]) - last([1, 2])).max()
    swapped = np.abs(last([1, 2, 2]) - last([2, 1, 2])).max()
    assert same_distance < 1e-12  # RoPE depends on distances only
    return swapped


def test_every_layer_kind_attends(tmp_path):
    results = [scores_change_when_shifted(tmp_path, flag) for flag in (0, FLAG_LOCAL_ROPE, FLAG_NOPE)]
    assert min(results) > 1e-3
    assert len({round(result, 6) for result in results}) == 3
