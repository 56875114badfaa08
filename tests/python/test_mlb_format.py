"""The .mlb writer and reader against sums by hand and against each other."""

import struct
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
from mlb import (
    E_SHAPE,
    FIELD_OFFSETS,
    FLAG_LINEAR,
    MASK_ALL,
    MASK_O,
    MASK_QK,
    MASK_TOK_EMB,
    MASK_V,
    MASK_W2,
    MASK_W13,
    MASK_WCLS,
    Q4_0,
    Header,
    MlbError,
    Quantized,
    QuantizeError,
    align,
    implied_size,
    iter_spans,
    read_model,
    tensor_specs,
    verify_model,
    write_model,
)
from quant import quantize_q4_0_fit, quantize_q4_0_round, quantize_q8_0
from tiny import make_tiny, write_tiny

# The format document's table, typed off it: offset, type, name.
DOCUMENT = """
8 u32 dim | 12 u32 n_layers | 16 u32 n_heads | 20 u32 n_kv_heads | 24 u32 hidden_dim | 28 u32 vocab | 32 u32 max_seq
36 f32 rope_theta | 40 f32 norm_eps | 44 u32 wtype | 48 u32 shared_classifier | 52 u32 rope_type | 56 f32 rope_factor
60 f32 rope_low_freq_factor | 64 f32 rope_high_freq_factor | 68 u32 rope_orig_max_seq | 72 u32 q8_mask
76 u32 qkv_bias | 80 u32 head_dim | 84 u32 qk_norm | 88 f32 rope_attn_factor | 92 u32 sliding_window
96 u32 layer_flags | 100 f32 rope_local_theta | 104 u32 act | 108 u32 post_norms | 112 f32 embed_scale
116 f32 attn_scale | 120 u32 scale_f16 | 124 f32 attn_softcap | 128 f32 final_softcap | 132 u32 rot_dim
136 u32 attn_gate | 140 u32 lin_k_heads | 144 u32 lin_v_heads | 148 u32 lin_k_dim | 152 u32 lin_v_dim | 156 u32 lin_conv
"""
ROWS = [row.split() for line in DOCUMENT.strip().splitlines() for row in line.split("|")]


def plain_header(**changes: float) -> Header:
    fields = {"dim": 32, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "hidden_dim": 64, "vocab": 5, "max_seq": 16}
    return Header(**fields | changes)


def ones(spec) -> np.ndarray:
    return np.ones(spec.shape, dtype=np.float32)


# ---------------------------------------------------------------- header


def test_every_field_lies_where_the_document_says():
    assert len(ROWS) == 38
    for i, (offset, kind, name) in enumerate(ROWS):
        at = int(offset)
        assert FIELD_OFFSETS[name] == at
        value = 1000 + i if kind == "u32" else 0.1 + i
        packed = replace(plain_header(), **{name: value}).pack()
        assert len(packed) == 256
        assert packed[at : at + 4] == struct.pack("<I" if kind == "u32" else "<f", value), name
        before = plain_header().pack()
        assert [j for j in range(256) if packed[j] != before[j] and not at <= j < at + 4] == [], name
    assert plain_header().pack()[:8] == b"MLB1\x01\0\0\0"
    assert plain_header().pack()[160:] == bytes(96)


def test_header_reads_back():
    values = {name: i + 3 if kind == "u32" else (i + 3) / 7 for i, (_, kind, name) in enumerate(ROWS)}
    header = Header(**values, magic=b"ABCD", version=9, reserved=bytes(range(96)))
    assert Header.unpack(header.pack()) == header
    assert header.norm_eps == float(np.float32(values["norm_eps"]))
    header.norm_eps = 0.1
    assert Header.unpack(header.pack()) == header


def test_header_holds_anything_that_fits_its_fields():
    assert replace(plain_header(), dim=0xFFFFFFFF, rope_theta=float("nan")).pack()[8:12] == b"\xff" * 4
    assert Header.unpack(bytes(256)).dim == 0
    for value in (-1, 1 << 32):
        with pytest.raises(ValueError, match="dim .* does not fit"):
            replace(plain_header(), dim=value)
    assert replace(plain_header(), rope_theta=1e39).rope_theta == float("inf")


def test_derived_sizes():
    header = plain_header()
    assert (header.head_size, header.q_dim, header.kv_dim, header.rot_size) == (16, 32, 16, 16)
    header = plain_header(head_dim=48, rot_dim=12, lin_k_heads=2, lin_v_heads=4, lin_k_dim=3, lin_v_dim=8)
    assert (header.head_size, header.q_dim, header.kv_dim, header.rot_size) == (48, 96, 48, 12)
    assert (header.lin_channels, header.lin_value_dim) == (2 * 2 * 3 + 4 * 8, 4 * 8)
    header.lin_k_heads = 0  # what the other fields hold does not matter then
    assert (header.lin_channels, header.lin_value_dim) == (0, 0)


# ---------------------------------------------------------------- layout by hand


def places(header: Header, flags: bytes | None) -> list[tuple[str, str, int, int]]:
    return [(span.name, span.part, span.offset, span.size) for span in iter_spans(header, flags)]


def test_layout_of_a_plain_model():
    """Q8_0, float32 scales, biases and q/k norms, classifier of its own: dim 32, hidden 64, kv_dim 16, 5 tokens."""
    expected = [
        ("tok_emb", "q", 256, 160),  # 5 x 32, padded to 192
        ("tok_emb", "d", 448, 20),  # 5 blocks x 4 bytes, padded to 64
        ("layers.0.attn_norm", "f32", 512, 128),
        ("layers.0.wq", "q", 640, 1024),
        ("layers.0.wq", "d", 1664, 128),
        ("layers.0.wk", "q", 1792, 512),
        ("layers.0.wk", "d", 2304, 64),
        ("layers.0.wv", "q", 2368, 512),
        ("layers.0.wv", "d", 2880, 64),
        ("layers.0.wo", "q", 2944, 1024),
        ("layers.0.wo", "d", 3968, 128),
        ("layers.0.bq", "f32", 4096, 128),
        ("layers.0.bk", "f32", 4224, 64),
        ("layers.0.bv", "f32", 4288, 64),
        ("layers.0.q_norm", "f32", 4352, 64),
        ("layers.0.k_norm", "f32", 4416, 64),
        ("layers.0.ffn_norm", "f32", 4480, 128),
        ("layers.0.w1", "q", 4608, 2048),
        ("layers.0.w1", "d", 6656, 256),
        ("layers.0.w2", "q", 6912, 2048),
        ("layers.0.w2", "d", 8960, 256),
        ("layers.0.w3", "q", 9216, 2048),
        ("layers.0.w3", "d", 11264, 256),
        ("final_norm", "f32", 11520, 128),
        ("wcls", "q", 11648, 160),  # padded to 192
        ("wcls", "d", 11840, 20),
    ]
    header = plain_header(qkv_bias=1, qk_norm=1)
    assert places(header, None) == expected
    assert implied_size(header, None) == 11860


def test_layout_of_a_mixed_model():
    """Layer flags, one linear and one gated attention layer, Q4_0 with wv and lz as Q8_0, float16 scales, post norms.

    dim 32, hidden 64, q_dim 32, kv_dim 16; K 2, V 4, dk 6, dv 8, conv 3: 56 channels, 32 values.
    """
    expected = [
        ("layer_flags", "u8", 256, 2),  # padded to 64
        ("tok_emb", "q", 320, 80),  # 5 x 32 / 2, padded to 128
        ("tok_emb", "d", 448, 10),  # 5 x 2, padded to 64
        ("layers.0.attn_norm", "f32", 512, 128),
        ("layers.0.lqkv", "q", 640, 896),  # 56 x 32 / 2
        ("layers.0.lqkv", "d", 1536, 112),  # 56 x 2, padded to 128
        ("layers.0.lz", "q", 1664, 1024),  # 32 x 32, Q8_0
        ("layers.0.lz", "d", 2688, 64),
        ("layers.0.lb", "q", 2752, 128),  # 4 x 32, Q8_0
        ("layers.0.lb", "d", 2880, 8),
        ("layers.0.la", "q", 2944, 128),
        ("layers.0.la", "d", 3072, 8),
        ("layers.0.lconv", "f32", 3136, 672),  # 56 x 3 x 4, padded to 704
        ("layers.0.dt_bias", "f32", 3840, 16),
        ("layers.0.A_log", "f32", 3904, 16),
        ("layers.0.lnorm", "f32", 3968, 32),
        ("layers.0.lout", "q", 4032, 512),  # 32 x 32 / 2
        ("layers.0.lout", "d", 4544, 64),
        ("layers.0.ffn_norm", "f32", 4608, 128),
        ("layers.0.w1", "q", 4736, 1024),
        ("layers.0.w1", "d", 5760, 128),
        ("layers.0.w2", "q", 5888, 1024),
        ("layers.0.w2", "d", 6912, 128),
        ("layers.0.w3", "q", 7040, 1024),
        ("layers.0.w3", "d", 8064, 128),
        ("layers.0.post_attn_norm", "f32", 8192, 128),
        ("layers.0.post_ffn_norm", "f32", 8320, 128),
        ("layers.1.attn_norm", "f32", 8448, 128),
        ("layers.1.wq", "q", 8576, 512),
        ("layers.1.wq", "d", 9088, 64),
        ("layers.1.wk", "q", 9152, 256),
        ("layers.1.wk", "d", 9408, 32),
        ("layers.1.wv", "q", 9472, 512),  # Q8_0
        ("layers.1.wv", "d", 9984, 32),
        ("layers.1.wo", "q", 10048, 512),
        ("layers.1.wo", "d", 10560, 64),
        ("layers.1.wg", "q", 10624, 512),
        ("layers.1.wg", "d", 11136, 64),
        ("layers.1.ffn_norm", "f32", 11200, 128),
        ("layers.1.w1", "q", 11328, 1024),
        ("layers.1.w1", "d", 12352, 128),
        ("layers.1.w2", "q", 12480, 1024),
        ("layers.1.w2", "d", 13504, 128),
        ("layers.1.w3", "q", 13632, 1024),
        ("layers.1.w3", "d", 14656, 128),
        ("layers.1.post_attn_norm", "f32", 14784, 128),
        ("layers.1.post_ffn_norm", "f32", 14912, 128),
        ("final_norm", "f32", 15040, 128),
    ]
    linear = {"lin_k_heads": 2, "lin_v_heads": 4, "lin_k_dim": 6, "lin_v_dim": 8, "lin_conv": 3}
    header = plain_header(
        n_layers=2, layer_flags=1, wtype=Q4_0, q8_mask=MASK_V, scale_f16=1, attn_gate=1, post_norms=1,
        shared_classifier=1, **linear,
    )  # fmt: skip
    flags = bytes([FLAG_LINEAR, 0])
    assert places(header, flags) == expected
    assert implied_size(header, flags) == 15168


def test_classes_of_the_mask():
    linear = {"lin_k_heads": 2, "lin_v_heads": 4, "lin_k_dim": 6, "lin_v_dim": 8, "lin_conv": 3}
    header = plain_header(n_layers=2, layer_flags=1, wtype=Q4_0, attn_gate=1, **linear)
    for mask, names in {
        0: "",
        MASK_TOK_EMB: "tok_emb",
        MASK_WCLS: "wcls",
        MASK_QK: "lqkv wq wk wg",
        MASK_V: "lz wv",
        MASK_O: "lout wo",
        MASK_W13: "w1 w3",
        MASK_W2: "w2",
        MASK_ALL: "tok_emb lqkv lz lout w1 w2 w3 wq wk wv wo wg wcls",
    }.items():
        specs = tensor_specs(replace(header, q8_mask=mask), bytes([FLAG_LINEAR, 0]))
        got = {spec.base_name for spec in specs if spec.kind == "q8_0"}
        assert got == set(names.split()) | {"lb", "la"}, mask
    for mask in (MASK_TOK_EMB, MASK_WCLS):  # either will do when the classifier is shared
        specs = tensor_specs(plain_header(wtype=Q4_0, q8_mask=mask, shared_classifier=7))
        assert specs[0].kind == "q8_0"
        assert specs[-1].name == "final_norm"


# ---------------------------------------------------------------- writing and reading, every feature


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("tiny")

    def path_of(feature: str) -> Path:
        path = folder / f"{feature}.mlb"
        if not path.exists():
            write_tiny(path, feature)
        return path

    return path_of


def expected_storage(spec, weights: np.ndarray) -> np.ndarray | Quantized:
    if spec.kind == "f32":
        return weights
    return (quantize_q8_0 if spec.kind == "q8_0" else quantize_q4_0_fit)(weights, spec.scale_f16)


@pytest.mark.parametrize("feature", tiny.FEATURES)
def test_round_trip(feature: str, tiny_file):
    header, flags, provide = make_tiny(feature)
    model = verify_model(tiny_file(feature))
    assert model.header == header
    assert model.layer_flags == flags
    assert model.tensors() == tensor_specs(header, flags)
    for spec in model.tensors():
        expected, got = expected_storage(spec, provide(spec)), model.raw(spec.name)
        if isinstance(expected, Quantized):
            assert (got.kind, got.q.dtype, got.d.dtype) == (spec.kind, np.int8, np.float32)
            assert (got.q == expected.q).all(), spec.name
            assert got.d.tobytes() == expected.d.tobytes(), spec.name
            assert (model.array(spec.name) == expected.dequantize()).all()
        else:
            assert got.shape == spec.shape
            assert got.tobytes() == expected.tobytes(), spec.name


@pytest.mark.parametrize("feature", tiny.FEATURES)
def test_places_and_padding(feature: str, tiny_file):
    model = read_model(tiny_file(feature))
    spans = model.spans()
    assert spans[0].offset == 256
    for span, following in zip(spans, spans[1:], strict=False):
        assert following.offset == align(span.offset + span.size)
    last = spans[-1].offset + spans[-1].size
    assert implied_size(model.header, model.layer_flags) == last
    assert len(model.data) == align(last)
    used = np.zeros(len(model.data), dtype=bool)
    used[:256] = True
    for span in spans:
        used[span.offset : span.offset + span.size] = True
    assert not model.data[~used].any()


def test_arrays_of_a_model_outlive_nothing(tmp_path: Path):
    """What raw() and array() give is the caller's own: changing it changes neither file nor model."""
    write_tiny(tmp_path / "a.mlb", "one_layer")
    model = read_model(tmp_path / "a.mlb")
    for name in ("tok_emb", "final_norm"):
        before = model.array(name)
        value = model.raw(name)
        (value.q if isinstance(value, Quantized) else value)[:] = 0
        assert (model.array(name) == before).all()


def test_unknown_tensor(tiny_file):
    with pytest.raises(KeyError, match="no tensor wcls"):
        read_model(tiny_file("llama")).raw("wcls")


def test_smallest_f16_scale_is_not_zero(tmp_path: Path):
    path = tmp_path / "a.mlb"
    write_tiny(path, "q8_f16")
    model = read_model(path)
    scales = model.spans_of("tok_emb")[1]
    data = bytearray(path.read_bytes())
    data[scales.offset : scales.offset + 2] = b"\x01\x00"
    path.write_bytes(data)
    assert read_model(path).raw("tok_emb").d[0, 0] == np.float32(5.9604645e-08)


# ---------------------------------------------------------------- the writer's promises


def test_writer_holds_one_tensor_at_a_time(tmp_path: Path):
    header, flags, provide = make_tiny("everything")
    seen, alive = [], []

    def watched(spec) -> np.ndarray:
        assert [name for name, ref in alive if ref() is not None] == []
        weights = provide(spec)
        seen.append(spec)
        alive[:] = [(spec.name, weakref.ref(weights))]
        return weights

    write_model(tmp_path / "a.mlb", header, flags, watched)
    assert seen == tensor_specs(header, flags)


def test_writer_takes_what_is_quantized_already(tmp_path: Path, tiny_file):
    model = read_model(tiny_file("everything"))
    write_model(tmp_path / "a.mlb", model.header, model.layer_flags, lambda spec: model.raw(spec.name))
    assert (tmp_path / "a.mlb").read_bytes() == tiny_file("everything").read_bytes()


def test_rule_and_importance(tmp_path: Path):
    header, flags, provide = make_tiny("q4")
    path = tmp_path / "a.mlb"
    specs = {spec.name: spec for spec in tensor_specs(header, flags)}
    importance = np.arange(64) + 1.0
    wq, wk = specs["layers.0.wq"], specs["layers.0.wk"]
    led = quantize_q4_0_fit(provide(wq), importance=importance)
    assert (led.q != quantize_q4_0_fit(provide(wq)).q).any()

    write_model(path, header, flags, provide, q4_rule="round")
    assert (read_model(path).raw(wq.name).q == quantize_q4_0_round(provide(wq)).q).all()

    given = {wq.name: importance}
    for argument in (given, lambda spec: given.get(spec.name)):
        write_model(path, header, flags, provide, importance=argument)
        model = read_model(path)
        assert (model.raw(wq.name).q == led.q).all()
        assert (model.raw(wk.name).q == quantize_q4_0_fit(provide(wk)).q).all()
    with pytest.raises(ValueError, match="fit or round, not best"):
        write_model(path, header, flags, provide, q4_rule="best")
    with pytest.raises(QuantizeError, match=r"layers\.0\.wq: importance has shape \(3,\)"):
        write_model(path, header, flags, provide, importance={wq.name: np.ones(3)})


def refused(tmp_path: Path, name: str, value: object, match: str, error=QuantizeError, **changes: float) -> None:
    """Writing `value` for one tensor fails with the message, and an older file of that name stays as it was."""
    path = tmp_path / "a.mlb"
    path.write_bytes(b"older")
    with pytest.raises(error, match=match):
        write_model(path, plain_header(**changes), None, lambda spec: value if spec.name == name else ones(spec))
    assert path.read_bytes() == b"older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mlb"]


def test_weights_that_cannot_be_written(tmp_path: Path):
    nan, big = np.ones((32, 32)), np.ones((32, 32))
    nan[3, 5], big[2, 31] = np.nan, 1e7
    wq = "layers.0.wq"
    refused(tmp_path, wq, nan, r"^layers\.0\.wq: non-finite weight in row 3, block 0$")
    refused(tmp_path, wq, big, r"^layers\.0\.wq: scale 78740\.2 in row 2, block 0 is above 65504", scale_f16=1)
    refused(tmp_path, wq, big, r"^layers\.0\.wq: scale .* is above 65504", scale_f16=1, wtype=Q4_0)
    refused(tmp_path, wq, np.ones((32, 64)), r"^layers\.0\.wq: has shape \(32, 64\), the header implies \(32, 32\)$")
    for value in (np.nan, np.inf, 1e39):
        refused(tmp_path, "final_norm", np.full(32, value), "^final_norm: non-finite weight$")
    refused(tmp_path, "final_norm", np.ones((1, 32)), r"^final_norm: has shape \(1, 32\)")


def test_quantized_weights_that_cannot_be_written(tmp_path: Path):
    good = quantize_q8_0(np.ones((32, 32)), True)
    least, d = good.q.copy(), good.d.copy()
    least[4, 4], d[5, 0] = -128, np.nan
    wq = "layers.0.wq"
    for value, match, changes in (
        (Quantized(least, good.d, "q8_0"), "quants outside -127 to 127", {}),
        (Quantized(good.q, d, "q8_0"), "non-finite scale", {}),
        (Quantized(good.q, good.d * 1e9, "q8_0"), "above 65504", {"scale_f16": 1}),
        (Quantized(good.q, good.d * np.float32(1.0001), "q8_0"), "no float16 values", {"scale_f16": 1}),
        (Quantized(good.q, good.d, "q4_0"), "is stored as q8_0, but q4_0", {}),
        (good, "is stored as q4_0, but q8_0", {"wtype": Q4_0}),
        (Quantized(good.q, good.d, "q4_0"), "quants outside -8 to 7", {"wtype": Q4_0}),
        (Quantized(good.q[:1], good.d, "q8_0"), "has quants", {}),
        (Quantized(good.q, good.d[:1], "q8_0"), "has quants", {}),
    ):
        refused(tmp_path, wq, value, rf"^layers\.0\.wq: .*{match}", **changes)
    refused(tmp_path, "final_norm", good, "^final_norm: is stored as f32, but")


def test_headers_that_are_not_written(tmp_path: Path):
    refused(tmp_path, "", None, "n_kv_heads 3", MlbError, n_kv_heads=3)
    refused(tmp_path, "", None, "act 2", MlbError, act=2)
    refused(tmp_path, "", None, "1 layer flags are needed, 0 were given", ValueError, layer_flags=1)
    with pytest.raises(ValueError, match="layer_flags is 0"):
        write_model(tmp_path / "a.mlb", plain_header(), bytes(1), ones)
    with pytest.raises(MlbError, match=r"layer_flags\[0\]"):
        write_model(tmp_path / "a.mlb", plain_header(layer_flags=1), bytes([16]), ones)
    with pytest.raises(MlbError) as error:
        write_model(tmp_path / "a.mlb", plain_header(vocab=2), None, ones)
    assert error.value.status == E_SHAPE


def test_a_failing_provider_leaves_nothing(tmp_path: Path):
    def fail(spec) -> np.ndarray:
        raise RuntimeError("source is gone")

    with pytest.raises(RuntimeError, match="source is gone"):
        write_model(tmp_path / "a.mlb", plain_header(), None, fail)
    assert list(tmp_path.iterdir()) == []
