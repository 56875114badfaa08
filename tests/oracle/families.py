"""The model shapes with which engine, reference and transformers are compared: config.json's, and how to store them.

All are tiny, and chosen so that what a family is known for makes a difference: fewer key heads than query heads, head
sizes apart from dim / n_heads, windows and original contexts much shorter than the prompt, a RoPE base small enough
that every pair turns within it. This module needs neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlb import MASK_O, MASK_QK, MASK_TOK_EMB, MASK_V, MASK_W2, MASK_W13, MASK_WCLS, Q4_0, Q8_0

PROMPT = 48  # tokens: six windows, three original contexts

Config = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model to build. `storage` goes to header_from_config; `golden`: kept in tests/golden."""

    config: Config
    storage: Mapping[str, int] = field(default_factory=lambda: {"wtype": Q8_0})
    golden: bool = True
    prompt: int = PROMPT


def _config(model_type: str, **changes: Any) -> Config:
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
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "rms_norm_eps": 1e-5,
    }
    return config | changes


def _rope(rope_type: str, theta: float = 10000.0, **parameters: Any) -> Config:
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": theta, **parameters}}


LLAMA3 = _rope(
    "llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
YARN = _rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.25)
# The ramp from pair 3 (3.25 before rounding) to pair 10 (9.47) of 16.
YARN_INSIDE = _rope("yarn", 100.0, factor=4.0, original_max_position_embeddings=24, beta_fast=1.5, beta_slow=0.25)
GEMMA = {"rms_norm_eps": 1e-6, "head_dim": 24, "query_pre_attn_scalar": 20, "sliding_window": 8}
QWEN3_5 = {
    "head_dim": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "intermediate_size": 64,
    "rms_norm_eps": 1e-2,  # the delta rule's first output may be small, and its norm would blow up noise
}
SLIDING, FULL, LINEAR = "sliding_attention", "full_attention", "linear_attention"

Q8_F16 = {"wtype": Q8_0, "scale_f16": 1}
Q4 = {"wtype": Q4_0}
Q4_F16 = {"wtype": Q4_0, "scale_f16": 1}

CASES: dict[str, Case] = {
    "llama": Case(_config("llama")),
    "llama-untied": Case(_config("llama", tie_word_embeddings=False, vocab_size=99), Q4),
    "llama-mha": Case(_config("llama", num_key_value_heads=4, num_hidden_layers=2), Q8_F16),
    "llama-heads": Case(_config("llama", num_attention_heads=8, num_key_value_heads=2), golden=False),
    "llama-head-dim": Case(_config("llama", head_dim=24), Q4_F16),
    "llama-odd-ffn": Case(_config("llama", intermediate_size=75), Q4),
    "llama-llama3": Case(_config("llama", **LLAMA3)),
    "llama-linear": Case(_config("llama", **_rope("linear", factor=2.5))),
    "llama-yarn": Case(_config("llama", **YARN)),
    "llama-yarn-mscale": Case(
        _config(
            "llama",
            head_dim=32,
            num_hidden_layers=2,
            **_rope(
                "yarn",
                5000.0,
                factor=6.0,
                original_max_position_embeddings=12,
                mscale=1.0,
                mscale_all_dim=0.5,
            ),
        ),
        golden=False,
    ),
    "mistral": Case(_config("mistral", head_dim=24, sliding_window=8), Q8_F16),
    "mistral-no-window": Case(_config("mistral", sliding_window=None), golden=False),
    "qwen2": Case(_config("qwen2", **_rope("default", 1000000.0))),
    "qwen2-window": Case(
        _config("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1),
        {"wtype": Q4_0, "q8_mask": MASK_QK | MASK_W2},
    ),
    "qwen3": Case(_config("qwen3", head_dim=24, tie_word_embeddings=False)),
    "qwen3-yarn": Case(
        _config("qwen3", head_dim=32, num_key_value_heads=1, **YARN_INSIDE), {"wtype": Q4_0, "q8_mask": MASK_V | MASK_O}
    ),
    "smollm3": Case(_config("smollm3", num_hidden_layers=4, intermediate_size=64, **_rope("default", 5000.0))),
    "smollm3-layers": Case(
        _config(
            "smollm3",
            no_rope_layers=[0, 1, 0],
            use_sliding_window=True,
            sliding_window=8,
            layer_types=[SLIDING, SLIDING, FULL],
        ),
        golden=False,
    ),
    "gemma2": Case(_config("gemma2", **GEMMA, attn_logit_softcapping=4.0, final_logit_softcapping=6.0)),
    "gemma2-uncapped": Case(
        _config("gemma2", **GEMMA, attn_logit_softcapping=None, final_logit_softcapping=None), golden=False
    ),
    "gemma3": Case(
        _config(
            "gemma3_text",
            **GEMMA,
            num_hidden_layers=6,
            intermediate_size=32,
            rope_parameters={
                FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                SLIDING: {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
        {"wtype": Q4_0, "q8_mask": MASK_TOK_EMB, "scale_f16": 1},
    ),
    "gemma3-layers": Case(
        _config(
            "gemma3_text",
            **GEMMA,
            layer_types=[FULL, SLIDING, FULL],
            final_logit_softcapping=8.0,
            rope_parameters={
                FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000.0},
                SLIDING: {"rope_type": "default", "rope_theta": 100.0},
            },
        ),
    ),
    "qwen3_5": Case(_config("qwen3_5_text", **QWEN3_5, num_hidden_layers=4)),
    "qwen3_5-q4": Case(
        _config("qwen3_5_text", **QWEN3_5, layer_types=[FULL, LINEAR, LINEAR], tie_word_embeddings=False),
        {"wtype": Q4_0, "q8_mask": MASK_WCLS | MASK_W13, "scale_f16": 1},
    ),
    "qwen3_5-wide": Case(
        _config(
            "qwen3_5_text",
            **QWEN3_5
            | {
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "head_dim": 16,
                "linear_num_key_heads": 4,
                "linear_num_value_heads": 12,
                "linear_key_head_dim": 6,
                "linear_value_head_dim": 8,
                "linear_conv_kernel_dim": 3,
                "intermediate_size": 70,
                "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
            },
        ),
        golden=False,
    ),
}
