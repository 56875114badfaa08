"""tools/tinyloop.py: header rules, exact sizes, packing, the quantization rule, and the command line."""

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tinyloop
import tinyloop_cli
from tinyloop import Header, TinyLoopError, parse_model, random_weights, read_model, unpack_header, write_weights
from tinyloop_cli import TINY
from tinyloop_layout import FIELD_OFFSETS, HEADER_SIZES, file_size
from tinyloop_quant import Codes, QuantizeError, code_levels, pack_codes, quantize, unpack_codes
from tinyloop_reference import logits

KINDS = [
    replace(TINY, version=version, bits=bits, embed_factor_dim=factor)
    for version in (1, 2, 3)
    for bits in (2, 4)
    for factor in (0, 32)
    if version > 1 or bits == 4
]


def written(tmp_path: Path, header: Header, seed: int = 0) -> Path:
    path = tmp_path / "model.tinyloop"
    write_weights(path, header, random_weights(header, seed))
    return path


@pytest.mark.parametrize("header", KINDS, ids=lambda h: f"v{h.version}-int{h.bits}-e{h.embed_factor_dim}")
def test_round_trip(tmp_path: Path, header: Header) -> None:
    path = written(tmp_path, header)
    model = read_model(path)
    assert model.header == header
    assert path.stat().st_size == file_size(header)
    assert struct.unpack("<2I", model.data[:8]) == (0x504C4C54, header.version)
    again = tmp_path / "again.tinyloop"
    tinyloop.write_model(again, header, lambda tensor: model.raw(tensor.name))
    assert again.read_bytes() == model.data
    weights = random_weights(header)
    for name, array in model.weights().items():
        error = np.abs(array - weights[name]).max() / np.abs(weights[name]).max()
        assert error < {"f32": 1e-6, "f16": 1e-3}.get(model.offsets[name][0].kind, {4: 0.1, 2: 0.7}[header.bits])


def test_bytes_of_a_matrix() -> None:
    """By hand, as docs/TINYLOOP.md draws them."""
    codes = np.arange(32, dtype=np.uint8)[None]
    assert pack_codes(codes % 16, 4).tolist() == [j | j << 4 for j in range(16)]
    packed = pack_codes(codes % 4, 2)
    assert packed.tolist() == [0, 0x55, 0xAA, 0xFF] * 2
    first = np.zeros(32, dtype=np.uint8)
    first[[0, 9, 18, 31]] = 1, 2, 3, 1
    assert pack_codes(first, 2).tolist() == [1, 2 << 2, 3 << 4, 0, 0, 0, 0, 1 << 6]
    for bits in (2, 4):
        values = np.random.default_rng(0).integers(0, 1 << bits, (5, 96)).astype(np.uint8)
        assert (unpack_codes(pack_codes(values, bits), bits) == values.reshape(-1)).all()
    assert code_levels(4).tolist() == list(range(-8, 8))
    assert code_levels(2).tolist() == [-3, -1, 1, 3]


def test_quantization_rule() -> None:
    row = np.zeros((1, 32), dtype=np.float32)
    row[0, :4] = 7, -7, 1.5, -2.5
    int4 = quantize(row, 4, 32)
    assert int4.d.tolist() == [[1.0]]
    assert int4.codes[0, :5].tolist() == [15, 1, 10, 6, 8]
    row[:] = 1
    row[0, :4] = -3, 3, -1, 0
    int2 = quantize(row, 2, 32)
    assert int2.d[0, 0] == np.float16(35 / 32 * 0.9957 / 2 / 0.7979)
    assert int2.codes[0, :5].tolist() == [0, 3, 1, 2, 2]
    assert (quantize(np.zeros((1, 32)), 2, 32).dequantize() == 0).all()
    for bits in (2, 4):
        assert (quantize(np.zeros((1, 32)), bits, 32).dequantize() == 0).all()
        with pytest.raises(QuantizeError, match="float16"):
            quantize(np.full((1, 32), 1e6), bits, 32)
        with pytest.raises(QuantizeError, match="non-finite"):
            quantize(np.full((1, 32), np.nan), bits, 32)


def test_int2_is_near_the_best_for_normal_weights() -> None:
    """0.1175 is the least mean squared error of four uniform levels (Max 1960)."""
    x = np.random.default_rng(0).standard_normal((200, 1024)).astype(np.float32)
    assert ((quantize(x, 2, 256).dequantize() - x) ** 2).mean() < 0.1175 * 1.02


BAD_FIELDS = [
    ("magic", 0x504C4C55, "ML_E_FORMAT", "must be"),
    ("version", 0, "ML_E_FORMAT", "1, 2 or 3"),
    ("version", 4, "ML_E_FORMAT", "1, 2 or 3"),
    ("dim", 0, "ML_E_SHAPE", "at least 1"),
    ("dim", 48, "ML_E_SHAPE", "multiple of 32"),
    ("dim", 65536 + 32, "ML_E_SHAPE", "at most 65536"),
    ("n_heads", 0, "ML_E_SHAPE", "at least 1"),
    ("n_heads", 3, "ML_E_SHAPE", "multiple of n_heads"),
    ("n_heads", 64, "ML_E_SHAPE", "multiple of 2"),
    ("ffn_dim", 0, "ML_E_SHAPE", "at least 1"),
    ("ffn_dim", 100, "ML_E_SHAPE", "multiple of 32"),
    ("vocab_size", 0, "ML_E_SHAPE", "at least 1"),
    ("vocab_size", (1 << 24) + 1, "ML_E_SHAPE", "at most 16777216"),
    ("embed_factor_dim", 33, "ML_E_SHAPE", "multiple of 32"),
    ("embed_factor_dim", 65568, "ML_E_SHAPE", "at most 65536"),
    ("n_pre_blocks", 256, "ML_E_FORMAT", "at most 255"),
    ("default_loops", 0, "ML_E_FORMAT", "at least 1"),
    ("default_loops", 65, "ML_E_FORMAT", "at most 64"),
    ("bits", 3, "ML_E_FORMAT", "2 or 4"),
    ("group_size", 0, "ML_E_SHAPE", "at least 1"),
    ("group_size", 16, "ML_E_SHAPE", "multiple of 32"),
    ("group_size", 64, "ML_E_SHAPE", "ffn_dim 96 at offset 16: must be a multiple of group_size"),
]


@pytest.mark.parametrize(("field", "value", "status", "message"), BAD_FIELDS)
def test_bad_field(tmp_path: Path, field: str, value: int, status: str, message: str) -> None:
    data = bytearray(written(tmp_path, TINY).read_bytes())
    struct.pack_into("<I", data, FIELD_OFFSETS[field], value)
    with pytest.raises(TinyLoopError, match=message) as caught:
        parse_model(bytes(data))
    assert caught.value.status == status


def test_every_size_but_the_right_one_is_refused(tmp_path: Path) -> None:
    data = written(tmp_path, TINY).read_bytes()
    for size in [*range(0, 64), *range(64, len(data), 997), len(data) - 1]:
        with pytest.raises(TinyLoopError) as caught:
            parse_model(data[:size])
        assert caught.value.status == "ML_E_FORMAT"
    with pytest.raises(TinyLoopError, match=f"{len(data) + 1} bytes, its header implies {len(data)}"):
        parse_model(data + b"\0")


def test_header_sizes() -> None:
    for version, size in HEADER_SIZES.items():
        header = replace(TINY, version=version)
        assert len(header.pack()) == size
        assert unpack_header(header.pack()) == header


def test_a_version_cannot_hide_what_it_does_not_store(tmp_path: Path) -> None:
    header = replace(TINY, version=1, bits=2)
    with pytest.raises(TinyLoopError, match="version 1 cannot say"):
        write_weights(tmp_path / "x", header, random_weights(header))
    assert not (tmp_path / "x").exists()


def test_foreign_file_is_upgraded(tmp_path: Path) -> None:
    """A version 2 file whose group size is 64: read with the right value, and written as version 3."""
    header = replace(TINY, ffn_dim=128, group_size=64, bits=2)
    data = written(tmp_path, header).read_bytes()
    foreign = tmp_path / "foreign.tinyloop"
    foreign.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:40] + data[44:])
    assert tinyloop_cli.main(["inspect", str(foreign)]) == 1
    assert tinyloop_cli.main(["upgrade", str(foreign), "-o", str(tmp_path / "new"), "--group-size", "64"]) == 0
    assert (tmp_path / "new").read_bytes() == data


def test_writer_refuses_what_the_format_cannot_hold(tmp_path: Path) -> None:
    weights = random_weights(TINY)
    for name, value, message in [
        ("final_norm", np.full(64, np.inf), "final_norm: non-finite"),
        ("embed_proj", np.full((64, 32), 1e5), "embed_proj: non-finite"),
        ("blocks.1.wq", np.zeros((64, 32)), "blocks.1.wq: has shape"),
        ("blocks.1.wq", Codes(np.full((64, 64), 16, np.uint8), np.ones((64, 2), np.float32), 4), "too large"),
        ("blocks.1.wq", Codes(np.zeros((64, 64), np.uint8), np.full((64, 2), 0.1, np.float32), 4), "float16"),
    ]:
        with pytest.raises(QuantizeError, match=message):
            write_weights(tmp_path / "x", TINY, weights | {name: value})
        assert not (tmp_path / "x").exists()


def test_inspect_prints_what_a_diff_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, TINY)
    assert tinyloop_cli.main(["inspect", str(path), "--hash"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["version 3", "dim 64", "n_heads 4", "ffn_dim 96"]
    assert f"file_size {path.stat().st_size}" in lines
    assert lines[-1].startswith("head_weight f16 101x32 offset ")
    offset, size = int(lines[-1].split()[4]), int(lines[-1].split()[6])
    assert offset + size == path.stat().st_size


def test_reference_sees_every_tensor_and_loop() -> None:
    """A reference that left something out would prove nothing: each tensor and the number of loops must matter."""
    weights = random_weights(TINY)
    ids = [1, 50, 100, 7]
    expected = logits(TINY, weights, ids)
    for name in weights:
        changed = logits(TINY, weights | {name: weights[name] * 1.1}, ids)
        assert np.abs(changed - expected).max() > 1e-3, name
    for loops in (1, 2, 6):
        assert np.abs(logits(TINY, weights, ids, loops) - expected).max() > 1e-3
    assert (logits(TINY, weights, ids, 3) == expected).all()
    assert np.abs(logits(TINY, weights, ids[:2]) - expected[:2]).max() < 1e-12  # causal
