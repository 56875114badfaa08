"""safetensors files and shards that are broken, hostile, or odd but valid."""

import json
import shutil
import struct

import convert
import numpy as np
import pytest
from checkpoint_errors import CheckpointError
from converting import refused, run
from mlb import verify_model
from safetensors_reader import open_safetensors, read_file
from tiny_checkpoints import CONFIGS, encode, join, random_tensors, safetensors_bytes, write_folder

A = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
B = {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]}
DATA = np.arange(4, dtype="<f4").tobytes() + encode(np.array([1, -2, 0.5]), "BF16")


def read(tmp_path, data):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    return read_file(path)


def fault(tmp_path, data):
    """The message about a file; always one line that names the file."""
    with pytest.raises(CheckpointError) as caught:
        read(tmp_path, data)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "model.safetensors")) and message.isprintable()
    return message.removeprefix(f"{tmp_path}/model.safetensors: ")


# ---------------------------------------------------------------- valid


def test_values_of_each_type(tmp_path):
    values = np.array([[1.5, -0.25], [3.0, 0.0]], dtype=np.float32)
    for dtype in ("F32", "F16", "BF16", "F64"):
        tensors = read(tmp_path, safetensors_bytes({"w": values}, dtype))
        assert tensors["w"].type == dtype
        assert tensors["w"].read().dtype == np.float32
        assert np.array_equal(tensors["w"].read(), values)


@pytest.mark.parametrize(
    "header",
    [
        {"b": B, "a": A},  # not in the order of the data
        {"a": A, "b": B, "__metadata__": {"format": "pt", "note": ""}},
        json.dumps({"a": A, "b": B}).encode() + b"    ",  # padded so that the data is aligned
        {"a": A, "b": B, "empty": {"dtype": "F32", "shape": [0, 5], "data_offsets": [16, 16]}},
        {"a": A | {"later": "addition"}, "b": B},
    ],
)
def test_odd_but_valid(tmp_path, header):
    tensors = read(tmp_path, join(header, DATA))
    assert np.array_equal(tensors["a"].read(), [[0, 1], [2, 3]])
    assert np.array_equal(tensors["b"].read(), [1, -2, 0.5])


def test_file_without_tensors(tmp_path):
    assert read(tmp_path, join({}, b"")) == {}


# ---------------------------------------------------------------- broken


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": A, "b": B | {"data_offsets": [14, 20]}}, "a and b overlap"),
        ({"a": A, "b": B | {"data_offsets": [18, 24]}}, "tensor b ends at byte"),
        ({"a": A | {"shape": [2], "data_offsets": [0, 8]}, "b": B}, "a and b have 8 bytes of nothing between them"),
        ({"b": B}, "the header and b have 16 bytes of nothing"),
        ({"a": A}, "6 bytes follow the last tensor"),
        (b'{"a": %s, "b": %s, "a": %s}' % tuple(json.dumps(x).encode() for x in (A, B, A)), "the key a is there twice"),
        ({"a": A, "b": B | {"shape": [4]}}, "tensor b, BF16 of [4], needs 8 bytes, its offsets [16, 22] have 6"),
        ({"a": A, "b": B | {"shape": [2**63, 2]}}, "needs 36893488147419103232 bytes"),
        ({"a": A, "b": B | {"shape": [65536, 65537]}}, "needs 8590065664 bytes"),
        ({"a": A, "b": B | {"shape": [-3]}}, "has the shape [-3]"),
        ({"a": A, "b": B | {"shape": 3}}, "has the shape 3"),
        ({"a": A, "b": B | {"shape": [3.0]}}, "has the shape [3.0]"),
        ({"a": A, "b": B | {"data_offsets": [22, 16]}}, "tensor b, BF16"),
        ({"a": A, "b": B | {"data_offsets": [16]}}, "the offsets [16]"),
        ({"a": A, "b": B | {"dtype": "F4"}}, "tensor b has the unknown dtype 'F4'"),
        ({"a": A, "b": B | {"dtype": ["BF16"]}}, "tensor b has the unknown dtype"),
        ({"a": A, "b": {}}, "tensor b lacks dtype, shape or data_offsets"),
        ({"a": A, "b": [1]}, "tensor b lacks dtype"),
        ([A, B], "the header is no JSON object"),
        (b"{", "no JSON"),
        (b'{"\xff": 1}', "no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no JSON"),
        ({"a": A, "b\nrm -rf": B | {"dtype": "F4"}}, "tensor b\\nrm -rf has"),
    ],
)
def test_broken_header(tmp_path, header, message):
    assert message in fault(tmp_path, join(header, DATA))


@pytest.mark.parametrize("length", [1 << 20, 1 << 63, (1 << 64) - 1, (1 << 64) - 8])
def test_header_length_that_lies(tmp_path, length):
    assert "does not fit" in fault(tmp_path, struct.pack("<Q", length) + b"{}")


def test_cut_at_every_byte(tmp_path):
    whole = join({"a": A, "b": B}, DATA)
    for size in range(len(whole)):
        fault(tmp_path, whole[:size])
    assert len(read(tmp_path, whole)) == 2


def test_every_byte_flipped(tmp_path):
    """Refused by name, or a file with the same tensors under other names or types of the same size."""
    whole = join({"a": A, "b": B}, DATA)
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        try:
            tensors = read(tmp_path, bytes(flipped))
        except CheckpointError:
            continue
        assert sum(tensor.size for tensor in tensors.values()) == len(DATA)


def test_integers_are_no_weights(tmp_path):
    tensors = read(tmp_path, join({"a": A | {"dtype": "I32"}, "b": B}, DATA))
    with pytest.raises(CheckpointError, match="a is stored as I32; BF16, F16, F32 and F64 are supported"):
        tensors["a"].read()


# ---------------------------------------------------------------- folders


@pytest.fixture
def sharded(tmp_path):
    config = CONFIGS["llama"]
    return write_folder(tmp_path / "hf", config, random_tensors(config), "BF16", shards=2)


def edit_index(folder, change):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))


def test_missing_shard(sharded, tmp_path, capsys):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    message = refused(capsys, sharded, tmp_path / "out")
    assert "model-00002-of-00002.safetensors: this shard is missing, and with it model.layers.1" in message


def test_truncated_shard(sharded, tmp_path, capsys):
    path = sharded / "model-00001-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "model-00001-of-00002.safetensors: tensor " in refused(capsys, sharded, tmp_path / "out")


def test_index_and_shards_that_disagree(sharded, tmp_path, capsys):
    original = (sharded / "model.safetensors.index.json").read_text()
    last = "model.layers.2.mlp.down_proj.weight"
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    for change, message in (
        (lambda names: names.update(ghost=second), f"{second}: lacks ghost, which"),
        (lambda names: names.update({last: first}), f"{first}: lacks {last}"),
        (lambda names: names.pop(last), f"{second}: holds {last}, which model.safetensors.index.json does not list"),
        (lambda names: names.update({last: "../hf/" + second}), "which is no file of this folder"),
        (lambda names: names.update({last: "a\\b"}), "which is no file of this folder"),
        (lambda names: names.update({last: 7}), "which is no file of this folder"),
        (lambda names: names.clear(), "no weight_map"),
    ):
        (sharded / "model.safetensors.index.json").write_text(original)
        edit_index(sharded, change)
        assert message in refused(capsys, sharded, tmp_path / "out")


def test_tensor_in_two_shards(sharded, tmp_path, capsys):
    tensors = read_file(sharded / "model-00001-of-00002.safetensors")
    both = {name: tensor.read() for name, tensor in tensors.items()}
    both["model.norm.weight"] = np.ones(64, dtype=np.float32)
    first = sharded / "model-00001-of-00002.safetensors"
    index = json.loads((sharded / "model.safetensors.index.json").read_text())["weight_map"]
    other = next(name for name, shard in index.items() if shard != first.name)
    both[other] = open_safetensors(sharded)[other].read()
    first.write_bytes(safetensors_bytes(both, "BF16"))
    assert f"holds {other}, which" in refused(capsys, sharded, tmp_path / "out")


def test_pickled_weights_are_not_touched(tmp_path, capsys):
    folder = write_folder(tmp_path / "hf", CONFIGS["llama"], {})
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    assert "only pickled weights (pytorch_model.bin), which can run code" in refused(capsys, folder, tmp_path / "out")
    (folder / "pytorch_model.bin").unlink()
    assert "neither model.safetensors nor" in refused(capsys, folder, tmp_path / "out")


# ---------------------------------------------------------------- the model in them


@pytest.mark.parametrize(
    "name", ["model.norm.weight", "model.layers.2.mlp.down_proj.weight", "model.embed_tokens.weight"]
)
def test_missing_tensor(name, tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    del tensors[name]
    folder = write_folder(tmp_path / "hf", config, tensors)
    assert f"missing tensor {name}" in refused(capsys, folder, tmp_path / "out")


def test_last_layers_absent(tmp_path, capsys):
    config = CONFIGS["llama"]
    folder = write_folder(tmp_path / "hf", config | {"num_hidden_layers": 5}, random_tensors(config))
    message = refused(capsys, folder, tmp_path / "out")
    assert "missing tensor model.layers.3.input_layernorm.weight" in message and "and 14 more" in message


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
def test_wrong_shape(dtype, tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    tensors["model.layers.1.mlp.up_proj.weight"] = tensors["model.layers.1.mlp.up_proj.weight"].T
    folder = write_folder(tmp_path / "hf", config, tensors, dtype)
    message = refused(capsys, folder, tmp_path / "out")
    assert "model.layers.1.mlp.up_proj.weight has the shape (64, 96), the config implies (96, 64)" in message


def test_vocabulary_of_another_size(tmp_path, capsys):
    config = CONFIGS["llama"]
    folder = write_folder(tmp_path / "hf", config | {"vocab_size": 100}, random_tensors(config))
    message = refused(capsys, folder, tmp_path / "out")
    assert "model.embed_tokens.weight has the shape (101, 64), the config implies (100, 64)" in message


def test_tensors_that_nothing_reads(tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config) | {"model.layers.0.self_attn.q_proj.bias": np.ones(64, dtype=np.float32)}
    folder = write_folder(tmp_path / "hf", config, tensors)
    message = refused(capsys, folder, tmp_path / "out")
    assert "nothing reads model.layers.0.self_attn.q_proj.bias; --allow-unread" in message
    run(folder, tmp_path / "out", "--allow-unread")


def test_vision_tower_and_names_one_level_down(tmp_path, capsys):
    text = CONFIGS["gemma3"]
    tensors = random_tensors(text)
    renamed = {name.replace("model.", "model.language_model.", 1): values for name, values in tensors.items()}
    renamed["model.vision_tower.patch.weight"] = np.ones((4, 4), dtype=np.float32)
    config = {"model_type": "gemma3", "text_config": {**text, "model_type": "gemma3_text"}}
    run(write_folder(tmp_path / "plain", text, tensors), tmp_path / "a")
    run(write_folder(tmp_path / "nested", config, renamed), tmp_path / "b")
    assert (tmp_path / "a/model.mlb").read_bytes() == (tmp_path / "b/model.mlb").read_bytes()
    both = renamed | {"model.norm.weight": tensors["model.norm.weight"]}
    folder = write_folder(tmp_path / "both", config, both)
    assert "are the same tensor" in refused(capsys, folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (b'{"model_type": "mamba"}', "model_type 'mamba': supported are gemma2, gemma3"),
        (b"{}", "model_type None"),
        (b"[]", "config.json: no JSON object"),
        (b"{", "config.json: no JSON"),
        (b'{"model_type": "llama", "model_type": "qwen2"}', "the key model_type is there twice"),
        (b'{"model_type": "llama", "num_hidden_layers": 1000000000}', "at most 65536"),
        (b'{"model_type": "llama", "hidden_size": 1e3}', "hidden_size is 1000.0"),
        (b'{"model_type": "llama", "hidden_size": 99999999999968}', "does not fit an unsigned 32-bit field"),
        (b'{"model_type": "llama", "hidden_size": 131072}', "65536"),
    ],
)
def test_config_that_is_refused(config, message, tmp_path, capsys):
    folder = write_folder(tmp_path / "hf", CONFIGS["llama"], random_tensors(CONFIGS["llama"]))
    (folder / "config.json").write_bytes(config)
    assert message in refused(capsys, folder, tmp_path / "out")


ODD_VALUES = (None, "x", "", [], [1], {}, {"a": 1}, -1, 0, 1.5, 1e300, True, 10**30)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gemma3", "smollm3", "qwen3_5"])
def test_config_with_one_odd_value_is_converted_or_refused(family, tmp_path, capsys):
    config = CONFIGS[family]
    folder = write_folder(tmp_path / "hf", config, random_tensors(config))
    keys = [*config, "layer_types", "rope_scaling", "sliding_window", "no_rope_layers", "eos_token_id", "text_config"]
    converted = 0
    for key in keys:
        for value in ODD_VALUES:
            (folder / "config.json").write_text(json.dumps(config | {key: value}))
            out = tmp_path / "out"
            if convert.main([str(folder), str(out), "--quiet"]) == 0:
                verify_model(out / "model.mlb")
                shutil.rmtree(out)
                converted += 1
            else:
                assert capsys.readouterr().err.count("\n") == 1
                assert not out.exists()
    assert 0 < converted < len(keys) * len(ODD_VALUES)


def test_sources_that_are_none(tmp_path, capsys):
    assert "no such file or folder" in refused(capsys, tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert "no config.json and no first .gguf" in refused(capsys, tmp_path / "empty", tmp_path / "out")
    (tmp_path / "model.onnx").write_bytes(b"")
    assert "neither a folder with config.json nor a .gguf" in refused(capsys, tmp_path / "model.onnx", tmp_path / "out")
