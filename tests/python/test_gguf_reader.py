"""GGUF files that are broken, hostile, or odd but valid."""

import shutil
import struct

import convert
import numpy as np
import pytest
from checkpoint_errors import CheckpointError
from converting import refused, run
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
from gguf_blocks import read_floats, read_weights
from gguf_map import ARCHITECTURES, config_of
from gguf_reader import BLOCK_TYPES, open_gguf
from gguf_rope import llama3_factors, llama3_parameters
from gguf_twins import write_twin
from hf_families import FAMILIES
from tiny_checkpoints import CONFIGS, random_tensors

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
F32_TENSOR, F16_TENSOR, Q8_0_TENSOR = 0, 1, 8


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, type_, payload):
    return text(name) + struct.pack("<I", type_) + payload


def info(name, dims, type_, offset):
    return text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims) + struct.pack("<IQ", type_, offset)


def build(keys=(), infos=(), data=b"", *, version=3, n_tensors=None, n_keys=None, alignment=32, tail=b""):
    """A file from its raw parts, which need not make sense."""
    counts = (len(infos) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys)
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data + tail


ARCH = key("general.architecture", STRING, text("llama"))
ONE = np.arange(8, dtype="<f4").tobytes()


def opened(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return open_gguf(path)


def fault(tmp_path, data):
    """The message about a file; always one line that names the file."""
    with pytest.raises(CheckpointError) as caught:
        opened(tmp_path, data)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "model.gguf")) and message.isprintable()
    return message.removeprefix(f"{tmp_path}/model.gguf: ")


# ---------------------------------------------------------------- valid


def test_every_kind_of_value(tmp_path):
    numbers = [
        key("u8", U8, b"\xff"),
        key("i8", I8, b"\xff"),
        key("u16", U16, b"\xff\xff"),
        key("i16", I16, b"\xff\xff"),
        key("u32", U32, b"\xff" * 4),
        key("i32", I32, b"\xff" * 4),
        key("u64", U64, b"\xff" * 8),
        key("i64", I64, b"\xff" * 8),
    ]
    others = [
        key("f32", F32, struct.pack("<f", 0.5)),
        key("f64", F64, struct.pack("<d", 0.1)),
        key("yes", BOOL, b"\x01"),
        key("no", BOOL, b"\x00"),
        key("empty", STRING, text("")),
        key("text", STRING, text("ä")),
        key("list", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + text(b"\xff")),
        key("ints", ARRAY, struct.pack("<IQ3i", I32, 3, 1, -2, 3)),
        key("floats", ARRAY, struct.pack("<IQ2f", F32, 2, 1.5, -2)),
        key("none", ARRAY, struct.pack("<IQ", F32, 0)),
    ]
    metadata = opened(tmp_path, build([*numbers, *others])).metadata
    wanted = {"u8": 255, "i8": -1, "u16": 65535, "i16": -1, "u32": 2**32 - 1, "i32": -1, "u64": 2**64 - 1, "i64": -1}
    for name, value in wanted.items():
        assert metadata.integer(name, at_least=-1) == value
        assert metadata.number(name) == float(value)
    assert (metadata.number("f32"), metadata.number("f64")) == (0.5, 0.1)
    assert (metadata.flag("yes"), metadata.flag("no")) == (True, False)
    assert (metadata.text("empty"), metadata.text("text")) == ("", "ä")
    assert metadata.texts("list") == [b"a", b"\xff"]
    assert metadata.integers("ints").tolist() == [1, -2, 3]
    assert metadata.numbers("floats").tolist() == [1.5, -2.0] and metadata.numbers("none").tolist() == []
    assert metadata.integer("absent", 7) == 7 and metadata.text("absent", None) is None
    assert "text" in metadata and "absent" not in metadata


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
@pytest.mark.parametrize("tail", [b"", b"\x00" * 100])
@pytest.mark.parametrize("version", [2, 3])
def test_alignment_trailing_bytes_and_versions(tmp_path, alignment, tail, version):
    keys = [ARCH] + ([] if alignment is None else [key("general.alignment", U32, struct.pack("<I", alignment))])
    second = max(alignment or 32, 16)
    infos = [info("b", [4, 2], F32_TENSOR, second), info("a", [8], F16_TENSOR, 0)]
    data = np.arange(8, dtype="<f2").tobytes().ljust(second, b"\xee") + ONE
    model = opened(tmp_path, build(keys, infos, data, version=version, alignment=alignment or 32, tail=tail))
    assert list(model.tensors) == ["b", "a"]
    assert np.array_equal(read_floats(model.tensors["a"]), np.arange(8))
    assert np.array_equal(read_floats(model.tensors["b"]), np.arange(8).reshape(2, 4))


@pytest.mark.parametrize("padding", range(32))
def test_header_that_ends_anywhere_before_the_alignment(tmp_path, padding):
    keys = [ARCH, key("x", STRING, text("y" * padding))]
    model = opened(tmp_path, build(keys, [info("a", [8], F32_TENSOR, 0)], ONE))
    assert np.array_equal(read_floats(model.tensors["a"]), np.arange(8))


def test_block_types_are_those_of_the_library():
    for number, type_ in BLOCK_TYPES.items():
        theirs = GGMLQuantizationType(number)
        assert (type_.name, (type_.block, type_.size)) == (theirs.name, GGML_QUANT_SIZES[theirs])


@pytest.mark.parametrize("number", sorted(set(BLOCK_TYPES) - {0, 1, 28}))
def test_every_type_is_decoded_as_the_library_decodes_it(tmp_path, number):
    type_ = BLOCK_TYPES[number]
    rows, cols = 3, 512
    raw = np.random.default_rng(number).integers(0, 120, (rows, cols // type_.block * type_.size), dtype=np.uint8)
    model = opened(tmp_path, build([ARCH], [info("w", [cols, rows], number, 0)], raw.tobytes()))
    weights = read_weights(model.tensors["w"])
    values = weights if isinstance(weights, np.ndarray) else weights.dequantize()
    assert values.shape == (rows, cols) and values.dtype == np.float32
    with np.errstate(all="ignore"):
        assert np.array_equal(values, quants.dequantize(raw, GGMLQuantizationType(number)), equal_nan=True)


# ---------------------------------------------------------------- broken


def good(keys=(), infos=None, data=ONE, **changes):
    """A valid file but for what is given."""
    return build([ARCH, *keys], infos or [info("a", [8], F32_TENSOR, 0)], data, **changes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (b"GGML" + bytes(40), "not a GGUF file"),
        (good(version=1), "version 1; supported"),
        (good(version=4), "version 4; supported"),
        (good(version=3 << 24), "a big-endian file"),
        (good(n_tensors=2**63), "9223372036854775808 tensors do not fit"),
        (good(n_keys=2**64 - 1), "metadata keys do not fit"),
        (good(n_tensors=2), "tensor"),
        (good(keys=[ARCH]), "the key general.architecture is there twice"),
        (good(keys=[key("", U8, b"\0")]), "metadata key 1 has 0 bytes"),
        (good(keys=[key(b"\xff\xfe", U8, b"\0")]), "is not UTF-8"),
        (good(keys=[key("k", 13, b"\0")]), "k has the unknown type 13"),
        (good(keys=[key("k", 2**32 - 1, b"\0")]), "k has the unknown type 4294967295"),
        (good(keys=[key("k", STRING, struct.pack("<Q", 2**63) + b"x")]), "k at byte"),
        (good(keys=[key("k", ARRAY, struct.pack("<IQ", U8, 2**63))]), "elements of k do not fit"),
        (good(keys=[key("k", ARRAY, struct.pack("<IQ", STRING, 2**61))]), "elements of k do not fit"),
        (good(keys=[key("k", ARRAY, struct.pack("<IQ", ARRAY, 1))]), "k is an array of the type 9"),
        (good(keys=[key("k", ARRAY, struct.pack("<IQ", 77, 1))]), "k is an array of the type 77"),
        (good(infos=[info("a", [8], F32_TENSOR, 0)] * 2), "tensor a is there twice"),
        (good(infos=[info("a", [], F32_TENSOR, 0)]), "tensor a has 0 dimensions"),
        (good(infos=[info("a", [1] * 5, F32_TENSOR, 0)]), "tensor a has 5 dimensions"),
        (good(infos=[text("a") + struct.pack("<I", 255) + bytes(99)]), "tensor a has 255 dimensions"),
        (good(infos=[text("a") + struct.pack("<I", 2**32 - 1) + bytes(99)]), "tensor a has 4294967295 dimensions"),
        (good(infos=[info("a", [8], 9999, 0)]), "tensor a has the type 9999"),
        (good(infos=[info("a", [8], 2**32 - 1, 0)]), "tensor a has the type 4294967295"),
        (good(infos=[info("a", [8], 4, 0)]), "tensor a has the type 4, which is unknown"),  # removed long ago
        (good(infos=[info("a", [8], 26, 0)]), "tensor a has the type 26, which is unknown or holds no weights"),
        (good(infos=[info("a", [0], F32_TENSOR, 0)]), "tensor a has an empty dimension"),
        (good(infos=[info("a", [1024, 2**42 + 1], F32_TENSOR, 0)]), "goes past the end of the file"),
        (good(infos=[info("a", [65536, 65537], F32_TENSOR, 0)]), "tensor a of 17180131328 bytes"),
        (good(infos=[info("a", [2**63, 2], F32_TENSOR, 0)]), "goes past the end of the file"),
        (good(infos=[info("a", [2**64 - 1] * 4, F32_TENSOR, 0)]), "goes past the end of the file"),
        (good(infos=[info("a", [33], Q8_0_TENSOR, 0)]), "rows of 33, which is no multiple of Q8_0's 32"),
        (
            good(infos=[info("a", [4], F32_TENSOR, 0), info("b", [4], F32_TENSOR, 16)]),
            "b starts at 16, not at a multiple",
        ),
        (good(infos=[info("a", [8], F32_TENSOR, 0), info("b", [8], F32_TENSOR, 0)]), "tensors a and b overlap"),
        (
            good(infos=[info("a", [9], F32_TENSOR, 0), info("b", [8], F32_TENSOR, 32)], data=ONE * 2),
            "tensors a and b overlap",
        ),
        (good(infos=[info("a", [8], F32_TENSOR, 2**63)]), "goes past the end"),
        (good(infos=[info("a", [8], F32_TENSOR, 2**64 - 32)]), "goes past the end"),
        (good(infos=[info("a\n\x1b[2J", [0], F32_TENSOR, 0)]), "tensor a\\n\\x1b[2J has an empty"),
        (good(data=ONE[:-1]), "goes past the end of the file"),
    ],
)
def test_broken(tmp_path, data, message):
    assert message in fault(tmp_path, data)


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        (U32, struct.pack("<I", 0)),
        (U32, struct.pack("<I", 3)),
        (U32, struct.pack("<I", 4)),
        (U32, struct.pack("<I", 2**30)),
        (U64, struct.pack("<Q", 2**63)),
        (I32, struct.pack("<i", 32)),
        (STRING, text("32")),
        (ARRAY, struct.pack("<IQI", U32, 1, 32)),
    ],
)
def test_alignment_that_is_none(tmp_path, type_, payload):
    message = fault(tmp_path, good(keys=[key("general.alignment", type_, payload)]))
    assert "general.alignment is" in message and "not a power of two from 8 to" in message


def small_file():
    keys = [ARCH, key("list", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + text("b")), key("n", U32, b"\1\0\0\0")]
    return build(keys, [info("w", [32, 2], Q8_0_TENSOR, 0), info("v", [8], F32_TENSOR, 96)], bytes(68 + 28) + ONE)


def test_cut_at_every_byte(tmp_path):
    whole = small_file()
    assert len(opened(tmp_path, whole).tensors) == 2
    for size in range(len(whole)):
        fault(tmp_path, whole[:size])


def test_every_byte_flipped(tmp_path):
    """Refused in one line, or opened with tensors inside the file."""
    whole = small_file()
    opened_anyway = 0
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        try:
            model = opened(tmp_path, bytes(flipped))
        except CheckpointError as error:
            assert str(error).isprintable()
            continue
        opened_anyway += 1
        for tensor in model.tensors.values():
            assert tensor.offset + tensor.size <= len(whole)
            read_weights(tensor)
    assert 0 < opened_anyway < len(whole)


# ---------------------------------------------------------------- getters


def test_wrong_type_and_missing_key_are_named(tmp_path):
    keys = [
        key("number", U32, b"\1\0\0\0"),
        key("text", STRING, text("x")),
        key("bytes", ARRAY, struct.pack("<IQ", U8, 2) + b"ab"),
        key("ints", ARRAY, struct.pack("<IQi", I32, 1, 1)),
        key("raw", STRING, text(b"\xff")),
        key("yes", BOOL, b"\1"),
    ]
    metadata = opened(tmp_path, build(keys)).metadata
    for get, name, message in (
        (metadata.integer, "text", "text is of type string, not a whole number"),
        (metadata.integer, "yes", "yes is of type bool, not a whole number"),
        (metadata.integer, "absent", "the key absent is missing"),
        (metadata.number, "text", "text is of type string, not a number"),
        (metadata.flag, "number", "number is of type u32, not true or false"),
        (metadata.text, "number", "number is of type u32, not a text"),
        (metadata.text, "raw", "raw is not UTF-8 at its byte 0"),
        (metadata.texts, "ints", "ints is of type array of i32, not a list of texts"),
        (metadata.numbers, "bytes", "bytes is of type array of u8, not a list of floats"),
        (metadata.integers, "text", "text is of type string, not a list of whole numbers"),
    ):
        with pytest.raises(CheckpointError) as caught:
            get(name)
        assert message in str(caught.value)


# ---------------------------------------------------------------- whole models


@pytest.fixture
def twin(tmp_path):
    config = CONFIGS["llama"]
    return write_twin(tmp_path / "twin.gguf", config, random_tensors(config), "Q8_0")


def edited(path, old, new):
    data = path.read_bytes()
    assert data.count(old) == 1 and len(old) == len(new)
    path.write_bytes(data.replace(old, new))
    return path


def test_unknown_architecture(twin, tmp_path, capsys):
    edited(twin, text("llama"), text("mamba"))
    assert "general.architecture 'mamba': supported are gemma2" in refused(capsys, twin, tmp_path / "out")


def test_missing_key(twin, tmp_path, capsys):
    edited(twin, b"llama.embedding_length", b"llama.embedding_lengtH")
    assert "the key llama.embedding_length is missing" in refused(capsys, twin, tmp_path / "out")


def test_key_of_the_wrong_type(twin, tmp_path, capsys):
    edited(twin, b"llama.block_count" + struct.pack("<I", U32), b"llama.block_count" + struct.pack("<I", F32))
    assert "llama.block_count is of type f32, not a whole number" in refused(capsys, twin, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("block_count", 2**32 - 1, "4294967295 layers; 1 to 65536"),
        ("block_count", 0, "0 layers"),
        ("block_count", 2, "nothing reads blk.2.attn_k.weight"),
        ("block_count", 4, "missing tensor blk.3.attn_norm.weight"),
        ("attention.head_count", 0, "llama.attention.head_count is 0, at least 1"),
        ("attention.head_count", 3, "rope.dimension_count is 16, heads have 21"),
        ("feed_forward_length", 64, "has the shape (96, 64), the config implies (64, 64)"),
        ("vocab_size", 100, "llama.vocab_size is 100, token_embd.weight has 101 rows"),
        ("rope.dimension_count", 8, "llama.rope.dimension_count is 8, heads have 16"),
        ("context_length", 2**31, "the format allows 1 to 2^24"),
    ],
)
def test_settings_that_do_not_fit(name, value, message, twin, tmp_path, capsys):
    data = twin.read_bytes()
    at = data.index(text(f"llama.{name}")) + len(text(f"llama.{name}")) + 4
    twin.write_bytes(data[:at] + struct.pack("<I", value) + data[at + 4 :])
    assert message in refused(capsys, twin, tmp_path / "out")


def test_missing_embedding_and_renamed_tensor(twin, tmp_path, capsys):
    edited(twin, text("blk.1.ffn_up.weight"), text("blk.1.ffn_uq.weight"))
    assert "missing tensor blk.1.ffn_up.weight" in refused(capsys, twin, tmp_path / "out")
    edited(twin, text("token_embd.weight"), text("token_embe.weight"))
    assert "tensor token_embd.weight is missing" in refused(capsys, twin, tmp_path / "out")


def test_truncated_model(twin, tmp_path, capsys):
    twin.write_bytes(twin.read_bytes()[:-4096])
    assert "goes past the end of the file" in refused(capsys, twin, tmp_path / "out")


def test_scale_that_is_no_number(twin, tmp_path, capsys):
    tensor = open_gguf(twin).tensors["blk.0.attn_q.weight"]
    data = bytearray(twin.read_bytes())
    data[tensor.offset : tensor.offset + 2] = np.float16(np.nan).tobytes()
    twin.write_bytes(data)
    message = refused(capsys, twin, tmp_path / "out")
    assert "blk.0.attn_q.weight (layers.0.wq): non-finite scale" in message


def test_decay_that_is_none(tmp_path, capsys):
    config = CONFIGS["qwen3_5"]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config))
    tensor = open_gguf(twin).tensors["blk.1.ssm_a"]
    data = bytearray(twin.read_bytes())
    data[tensor.offset : tensor.offset + 4] = np.float32(0.5).tobytes()
    twin.write_bytes(data)
    assert "a decay of 0.5 where all must be below 0" in refused(capsys, twin, tmp_path / "out")


def test_split_with_a_part_missing(tmp_path, capsys):
    config = CONFIGS["llama"]
    twin = write_twin(tmp_path / "m-00001-of-00002.gguf", config, random_tensors(config))
    assert "m-00002-of-00002.gguf: this part of the model is missing" in refused(capsys, twin, tmp_path / "out")
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(twin.read_bytes())
    assert "is in an earlier part too" in refused(capsys, twin, tmp_path / "out")


def test_keys_that_nobody_reads_are_told(tmp_path, capsys):
    config = CONFIGS["llama"]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), llama__novelty="on", other__key="x")
    run(twin, tmp_path / "quiet")
    assert convert.main([str(twin), str(tmp_path / "out")]) == 0
    assert "note: keys that were not looked at: llama.novelty\n" in capsys.readouterr().out


# ---------------------------------------------------------------- RoPE factors


@pytest.mark.parametrize(
    ("factor", "high", "original", "theta", "rotated"),
    [
        (32.0, 4.0, 8192, 500000.0, 64),
        (8.0, 4.0, 8192, 500000.0, 128),
        (8.0, 4.0, 16, 10000.0, 32),
        (4.0, 8.0, 5000, 500000.0, 128),
        (16.0, 3.5, 4096, 1000000.0, 64),
    ],
)
def test_llama_3_parameters_are_found_again(factor, high, original, theta, rotated):
    parameters = {
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": high,
        "original_max_position_embeddings": original,
    }
    factors = llama3_factors(parameters, theta, rotated).astype(np.float32)
    found = llama3_parameters(factors, theta, rotated)
    assert found == parameters | {"rope_type": "llama3"}


def test_published_ratios_of_llama_3():
    """Factor 32, low 1, high 4, original context 8192, base 500000, heads of 64."""
    parameters = dict(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
    ratios = 1 / llama3_factors(parameters, 500000.0, 64)
    assert np.all(ratios[:15] == 1) and np.allclose(ratios[18:], 1 / 32)
    assert np.allclose(ratios[15:18], [0.60557, 0.30374, 0.10345], atol=5e-6)


@pytest.mark.parametrize("factors", [np.linspace(1, 8, 32), np.full(32, 0.5), np.ones(31), np.full(32, np.nan)])
def test_factors_of_another_kind_are_refused(factors):
    with pytest.raises(CheckpointError, match=r"rope_freqs\.weight"):
        llama3_parameters(factors, 500000.0, 64)


@pytest.mark.parametrize(("name", "value"), [("yarn_attn_factor", 1.5), ("yarn_ext_factor", 0.5), ("attn_factor", 2)])
def test_yarn_settings_without_one_meaning_are_refused(name, value, tmp_path, capsys):
    config = CONFIGS["llama-yarn"]
    setting = {f"llama__rope__scaling__{name}": value}
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), **setting)
    message = refused(capsys, twin, tmp_path / "out")
    assert f"llama.rope.scaling.{name} is {float(value)}; only 1.0 has one meaning" in message


def test_architectures_name_families_of_the_map():
    assert {architecture.model_type for architecture in ARCHITECTURES.values()} <= set(FAMILIES)


def test_config_of_gemma_3_has_both_rotary_settings(tmp_path):
    config = CONFIGS["gemma3"]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config))
    found = config_of(open_gguf(twin))
    assert found["rope_parameters"]["full_attention"] == {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}
    assert found["rope_parameters"]["sliding_attention"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert found["layer_types"] == ["sliding_attention"] * 5 + ["full_attention"]


@pytest.mark.parametrize("case", ["llama-llama3", "gemma3", "qwen3_5"])
def test_flipped_header_is_converted_or_refused(case, tmp_path, capsys):
    """Whole conversions of files with a byte changed somewhere before the weights: never another exception."""
    config = CONFIGS[case]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), "Q8_0")
    whole = twin.read_bytes()
    tensors = open_gguf(twin).tensors
    ends = [whole.index(text(next(iter(tensors)))), min(tensor.offset for tensor in tensors.values())]
    rng = np.random.default_rng(5)
    outcomes = {0: 0, 1: 0}
    for at in np.concatenate([rng.choice(end, 20, replace=False) for end in ends]):  # of the keys, and of all
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(rng.integers(8))
        twin.write_bytes(flipped)
        out = tmp_path / "out"
        status = convert.main([str(twin), str(out), "--quiet"])
        outcomes[status] += 1
        printed = capsys.readouterr().err
        assert printed.count("\n") == status, printed
        assert out.exists() == (status == 0)
        if status == 0:
            shutil.rmtree(out)
    assert outcomes[0] and outcomes[1], outcomes
