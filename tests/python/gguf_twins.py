"""The GGUF file of a Hugging Face checkpoint, made as llama.cpp's converter makes it.

Its conventions are written out here from its documentation and behaviour, independently of tools/gguf_map.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quants
from tiny_checkpoints import DEFAULT_HEAD_DIMS, Tensors

ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "smollm3": "smollm3",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "qwen3_5_text": "qwen35",
}

LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
}
PLAIN_NORM = {"post_attention_layernorm.weight": "ffn_norm.weight"}
QWEN35_NORM = {"post_attention_layernorm.weight": "post_attention_norm.weight"}
GEMMA_NORMS = {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
}
BODY = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def write_twin(
    path: Path,
    config: Mapping[str, Any],
    tensors: Tensors,
    matrices: str = "F32",
    *,
    larger: Mapping[str, str] | None = None,
    **keys: Any,
) -> Path:
    """Writes a file.

    matrices: the type of weight matrices; vectors and convolutions are F32. larger: other types by name, without layer.
    keys: more strings and floats, with __ for the dots.
    """
    arch = ARCHITECTURES[config["model_type"]]
    writer = GGUFWriter(path, arch)
    _add_settings(writer, arch, config)
    for key, value in keys.items():
        (writer.add_string if isinstance(value, str) else writer.add_float32)(key.replace("__", "."), value)
    for name, values in twin_tensors(config, tensors).items():
        stored = (larger or {}).get(re.sub(r"^blk\.\d+\.", "", name), matrices)
        block = 1 if stored in ("F32", "F16", "BF16") else 32
        if values.ndim == 2 and "conv1d" not in name and values.shape[1] % block == 0:
            type_ = GGMLQuantizationType[stored]
            writer.add_tensor(name, quants.quantize(values, type_), raw_dtype=type_)
        else:
            writer.add_tensor(name, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_settings(writer: GGUFWriter, arch: str, config: Mapping[str, Any]) -> None:
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", DEFAULT_HEAD_DIMS.get(config["model_type"], config["hidden_size"] // heads))
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if arch == "llama":
        writer.add_rope_dimension_count(head_dim)
        writer.add_vocab_size(config["vocab_size"])
        if config["model_type"] == "mistral":
            writer.add_sliding_window(config["sliding_window"])
    if arch.startswith("gemma"):
        writer.add_sliding_window(config["sliding_window"])
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(name):
            getattr(writer, f"add_{name}")(config[name])
    if arch == "qwen35":
        _add_linear_attention(writer, config, head_dim)
    parameters = config.get("rope_parameters", {})
    if "sliding_attention" in parameters:
        writer.add_rope_freq_base_swa(parameters["sliding_attention"]["rope_theta"])
        parameters = parameters["full_attention"]
    _add_rope(writer, parameters)


def _add_linear_attention(writer: GGUFWriter, config: Mapping[str, Any], head_dim: int) -> None:
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
    writer.add_full_attention_interval(4)
    writer.add_rope_dimension_count(int(head_dim * config["rope_parameters"]["partial_rotary_factor"]))
    writer.add_rope_dimension_sections([11, 11, 10, 0])


def _add_rope(writer: GGUFWriter, parameters: Mapping[str, Any]) -> None:
    if "rope_theta" in parameters:
        writer.add_rope_freq_base(parameters["rope_theta"])
    kind = parameters.get("rope_type")
    if kind in ("linear", "yarn"):
        writer.add_string(f"{writer.arch}.rope.scaling.type", kind)
        writer.add_rope_scaling_factor(parameters["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(parameters["original_max_position_embeddings"])
        writer.add_float32(f"{writer.arch}.rope.scaling.yarn_beta_fast", parameters["beta_fast"])
        writer.add_float32(f"{writer.arch}.rope.scaling.yarn_beta_slow", parameters["beta_slow"])


# ---------------------------------------------------------------- tensors


def twin_tensors(config: Mapping[str, Any], tensors: Tensors) -> Tensors:
    """By GGUF's names, changed as GGUF wants them."""
    family = config["model_type"]
    names = dict(LAYER) | (QWEN35_NORM if family.startswith("qwen3_5") else PLAIN_NORM)
    if family.startswith("gemma"):
        names |= GEMMA_NORMS
    result = {}
    for name, values in tensors.items():
        if name in BODY:
            twin = BODY[name]
        else:
            _, _, layer, rest = name.split(".", 3)
            stem, _, end = rest.rpartition(".")
            twin = f"blk.{layer}." + (names[rest] if rest in names else f"{names[stem]}.{end}")
        result[twin] = _changed(config, name, values)
    if (parameters := config.get("rope_parameters", {})).get("rope_type") == "llama3":
        result["rope_freqs.weight"] = rope_factors(config, parameters)
    return result


def _changed(config: Mapping[str, Any], name: str, values: np.ndarray) -> np.ndarray:
    family = config["model_type"]
    if family in ("llama", "mistral", "smollm3"):
        if "q_proj" in name:
            return permute(values, config["num_attention_heads"])
        if "k_proj" in name:
            return permute(values, config["num_key_value_heads"])
    shifted = family.startswith(("gemma", "qwen3_5"))
    if shifted and name.endswith("norm.weight") and "linear_attn" not in name:
        return values + np.float32(1)
    if "linear_attn" in name:
        return _linear(config, name, values)
    return values


def permute(values: np.ndarray, heads: int) -> np.ndarray:
    """From halves to pairs, head by head."""
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def _linear(config: Mapping[str, Any], name: str, values: np.ndarray) -> np.ndarray:
    k_heads, v_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    v_dim = config["linear_value_head_dim"]
    before = 2 * k_heads * config["linear_key_head_dim"]
    order = np.concatenate([np.arange(v_heads)[first :: v_heads // k_heads] for first in range(v_heads // k_heads)])
    rows = (order[:, None] * v_dim + np.arange(v_dim)).reshape(-1)  # of all value heads, tiled
    if "in_proj_qkv" in name or "conv1d" in name:
        values = values.reshape(values.shape[0], -1)
        return np.concatenate([values[:before], values[before:][rows]])
    if "in_proj_z" in name:
        return values[rows]
    if "out_proj" in name:
        return np.ascontiguousarray(values[:, rows])
    if name.endswith("A_log"):
        return -np.exp(values[order])
    return values if "norm" in name else values[order]


def rope_factors(config: Mapping[str, Any], parameters: Mapping[str, Any]) -> np.ndarray:
    """What divides the frequency of each pair under Llama 3's scaling, one by one."""
    head_dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    original, factor = parameters["original_max_position_embeddings"], parameters["factor"]
    low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
    factors = []
    for pair in range(head_dim // 2):
        wavelength = 2 * math.pi * parameters["rope_theta"] ** (2 * pair / head_dim)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)
