"""Packages: model.json, the tokenizer, and folders that are there already."""

import hashlib
import json
import signal
import subprocess
import sys
import time

import convert
import numpy as np
import pytest
from converting import refused, run
from gguf_twins import write_twin
from tiny_checkpoints import CONFIGS, byte_tokenizer, random_tensors, write_folder


def write_tokenizer_files(folder, tokenizer, **config):
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def test_package_describes_the_model(tmp_path, capsys):
    config = CONFIGS["llama"] | {"vocab_size": 288, "eos_token_id": 257}
    folder = write_folder(tmp_path / "Tiny-Llama", config, random_tensors(config))
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    tokenizer = byte_tokenizer(1)
    tokenizer["added_tokens"][-1]["content"] = "<|im_end|>"
    write_tokenizer_files(folder, tokenizer, bos_token="<bos>", eos_token={"content": "<eos>"}, chat_template=template)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [257, 5], "temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": True})
    )
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n")
    assert convert.main([str(folder), str(tmp_path / "out"), "--source-note", "made for a test"]) == 0
    text = (tmp_path / "out/model.json").read_text()
    description = json.loads(text)
    for part, name in (("model", "model.mlb"), ("tokenizer", "tokenizer.mlt")):
        data = (tmp_path / "out" / name).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        assert description["files"][part] == {"name": name, "size": len(data), "sha256": digest}
    assert {key: value for key, value in description.items() if key != "files"} == {
        "format": "krafla-model",
        "version": 1,
        "name": "Tiny-Llama",
        "architecture": "llama",
        "weights": {"type": "q8_0", "scales": "f16"},
        "contextSize": 64,
        "tokens": {"bos": {"id": 256, "text": "<bos>"}, "eos": {"id": 257, "text": "<eos>"}},
        "stopTokens": [{"id": 257, "text": "<eos>"}, {"id": 5, "text": "\x05"}, {"id": 258, "text": "<|im_end|>"}],
        "chatTemplate": template,
        "sampling": {"temperature": 0.6, "topK": 20, "topP": 0.95},
        "license": "apache-2.0",
        "source": "made for a test",
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.json", "model.mlb", "tokenizer.mlt"]


def test_package_of_a_gguf_file(tmp_path):
    config = CONFIGS["gemma3"]
    keys = {"general__name": "Twin", "general__license": "gemma", "tokenizer__chat_template": "{{ messages }}"}
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), "Q8_0", **keys)
    run(twin, tmp_path / "out")
    description = json.loads((tmp_path / "out/model.json").read_text())
    assert [description[key] for key in ("name", "license", "chatTemplate", "architecture")] == [
        *("Twin", "gemma", "{{ messages }}", "gemma3_text")
    ]


def test_tokenizer_of_another_model_is_refused(tmp_path, capsys):
    config = CONFIGS["llama"] | {"vocab_size": 257}
    folder = write_folder(tmp_path / "hf", config, random_tensors(config))
    write_tokenizer_files(folder, byte_tokenizer(), eos_token="<eos>")
    message = refused(capsys, folder, tmp_path / "out")
    assert "the tokenizer has 258 tokens, the embedding 257 rows" in message
    run(folder, tmp_path / "without", "--no-tokenizer")


def test_stop_token_outside_the_vocabulary_is_refused(tmp_path, capsys):
    config = CONFIGS["llama"] | {"eos_token_id": 101}
    folder = write_folder(tmp_path / "hf", config, random_tensors(config))
    assert "stop token 101" in refused(capsys, folder, tmp_path / "out")


def test_existing_folders(tmp_path, capsys):
    config = CONFIGS["llama"]
    folder = write_folder(tmp_path / "hf", config, random_tensors(config))
    out = tmp_path / "out"
    out.mkdir()
    run(folder, out)  # an empty folder is as good as none
    first = (out / "model.json").read_text()
    (out / "notes.txt").write_text("mine")
    assert "--force replaces" in refused(capsys, folder, out)
    run(folder, out, "--force", "--wtype", "q4_0")
    assert (out / "model.json").read_text() != first
    assert (out / "notes.txt").read_text() == "mine"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("precious")
    assert "name a new one" in refused(capsys, folder, foreign, "--force")
    assert "no such folder" in refused(capsys, folder, tmp_path / "missing" / "out")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_conversion_leaves_nothing(number, tmp_path):
    config = CONFIGS["llama"] | {"vocab_size": 600_000}  # some seconds' work
    folder = write_folder(tmp_path / "hf", config, random_tensors(config), "BF16")
    command = [sys.executable, convert.__file__, str(folder), str(tmp_path / "out"), "--wtype", "q4_0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob(".out.*/.model.mlb.*")):
        time.sleep(0.005)
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed.endswith("convert.py: interrupted; nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_failed_conversion_leaves_an_old_package_as_it_was(tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    run(write_folder(tmp_path / "hf", config, tensors), tmp_path / "out")
    before = (tmp_path / "out/model.mlb").read_bytes()
    tensors["model.norm.weight"][0] = np.nan
    broken = write_folder(tmp_path / "broken", config, tensors)
    refused(capsys, broken, tmp_path / "out", "--force")
    assert (tmp_path / "out/model.mlb").read_bytes() == before
