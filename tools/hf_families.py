"""What sets one Hugging Face model family apart from another, as tables that hf_map.py reads.

A family is everything behind one `model_type`: the defaults of its config class (a config.json may leave out
any of them, and they differ per family), the names of its tensors, the flags of its layer types and the
settings under which the format cannot express it. tests/oracle compares the defaults with transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlb_layout import FLAG_LINEAR, FLAG_LOCAL_ROPE, FLAG_NOPE, FLAG_WINDOW

Get = Callable[[str], Any]  # a setting by name: from config.json, or the family's default

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

# Of the body, as the text-only model classes name them. Layer names follow "model.layers.<n>.".
BODY_NAMES = {
    "tok_emb": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "wcls": "lm_head.weight",
}

LAYER_NAMES = {
    "attn_norm": "input_layernorm.weight",
    "wq": "self_attn.q_proj.weight",
    "wk": "self_attn.k_proj.weight",
    "wv": "self_attn.v_proj.weight",
    "wo": "self_attn.o_proj.weight",
    "wg": "self_attn.q_proj.weight",  # the second half of each head's rows
    "bq": "self_attn.q_proj.bias",
    "bk": "self_attn.k_proj.bias",
    "bv": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "lqkv": "linear_attn.in_proj_qkv.weight",
    "lz": "linear_attn.in_proj_z.weight",
    "lb": "linear_attn.in_proj_b.weight",
    "la": "linear_attn.in_proj_a.weight",
    "lconv": "linear_attn.conv1d.weight",
    "dt_bias": "linear_attn.dt_bias",
    "A_log": "linear_attn.A_log",
    "lnorm": "linear_attn.norm.weight",
    "lout": "linear_attn.out_proj.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "w1": "mlp.gate_proj.weight",
    "w2": "mlp.down_proj.weight",
    "w3": "mlp.up_proj.weight",
}

# Gemma norms the outputs of attention and FFN too, and so has another name for the norm before the FFN.
GEMMA_NAMES = LAYER_NAMES | {
    "ffn_norm": "pre_feedforward_layernorm.weight",
    "post_attn_norm": "post_attention_layernorm.weight",
    "post_ffn_norm": "post_feedforward_layernorm.weight",
}

# Norms that Gemma and Qwen3.5 store as w and apply as 1 + w. Qwen3.5's lnorm, the gated one, is not among them.
ZERO_CENTRED = frozenset(("attn_norm", "ffn_norm", "q_norm", "k_norm", "post_attn_norm", "post_ffn_norm", "final_norm"))

# Settings that change the arithmetic in a way no header field can say, and the values under which they do not.
# Mixtures of experts and packed weights are here too: such a config may bear a familiar model_type.
INEXPRESSIBLE: dict[str, tuple[Any, ...]] = {
    "attention_bias": (False, None),  # would put a bias on the output projection as well
    "mlp_bias": (False, None),
    "use_bidirectional_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "attn_logit_softcapping": (None, 0),
    "final_logit_softcapping": (None, 0),
    "num_experts": (None, 0),
    "num_local_experts": (None, 0),
    "n_routed_experts": (None, 0),
    "quantization_config": (None,),
    "per_layer_config": (None, {}),
    "attn_output_gate": (None, False),
}


@dataclass(frozen=True)
class Family:
    """One model_type. Everything not given is as in Llama."""

    defaults: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=lambda: LAYER_NAMES)
    inexpressible: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: INEXPRESSIBLE)
    activation: str = "hidden_act"  # the setting that names the FFN's activation
    activations: tuple[str, ...] = ("silu", "swish", "gelu_pytorch_tanh", "gelu_new")
    zero_centred: frozenset[str] = frozenset()
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    scaled_embedding: bool = False  # rows times sqrt(dim)
    attn_gate: bool = False
    rope_by_layer_type: bool = False  # Gemma 3: own rope settings for sliding layers
    partial_rotary: bool = False
    window_setting: Callable[[Get], int | None] = lambda get: None
    layer_types: Callable[[Get], list[str]] = lambda get: [FULL] * get("num_hidden_layers")
    own_layer_types: bool = True  # False: the reference ignores a layer_types list in the config
    flags: Mapping[str, int] = field(default_factory=lambda: {FULL: 0})  # of a layer type
    extra_flags: Callable[[Get], list[int]] = lambda get: [0] * get("num_hidden_layers")


def _all_sliding(get: Get) -> list[str]:
    return [FULL if get("sliding_window") is None else SLIDING] * get("num_hidden_layers")


def _full_every(interval: str | int, usual: str) -> Callable[[Get], list[str]]:
    """Every interval-th layer is full attention, the others are of the usual type. A name means a setting."""

    def layer_types(get: Get) -> list[str]:
        step = get(interval) if isinstance(interval, str) else interval
        return [usual if (i + 1) % step else FULL for i in range(get("num_hidden_layers"))]

    return layer_types


def _qwen_window(get: Get) -> int | None:
    return get("sliding_window") if get("use_sliding_window") else None


def _qwen_layer_types(get: Get) -> list[str]:
    sliding_from = get("num_hidden_layers") if _qwen_window(get) is None else get("max_window_layers")
    return [SLIDING if i >= sliding_from else FULL for i in range(get("num_hidden_layers"))]


def _has_rope(get: Get) -> list[int]:
    """SmolLM3's no_rope_layers reads like its opposite: 1 means that the layer has RoPE."""
    listed = get("no_rope_layers")
    if listed is None:
        return [int((i + 1) % get("no_rope_layer_interval") != 0) for i in range(get("num_hidden_layers"))]
    return listed


def _smollm3_layer_types(get: Get) -> list[str]:
    windowed = _qwen_window(get) is not None
    return [SLIDING if windowed and not rope else FULL for rope in _has_rope(get)[: get("num_hidden_layers")]]


_COMMON = {
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
    "sliding_window": None,
}
_WINDOW = {FULL: 0, SLIDING: FLAG_WINDOW}
_LLAMA_SIZES = {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
_QWEN = _COMMON | {
    **_LLAMA_SIZES,
    "vocab_size": 151936,
    "intermediate_size": 22016,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
}
_GEMMA = _COMMON | {
    "vocab_size": 256000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0,
}


def _allowing(*settings: str) -> dict[str, tuple[Any, ...]]:
    return {name: values for name, values in INEXPRESSIBLE.items() if name not in settings}


LLAMA = Family(
    defaults=_COMMON | _LLAMA_SIZES | {"intermediate_size": 11008, "max_position_embeddings": 2048},
    own_layer_types=False,
)

MISTRAL = Family(
    defaults=_COMMON
    | _LLAMA_SIZES
    | {
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    window_setting=lambda get: get("sliding_window"),
    layer_types=_all_sliding,
    own_layer_types=False,
    flags=_WINDOW,
)

QWEN2 = Family(
    defaults=_QWEN,
    inexpressible=_allowing("attention_bias"),  # no setting of Qwen2's: q, k and v always have one, o never
    qkv_bias=True,
    window_setting=_qwen_window,
    layer_types=_qwen_layer_types,
    flags=_WINDOW,
)

QWEN3 = Family(
    defaults=_QWEN | {"head_dim": 128},
    qk_norm=True,
    window_setting=_qwen_window,
    layer_types=_qwen_layer_types,
    flags=_WINDOW,
)

SMOLLM3 = Family(
    defaults=_COMMON
    | {
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 11008,
        "num_hidden_layers": 36,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "rope_theta": 2000000.0,
        "use_sliding_window": False,
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
    },
    window_setting=_qwen_window,
    layer_types=_smollm3_layer_types,
    flags=_WINDOW,
    extra_flags=lambda get: [0 if rope else FLAG_NOPE for rope in _has_rope(get)],
)

GEMMA2 = Family(
    defaults=_GEMMA,
    names=GEMMA_NAMES,
    inexpressible=_allowing("attn_logit_softcapping", "final_logit_softcapping"),
    activation="hidden_activation",
    zero_centred=ZERO_CENTRED,
    post_norms=True,
    scaled_embedding=True,
    window_setting=lambda get: get("sliding_window"),
    layer_types=_full_every(2, SLIDING),
    flags=_WINDOW,
)

GEMMA3 = Family(
    defaults=_GEMMA
    | {
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window_pattern": 6,
        "final_logit_softcapping": None,
        "attn_logit_softcapping": None,
    },
    names=GEMMA_NAMES,
    inexpressible=_allowing("final_logit_softcapping"),
    activation="hidden_activation",
    zero_centred=ZERO_CENTRED,
    qk_norm=True,
    post_norms=True,
    scaled_embedding=True,
    rope_by_layer_type=True,
    window_setting=lambda get: get("sliding_window"),
    layer_types=_full_every("sliding_window_pattern", SLIDING),
    flags={FULL: 0, SLIDING: FLAG_WINDOW | FLAG_LOCAL_ROPE},
)

QWEN3_5 = Family(
    defaults=_COMMON
    | {
        "vocab_size": 248320,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 32768,
        "partial_rotary_factor": 0.25,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
    },
    inexpressible=_allowing("attn_output_gate") | {"attn_output_gate": (True, None)},
    activations=("silu", "swish"),  # the convolution uses it too, and the format's is SiLU
    zero_centred=ZERO_CENTRED,
    qk_norm=True,
    attn_gate=True,
    partial_rotary=True,
    layer_types=_full_every("full_attention_interval", LINEAR),
    flags={FULL: 0, LINEAR: FLAG_LINEAR},
)

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "smollm3": SMOLLM3,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "qwen3_5": QWEN3_5,
    "qwen3_5_text": QWEN3_5,
}

# model_types whose config.json has the language model's settings in "text_config", beside a vision tower's.
WITH_TEXT_CONFIG = ("gemma3", "qwen3_5")
