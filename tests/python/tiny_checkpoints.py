"""Tiny Hugging Face checkpoints with random weights, written without the libraries that usually write them.

Shapes and names stand here on their own, so that a mistake in tools/hf_map.py does not hide behind itself.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Tensors = dict[str, np.ndarray]
Config = dict[str, Any]


def _config(model_type: str, **changes: Any) -> Config:
    """What the families have in common: fewer key heads than query heads, sizes that differ."""
    config: Config = {
        "model_type": model_type,
        "vocab_size": 101,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
        "rms_norm_eps": 1e-5,
    }
    return config | changes


def _rope(rope_type: str, **parameters: Any) -> Config:
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": 10000.0, **parameters}}


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
YARN = {"factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 8.0, "beta_slow": 0.5}
GEMMA = {"head_dim": 24, "query_pre_attn_scalar": 24, "sliding_window": 8, "rms_norm_eps": 1e-6}
QWEN3_5 = {
    "head_dim": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    **_rope("default", partial_rotary_factor=0.25),
}

# Every family, and what a family can do; all of it is what GGUF can express too.
CONFIGS: dict[str, Config] = {
    "llama": _config("llama"),
    "llama-untied": _config("llama", tie_word_embeddings=False),
    "llama-mqa": _config("llama", num_attention_heads=8, num_key_value_heads=1),
    "llama-head-dim": _config("llama", head_dim=24),
    "llama-odd-ffn": _config("llama", intermediate_size=75),
    "llama-llama3": _config("llama", head_dim=32, **_rope("llama3", factor=8.0, **LLAMA3)),
    "llama-linear": _config("llama", **_rope("linear", factor=2.5)),
    "llama-yarn": _config("llama", **_rope("yarn", **YARN)),
    "mistral": _config("mistral", sliding_window=8),
    "qwen2": _config("qwen2"),
    "qwen3": _config("qwen3", head_dim=24, tie_word_embeddings=False),
    "qwen3-yarn": _config("qwen3", head_dim=32, num_key_value_heads=1, **_rope("yarn", **YARN)),
    "smollm3": _config("smollm3", num_hidden_layers=4, **_rope("default")),
    "gemma2": _config("gemma2", **GEMMA, attn_logit_softcapping=4.0, final_logit_softcapping=6.0),
    "gemma3": _config(
        "gemma3_text",
        **GEMMA,
        num_hidden_layers=6,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
    "qwen3_5": _config("qwen3_5_text", **QWEN3_5),
    "qwen3_5-wide": _config(
        "qwen3_5_text",
        **QWEN3_5
        | {"linear_num_key_heads": 4, "linear_num_value_heads": 12, "linear_key_head_dim": 6, "intermediate_size": 70},
    ),
}

DEFAULT_HEAD_DIMS = {"qwen3": 128, "gemma2": 256, "gemma3_text": 256, "qwen3_5_text": 256}


def random_tensors(config: Mapping[str, Any], seed: int = 0) -> Tensors:
    """All tensors of a model, float32 values that bfloat16 and float16 hold exactly."""
    tensors = {}
    for name, shape in shapes(config).items():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        values = rng.standard_normal(shape) / np.sqrt(shape[-1]) if len(shape) > 1 else rng.standard_normal(shape)
        if name.endswith("A_log"):
            values = values * 0.5 - 1
        tensors[name] = eight_bits(values)
    return tensors


def eight_bits(values: np.ndarray) -> np.ndarray:
    """float32 with the eight significant bits of bfloat16, and the exponents of float16."""
    mantissa, exponent = np.frexp(values.astype(np.float32))
    rounded = np.ldexp(np.round(mantissa * 256) / 256, exponent)
    return np.where(exponent > -14, rounded, 0).astype(np.float32)


def shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    family = config["model_type"]
    dim, vocab, inner = config["hidden_size"], config["vocab_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim", DEFAULT_HEAD_DIMS.get(family, dim // heads))
    result: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, dim), "model.norm.weight": (dim,)}
    if not config["tie_word_embeddings"]:
        result["lm_head.weight"] = (vocab, dim)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        linear = family.startswith("qwen3_5") and (layer + 1) % config.get("full_attention_interval", 4)
        parts = _linear_attention(config) if linear else _attention(family, dim, heads, kv_heads, head_dim)
        norms = ["input_layernorm", "post_attention_layernorm"]
        if family.startswith("gemma"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        parts |= {f"{norm}.weight": (dim,) for norm in norms}
        parts |= {"mlp.gate_proj.weight": (inner, dim), "mlp.up_proj.weight": (inner, dim)}
        parts["mlp.down_proj.weight"] = (dim, inner)
        result |= {at + name: shape for name, shape in parts.items()}
    return result


def _attention(family: str, dim: int, heads: int, kv_heads: int, head_dim: int) -> dict[str, tuple[int, ...]]:
    q, kv = heads * head_dim, kv_heads * head_dim
    gate = 2 if family.startswith("qwen3_5") else 1
    parts: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (gate * q, dim),
        "self_attn.k_proj.weight": (kv, dim),
        "self_attn.v_proj.weight": (kv, dim),
        "self_attn.o_proj.weight": (dim, q),
    }
    if family == "qwen2":
        parts |= {f"self_attn.{name}_proj.bias": (size,) for name, size in (("q", q), ("k", kv), ("v", kv))}
    if family.startswith(("qwen3", "gemma3")):
        parts |= {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    return parts


def _linear_attention(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    dim = config["hidden_size"]
    k_heads, v_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    v_dim = config["linear_value_head_dim"]
    channels = 2 * k_heads * config["linear_key_head_dim"] + v_heads * v_dim
    return {
        "linear_attn.in_proj_qkv.weight": (channels, dim),
        "linear_attn.in_proj_z.weight": (v_heads * v_dim, dim),
        "linear_attn.in_proj_b.weight": (v_heads, dim),
        "linear_attn.in_proj_a.weight": (v_heads, dim),
        "linear_attn.conv1d.weight": (channels, 1, config["linear_conv_kernel_dim"]),
        "linear_attn.dt_bias": (v_heads,),
        "linear_attn.A_log": (v_heads,),
        "linear_attn.norm.weight": (v_dim,),
        "linear_attn.out_proj.weight": (dim, v_heads * v_dim),
    }


# ---------------------------------------------------------------- safetensors


def encode(values: np.ndarray, dtype: str) -> bytes:
    """float32 as F32, F16, F64 or BF16 (which must hold the values exactly)."""
    if dtype != "BF16":
        return values.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]).tobytes()
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    assert not (bits & 0xFFFF).any() or not np.isfinite(values).all()
    return (bits >> 16).astype("<u2").tobytes()


def safetensors_bytes(tensors: Tensors, dtype: str = "F32", metadata: dict[str, str] | None = None) -> bytes:
    """A file with these tensors, one after the other."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, values in tensors.items():
        stored = encode(values, dtype)
        header[name] = {
            "dtype": dtype,
            "shape": list(values.shape),
            "data_offsets": [len(data), len(data) + len(stored)],
        }
        data += stored
    return join(header, data)


def join(header: Any, data: bytes) -> bytes:
    """A file from its JSON header (an object, or the text itself) and its data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_folder(
    folder: Path, config: Mapping[str, Any], tensors: Tensors, dtype: str = "F32", shards: int = 1
) -> Path:
    """A model folder as people download it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    if shards == 1:
        (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors, dtype, {"format": "pt"}))
        return folder
    names = list(tensors)
    weight_map = {}
    for number, part in enumerate(_parts(names, shards)):
        shard = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        weight_map |= dict.fromkeys(part, shard)
        (folder / shard).write_bytes(safetensors_bytes({name: tensors[name] for name in part}, dtype))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def _parts(names: Sequence[str], count: int) -> list[Sequence[str]]:
    size = -(-len(names) // count)
    return [names[at : at + size] for at in range(0, len(names), size)]


# ---------------------------------------------------------------- tokenizer


def byte_tokenizer(extra: int = 0) -> dict[str, Any]:
    """A tokenizer.json without merges: 256 bytes, then <bos> and <eos>, then `extra` more added tokens."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    characters = {byte: chr(byte) for byte in own} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}
    added = ["<bos>", "<eos>", *(f"<extra{i}>" for i in range(extra))]
    return {
        "added_tokens": [
            {"id": 256 + i, "content": text, "special": True, "normalized": False} for i, text in enumerate(added)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {characters[byte]: byte for byte in range(256)}, "merges": []},
    }
