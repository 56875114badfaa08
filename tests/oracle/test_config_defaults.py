"""config.json as hf_map.py reads it and as transformers reads it: the same model, however little the file says."""

import json

import pytest
from hf_families import FAMILIES
from hf_map import header_from_config
from mlb import Q8_0
from transformers import AutoConfig

from oracle.families import CASES

# Older files: rope_theta and rope_scaling outside of rope_parameters, settings that were left out or null.
YARN = {"factor": 4.0, "original_max_position_embeddings": 512}
OLDER = {
    "llama, theta alone": {"model_type": "llama", "rope_theta": 500000.0},
    "llama, linear": {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}},
    "llama, yarn": {"model_type": "llama", "rope_theta": 2e4, "rope_scaling": {"type": "yarn", **YARN}},
    "llama, yarn without its context": {"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
    "llama, yarn without a factor": {
        "model_type": "llama",
        "rope_scaling": {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 512},
    },
    "llama, all heads have keys": {"model_type": "llama", "num_key_value_heads": None},
    "mistral, head size of its own": {"model_type": "mistral", "head_dim": 64},
    "mistral, no window": {"model_type": "mistral", "sliding_window": None},
    "qwen2, window on later layers": {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 10},
    "qwen3, key heads not said": {"model_type": "qwen3", "num_attention_heads": 64},
    "smollm3, other interval": {"model_type": "smollm3", "no_rope_layer_interval": 3, "num_hidden_layers": 7},
    "smollm3, window": {"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 64},
    "gemma2, no caps": {"model_type": "gemma2", "attn_logit_softcapping": None, "final_logit_softcapping": None},
    "gemma3, pattern": {"model_type": "gemma3_text", "sliding_window_pattern": 3, "query_pre_attn_scalar": 168},
    "gemma3, older": {
        "model_type": "gemma3_text",
        "rope_theta": 5e5,
        "rope_local_base_freq": 5e3,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "qwen3_5, interval": {"model_type": "qwen3_5_text", "full_attention_interval": 3},
    "qwen3_5, theta alone": {"model_type": "qwen3_5_text", "rope_theta": 1e7, "partial_rotary_factor": 0.5},
}
TEXT_FAMILIES = [name for name in FAMILIES if name not in ("gemma3", "qwen3_5")]


def as_transformers_reads_it(config):
    """Every setting written out, with all defaults, as the installed transformers understands the file."""
    options = {name: value for name, value in config.items() if name != "model_type"}
    return json.loads(AutoConfig.for_model(config["model_type"], **options).to_json_string(use_diff=False))


@pytest.mark.parametrize("name", TEXT_FAMILIES)
def test_defaults_of_a_family(name):
    config = {"model_type": name}
    assert header_from_config(config, wtype=Q8_0) == header_from_config(as_transformers_reads_it(config), wtype=Q8_0)


@pytest.mark.parametrize("name", OLDER)
def test_older_files(name):
    config = OLDER[name]
    assert header_from_config(config, wtype=Q8_0) == header_from_config(as_transformers_reads_it(config), wtype=Q8_0)


@pytest.mark.parametrize("name", CASES)
def test_cases_of_the_comparison(name):
    config = CASES[name].config
    assert header_from_config(config, wtype=Q8_0) == header_from_config(as_transformers_reads_it(config), wtype=Q8_0)


@pytest.mark.parametrize("name", ["gemma3", "qwen3_5"])
def test_text_model_beside_a_vision_tower(name):
    """The settings one level down, with nothing said about tying: the outer class's default counts."""
    config = {"model_type": name, "text_config": {"num_hidden_layers": 5}}
    assert header_from_config(config, wtype=Q8_0) == header_from_config(as_transformers_reads_it(config), wtype=Q8_0)
