"""Folders that transformers itself writes, through tools/convert.py: names, shards, types and tying are its own."""

import json

import convert
import numpy as np
import pytest
import torch
from conversion import CLASSES
from mlb import Q4_0, read_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from oracle.families import CASES
from oracle.hugging_face import config_of, random_model, write_mlb

TYPES = [torch.float32, torch.bfloat16, torch.float16]


def options_of(case):
    """convert.py's options for a case's storage."""
    mixed = ",".join(name for name, mask in CLASSES.items() if case.storage.get("q8_mask", 0) & mask)
    return [
        *("--wtype", "q4_0" if case.storage["wtype"] == Q4_0 else "q8_0"),
        *("--scales", "f16" if case.storage.get("scale_f16") else "f32"),
        *("--q4-rule", "fit", "--mixed", mixed or "none"),
    ]


@pytest.mark.parametrize(("number", "name"), list(enumerate(CASES)))
def test_saved_model_gives_the_file_of_the_live_one(number, name, tmp_path):
    case = CASES[name]
    config = config_of(case)
    dtype = TYPES[number % len(TYPES)]
    model = random_model(config, seed=7).to(dtype)
    model.save_pretrained(tmp_path / "hf", max_shard_size="60KB" if number % 2 else "1GB")
    assert (tmp_path / "hf/model.safetensors.index.json").exists() == bool(number % 2)
    assert convert.main([str(tmp_path / "hf"), str(tmp_path / "out"), "--quiet", *options_of(case)]) == 0
    write_mlb(model.to(torch.float32), config, case, tmp_path / "live.mlb")
    assert (tmp_path / "out/model.mlb").read_bytes() == (tmp_path / "live.mlb").read_bytes()


def saved(folder, name, *, flag, head):
    """A folder whose config has the flag, or with None lacks it, and whose weights have the output matrix or not.

    head: "none", "same" as the embedding, or "other".
    """
    config = config_of(CASES[name]) | {"tie_word_embeddings": head != "other"}
    model = random_model(config, seed=3).to(torch.float32)
    model.save_pretrained(folder)
    if head == "same":
        tensors = load_file(folder / "model.safetensors")
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    written = json.loads((folder / "config.json").read_text())
    written.pop("tie_word_embeddings", None)
    if flag is not None:
        written["tie_word_embeddings"] = flag
    (folder / "config.json").write_text(json.dumps(written))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "smollm3"])
@pytest.mark.parametrize("flag", [True, False, None])
@pytest.mark.parametrize("head", ["none", "same", "other"])
def test_output_matrix_is_the_one_that_transformers_takes(name, flag, head, tmp_path, capsys):
    saved(tmp_path / "hf", name, flag=flag, head=head)
    status = convert.main([str(tmp_path / "hf"), str(tmp_path / "out")])
    printed = capsys.readouterr()
    model, loading = AutoModelForCausalLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    if "lm_head.weight" in loading["missing_keys"]:  # it would begin at random
        assert (status == 1 and "missing tensor lm_head.weight" in printed.err) if flag is False else status == 0
        return
    assert status == 0, printed.err
    mlb = read_model(tmp_path / "out/model.mlb")
    ours = mlb.array("tok_emb" if mlb.header.shared_classifier else "wcls")
    theirs = model.lm_head.weight.detach().numpy()
    assert np.abs(ours - theirs).max() < 0.02 * np.abs(theirs).max()
