"""The tiny models: every feature of the format is in one of them, and their numbers are fit to test a forward pass."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from mlb import (
    ACT_GELU,
    FIELDS,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    MASK_ALL,
    MASK_O,
    MASK_QK,
    MASK_TOK_EMB,
    MASK_V,
    MASK_W2,
    MASK_W13,
    MASK_WCLS,
    Q4_0,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_PLAIN,
    ROPE_YARN,
    tensor_specs,
    verify_model,
)
from tiny import FEATURES, make_tiny, write_tiny

# Files that other tests' expectations were made with. If a change here is meant, all golden files must be made anew.
DIGESTS = {
    "llama": "cacaed8b82fb14e0",
    "q4_f16": "a9c95acf8a4e2fb8",
    "everything": "786ed779b1c1260a",
}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@pytest.mark.parametrize("feature", FEATURES)
def test_is_a_small_valid_file(feature: str, tmp_path: Path):
    path = tmp_path / "a.mlb"
    write_tiny(path, feature)
    verify_model(path)
    assert path.stat().st_size <= 200_000


@pytest.mark.parametrize("feature", DIGESTS)
def test_bytes_are_the_same_everywhere(feature: str, tmp_path: Path):
    write_tiny(tmp_path / "a.mlb", feature)
    assert digest(tmp_path / "a.mlb") == DIGESTS[feature]


def test_seeds(tmp_path: Path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_tiny(tmp_path / name, "llama", seed)
    a, b, c = (digest(tmp_path / name) for name in "abc")
    assert a == b
    assert a != c


def test_features_share_the_weights_of_what_they_share():
    (header, flags, one), (_, _, other) = make_tiny("llama"), make_tiny("rope_yarn")
    specs = tensor_specs(header, flags)
    assert all((one(spec) == other(spec)).all() for spec in specs)
    values = [one(spec).tobytes() for spec in specs]
    assert len(set(values)) == len(values)  # and no two tensors are the same


def test_every_field_is_used():
    headers = [make_tiny(feature).header for feature in FEATURES]
    for name in FIELDS:
        assert any(getattr(header, name) for header in headers), name
    assert {header.rope_type for header in headers} == {ROPE_PLAIN, ROPE_LLAMA3, ROPE_LINEAR, ROPE_YARN}
    assert {header.wtype for header in headers} == {1, 2}
    assert {(header.wtype, header.scale_f16) for header in headers} == {(1, 0), (1, 1), (2, 0), (2, 1)}
    masks = {header.q8_mask for header in headers}
    assert masks >= {0, MASK_TOK_EMB, MASK_WCLS, MASK_QK, MASK_V, MASK_O, MASK_W13, MASK_W2, MASK_ALL}
    assert {header.shared_classifier for header in headers if header.q8_mask == MASK_WCLS} == {0, 1}
    assert max(header.max_seq for header in headers) == 1 << 24


def test_every_flag_is_used():
    flags = {bits for feature in FEATURES for bits in make_tiny(feature).layer_flags or b""}
    assert flags == {
        0,
        FLAG_WINDOW,
        FLAG_LOCAL_ROPE,
        FLAG_WINDOW | FLAG_LOCAL_ROPE,
        FLAG_NOPE,
        FLAG_WINDOW | FLAG_NOPE,
        FLAG_LINEAR,
    }


def test_shapes_that_catch_shortcuts():
    """Head counts, head sizes and row counts that only code for the general case gets right."""
    headers = [make_tiny(feature).header for feature in FEATURES]
    assert {header.n_heads // header.n_kv_heads for header in headers} >= {1, 2, 8}
    assert any(header.n_kv_heads == 1 < header.n_heads for header in headers)
    assert any(header.head_size % 8 for header in headers)
    assert any(header.q_dim != header.dim for header in headers)
    assert any(header.rot_size < header.head_size for header in headers)
    assert any(header.vocab % 4 for header in headers)
    assert any(header.lin_k_heads and header.lin_v_heads == 2 * header.lin_k_heads for header in headers)
    assert any(header.lin_k_heads and header.lin_v_heads == header.lin_k_heads for header in headers)
    assert any(header.lin_k_heads and header.lin_k_dim != header.lin_v_dim for header in headers)
    assert {header.lin_conv for header in headers} >= {0, 3, 4}
    for feature in FEATURES:
        header = make_tiny(feature).header
        if header.sliding_window:
            assert header.sliding_window <= 8, f"{feature}: a short prompt would not reach past the window"


def test_everything_means_everything():
    header, flags, _ = make_tiny("everything")
    unset = {name for name in FIELDS if not getattr(header, name)}
    assert unset == {"shared_classifier"}
    assert (header.wtype, header.rope_type, header.act) == (Q4_0, ROPE_YARN, ACT_GELU)
    assert {bit for bit in (1, 2, 4, 8) for layer in flags if layer & bit} == {1, 2, 4, 8}


def root_mean_square(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


@pytest.mark.parametrize("feature", ["llama", "qwen35", "gemma3"])
def test_magnitudes(feature: str):
    """Rows that keep the size of their input, norms around 1, logits of several units."""
    header, flags, provide = make_tiny(feature)
    weights = {spec.name: provide(spec) for spec in tensor_specs(header, flags)}
    assert 2.7 < root_mean_square(weights["tok_emb"]) * header.dim**0.5 < 3.3
    for spec in tensor_specs(header, flags):
        values = weights[spec.name]
        assert np.isfinite(values).all()
        assert len(np.unique(values)) > values.size * 0.9, f"{spec.name}: repeated values"
        if spec.base_name in ("wq", "w1", "lqkv"):
            assert 0.9 < root_mean_square(values) * spec.cols**0.5 < 1.6, spec.name
        if spec.base_name in ("attn_norm", "ffn_norm", "final_norm"):
            assert 0.5 < values.min() < 1 < values.max() < 1.5, spec.name


def test_weights_look_normal():
    header, flags, provide = make_tiny("llama", seed=3)
    spec = next(spec for spec in tensor_specs(header, flags) if spec.name == "tok_emb")
    values = provide(spec).astype(np.float64).reshape(-1)
    values /= values.std()
    assert abs(values.mean()) < 0.03
    assert 0.66 < (np.abs(values) < 1).mean() < 0.70
    assert 0.93 < (np.abs(values) < 2).mean() < 0.97
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(values[: -header.dim], values[header.dim :])[0, 1]) < 0.03
