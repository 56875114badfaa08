"""Maps a GGUF model to the .mlb format by way of Hugging Face's: its metadata to a config, its tensors to sources.

    config = config_of(model)                                    as config.json would have it
    sources = gguf_plan(header, layer_flags, model, config)      like hf_map.plan, of GGUF's tensors

The programs that write GGUF have already done a part of what hf_map.plan asks for, and a few things of their own:

    Llama, SmolLM3     rows of q and k are in interleaved order
    Gemma, Qwen3.5     norms hold 1 + w
    Qwen3.5            value heads are tiled, -exp(A_log) stands for A_log, the convolution has no middle axis

so that each step is done once, here or there. Facts of llama.cpp's model code that stand in no key are in config_of().
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpoint_errors import CheckpointError
from gguf_blocks import read_floats
from gguf_reader import GgufModel, Metadata
from gguf_rope import rope_parameters
from gguf_transforms import GroupHeads, NegativeLog
from hf_families import FAMILIES
from hf_map import Source, plan
from hf_settings import Settings
from hf_transforms import AddOne, DropMiddleAxis, InterleavePairs, Step
from mlb_layout import Header

Config = dict[str, Any]

EMBEDDING, CLASSIFIER, ROPE_FACTORS = "token_embd.weight", "output.weight", "rope_freqs.weight"
BODY = {"tok_emb": EMBEDDING, "final_norm": "output_norm.weight", "wcls": CLASSIFIER}

# Of a layer, after "blk.<n>.".
NAMES = {
    "attn_norm": "attn_norm.weight",
    "wq": "attn_q.weight",
    "wk": "attn_k.weight",
    "wv": "attn_v.weight",
    "wo": "attn_output.weight",
    "wg": "attn_q.weight",  # the second half of each head's rows
    "bq": "attn_q.bias",
    "bk": "attn_k.bias",
    "bv": "attn_v.bias",
    "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight",
    "ffn_norm": "ffn_norm.weight",
    "w1": "ffn_gate.weight",
    "w2": "ffn_down.weight",
    "w3": "ffn_up.weight",
}
GEMMA_NAMES = NAMES | {"post_attn_norm": "post_attention_norm.weight", "post_ffn_norm": "post_ffw_norm.weight"}
QWEN35_NAMES = NAMES | {
    "ffn_norm": "post_attention_norm.weight",
    "lqkv": "attn_qkv.weight",
    "lz": "attn_gate.weight",
    "lb": "ssm_beta.weight",
    "la": "ssm_alpha.weight",
    "lconv": "ssm_conv1d.weight",
    "dt_bias": "ssm_dt.bias",
    "A_log": "ssm_a",
    "lnorm": "ssm_norm.weight",
    "lout": "ssm_out.weight",
}


@dataclass(frozen=True)
class Architecture:
    """A value of general.architecture. `done`: steps of hf_map.plan that GGUF's writers have taken already."""

    model_type: str
    names: Mapping[str, str]
    done: tuple[type[Step], ...] = ()


ARCHITECTURES = {
    "llama": Architecture("llama", NAMES, (InterleavePairs,)),
    "qwen2": Architecture("qwen2", NAMES),
    "qwen3": Architecture("qwen3", NAMES),
    "smollm3": Architecture("smollm3", NAMES, (InterleavePairs,)),
    "gemma2": Architecture("gemma2", GEMMA_NAMES, (AddOne,)),
    "gemma3": Architecture("gemma3_text", GEMMA_NAMES, (AddOne,)),
    "qwen35": Architecture("qwen3_5_text", QWEN35_NAMES, (AddOne, DropMiddleAxis)),
}

MAX_LAYERS = 65536  # the format's

# Layers of the one size of Gemma 2 and 3 whose scores are scaled by dim / n_heads rather than by the head size.
GEMMA_27B = {"gemma2": 46, "gemma3": 62}


def architecture_of(metadata: Metadata) -> tuple[str, Architecture]:
    """The name and what it means. Raises CheckpointError for an unknown one."""
    name = metadata.text("general.architecture")
    if name not in ARCHITECTURES:
        raise CheckpointError(
            f"{metadata.path}: general.architecture {name!r}: supported are {', '.join(sorted(ARCHITECTURES))}"
        )
    return name, ARCHITECTURES[name]


# ---------------------------------------------------------------- config


def config_of(model: GgufModel) -> Config:
    """The metadata as a Hugging Face config of a text-only model, for header_from_config() and transformers."""
    metadata = model.metadata
    name, architecture = architecture_of(metadata)
    heads = metadata.integer(f"{name}.attention.head_count", at_least=1)
    config: Config = {
        "model_type": architecture.model_type,
        "hidden_size": metadata.integer(f"{name}.embedding_length"),
        "num_hidden_layers": _layers(metadata, name),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.integer(f"{name}.attention.head_count_kv", heads),
        "head_dim": metadata.integer(f"{name}.attention.key_length", None),
        "intermediate_size": metadata.integer(f"{name}.feed_forward_length"),
        "vocab_size": _vocabulary(model, name),
        "max_position_embeddings": metadata.integer(f"{name}.context_length"),
        "rms_norm_eps": metadata.number(f"{name}.attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": CLASSIFIER not in model.tensors,
        "num_experts": metadata.integer(f"{name}.expert_count", None),
        "use_bidirectional_attention": not metadata.flag(f"{name}.attention.causal", True),
    }
    head_size = config["head_dim"] or config["hidden_size"] // heads
    if metadata.integer(f"{name}.attention.value_length", head_size) != head_size:
        raise CheckpointError(f"{metadata.path}: heads of values are not as large as those of keys ({head_size})")
    partial = FAMILIES[architecture.model_type].partial_rotary
    config["rope_parameters"] = rope_parameters(metadata, name, head_size, _rope_factors(model), partial=partial)
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if f"{name}.{key}" in metadata:
            config[key] = metadata.number(f"{name}.{key}")
    return config | _EXTRAS.get(name, _nothing)(metadata, name, config)


def _nothing(metadata: Metadata, name: str, config: Config) -> Config:
    return {}


def _layers(metadata: Metadata, name: str) -> int:
    """Without the extra layers at the end that guess several tokens ahead."""
    layers = metadata.integer(f"{name}.block_count") - metadata.integer(f"{name}.nextn_predict_layers", 0)
    if not 1 <= layers <= MAX_LAYERS:
        raise CheckpointError(f"{metadata.path}: {layers} layers; 1 to {MAX_LAYERS} are allowed")
    return layers


def _vocabulary(model: GgufModel, name: str) -> int:
    if EMBEDDING not in model.tensors:
        raise CheckpointError(f"{model.path}: tensor {EMBEDDING} is missing")
    rows = model.tensors[EMBEDDING].shape[0]
    stated = model.metadata.integer(f"{name}.vocab_size", rows)
    if stated != rows:
        raise CheckpointError(f"{model.path}: {name}.vocab_size is {stated}, {EMBEDDING} has {rows} rows")
    return rows


def _rope_factors(model: GgufModel) -> Any:
    return read_floats(model.tensors[ROPE_FACTORS]) if ROPE_FACTORS in model.tensors else None


def _llama(metadata: Metadata, name: str, config: Config) -> Config:
    """Mistral bears the name llama, with a window if its writer told."""
    window = metadata.integer(f"{name}.attention.sliding_window", 0)
    return {"model_type": "mistral", "sliding_window": window} if window else {}


def _gemma(metadata: Metadata, name: str, config: Config) -> Config:
    per_head = config["hidden_size"] // config["num_attention_heads"]
    extras: Config = {"query_pre_attn_scalar": config["head_dim"] or per_head}
    if config["num_hidden_layers"] == GEMMA_27B[name]:
        extras["query_pre_attn_scalar"] = per_head
    window = metadata.integer(f"{name}.attention.sliding_window", 4096 if name == "gemma2" else 0)
    extras["sliding_window"] = window or None
    pattern = metadata.integer(f"{name}.attention.sliding_window_pattern", 2 if name == "gemma2" else 6, at_least=1)
    types = [
        "sliding_attention" if window and (i + 1) % pattern else "full_attention"
        for i in range(config["num_hidden_layers"])
    ]
    extras["layer_types"] = types
    if name == "gemma3":
        local = metadata.number(f"{name}.rope.freq_base_swa", 10000.0)
        extras["rope_parameters"] = {
            "full_attention": config["rope_parameters"],
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        }
    return extras


def _qwen35(metadata: Metadata, name: str, config: Config) -> Config:
    metadata.integers(f"{name}.rope.dimension_sections", None)  # of images; for text all sections are one
    v_heads = metadata.integer(f"{name}.ssm.time_step_rank", at_least=1)
    inner = metadata.integer(f"{name}.ssm.inner_size")
    if inner % v_heads:
        raise CheckpointError(f"{metadata.path}: {name}.ssm.inner_size {inner} for {v_heads} value heads")
    return {
        "linear_conv_kernel_dim": metadata.integer(f"{name}.ssm.conv_kernel"),
        "linear_key_head_dim": metadata.integer(f"{name}.ssm.state_size"),
        "linear_num_key_heads": metadata.integer(f"{name}.ssm.group_count"),
        "linear_num_value_heads": v_heads,
        "linear_value_head_dim": inner // v_heads,
        "full_attention_interval": metadata.integer(f"{name}.full_attention_interval", 4),
    }


_EXTRAS = {"llama": _llama, "gemma2": _gemma, "gemma3": _gemma, "qwen35": _qwen35}


# ---------------------------------------------------------------- tensors


def gguf_plan(header: Header, layer_flags: bytes | None, model: GgufModel, config: Config) -> dict[str, Source]:
    """For every array of the file, in file order, the GGUF tensor that it comes from and what to do with it."""
    _, architecture = architecture_of(model.metadata)
    hidden_dim = Settings(config).integer("intermediate_size")
    return {
        name: _source(name, source, header, architecture)
        for name, source in plan(header, layer_flags, config["model_type"], hidden_dim=hidden_dim).items()
    }


def _source(name: str, source: Source, header: Header, architecture: Architecture) -> Source:
    *at, array = name.split(".")  # "layers", number
    tensor = f"blk.{at[1]}.{architecture.names[array]}" if at else BODY[array]
    kept = tuple(step for step in source.steps if not isinstance(step, architecture.done))
    steps = _own_steps(array, header) + kept
    shape = source.shape
    if DropMiddleAxis in architecture.done and len(shape) == 3:
        shape = (shape[0], shape[2])
    return Source(tensor, shape, steps)


def _own_steps(array: str, header: Header) -> tuple[Step, ...]:
    """What GGUF's writers did to linear attention, undone."""
    if not header.lin_k_heads or array not in ("lqkv", "lz", "lb", "la", "lconv", "dt_bias", "A_log", "lout"):
        return ()
    axis, start, size = 0, 0, 1
    if array in ("lqkv", "lconv"):
        start, size = 2 * header.lin_k_heads * header.lin_k_dim, header.lin_v_dim
    elif array == "lz":
        size = header.lin_v_dim
    elif array == "lout":
        axis, size = 1, header.lin_v_dim
    steps: tuple[Step, ...] = (GroupHeads(axis, start, header.lin_k_heads, header.lin_v_heads, size),)
    if header.lin_k_heads == header.lin_v_heads:
        steps = ()  # tiled and grouped are one
    return steps + ((NegativeLog(),) if array == "A_log" else ())
