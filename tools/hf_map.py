"""Maps a Hugging Face model to the .mlb format: its config to a header, its tensors to the file's arrays.

    header, layer_flags = header_from_config(config, wtype=Q8_0)
    for name, source in plan(header, layer_flags, model_type(config)).items():
        array = source.apply(tensors[source.tensor])

Everything that the header has no field for is refused by name with UnsupportedModel; nothing is guessed. The
families themselves are tables in hf_families.py, RoPE's many spellings are read by hf_rope.py, the changes of
the weights are steps in hf_transforms.py, and what the fields mean is said in the format document. restore()
is the way back, with which tests put a file's weights into the reference implementation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hf_families import BODY_NAMES, FAMILIES, Family
from hf_rope import rope_fields
from hf_settings import Settings, UnsupportedModel, model_type, whole
from hf_transforms import (
    AddOne,
    DropMiddleAxis,
    InterleavePairs,
    PadZeros,
    Shape,
    Step,
    TakePart,
    apply_steps,
    source_shape,
    undo_steps,
)
from mlb_layout import ACT_GELU, ACT_SILU, FLAG_LINEAR, FLAG_LOCAL_ROPE, FLAG_WINDOW, Header, tensor_specs

__all__ = [
    "Source",
    "UnsupportedModel",
    "canonical_name",
    "header_from_config",
    "model_type",
    "plan",
    "restore",
]

ACTIVATIONS = {"silu": ACT_SILU, "swish": ACT_SILU, "gelu_pytorch_tanh": ACT_GELU, "gelu_new": ACT_GELU}

LONGEST = 1 << 24  # what the format allows for max_seq and sliding_window

# ------------------------------------------------------------------------------------------------ header


def header_from_config(
    config: Mapping[str, Any],
    *,
    wtype: int,
    q8_mask: int = 0,
    scale_f16: bool = False,
    max_seq: int | None = None,
    tied: bool | None = None,
) -> tuple[Header, bytes | None]:
    """The header that a config.json calls for, and its layer flags (None when no layer needs any).

    wtype, q8_mask and scale_f16 are how the weights will be stored. max_seq is the longest context; the model's
    own is the default. tied overrides tie_word_embeddings, for checkpoints which contradict their config.
    Raises UnsupportedModel.
    """
    settings = Settings(config)
    _refuse_inexpressible(settings)
    window, layer_flags = _layers(settings)
    header = Header(
        dim=settings.integer("hidden_size"),
        n_layers=settings.integer("num_hidden_layers"),
        n_heads=settings.integer("num_attention_heads"),
        n_kv_heads=_kv_heads(settings),
        hidden_dim=-(-settings.integer("intermediate_size") // 32) * 32,  # zero-padded: see PadZeros
        vocab=settings.integer("vocab_size", at_least=3),
        max_seq=_context(settings, max_seq),
        norm_eps=settings.number("rms_norm_eps"),
        wtype=wtype,
        q8_mask=q8_mask,
        scale_f16=int(scale_f16),
        shared_classifier=int(bool(settings.get("tie_word_embeddings") if tied is None else tied)),
        sliding_window=window,
        layer_flags=int(layer_flags is not None),
        act=_activation(settings),
        qkv_bias=int(settings.family.qkv_bias),
        qk_norm=int(settings.family.qk_norm),
        post_norms=int(settings.family.post_norms),
        attn_gate=int(settings.family.attn_gate),
        head_dim=_head_dim(settings),
        **_factors(settings),
        **rope_fields(settings, _any_flag(layer_flags, FLAG_LOCAL_ROPE)),
        **_linear_attention(settings, _any_flag(layer_flags, FLAG_LINEAR)),
    )
    _check_sizes(header)
    return header, layer_flags


def _refuse_inexpressible(settings: Settings) -> None:
    for name, allowed in settings.family.inexpressible.items():
        value = settings.get(name)
        if value not in allowed:
            raise UnsupportedModel(f"{name} {value!r} of a {settings.model_type} model cannot be expressed")


def _kv_heads(settings: Settings) -> int:
    given = settings.get("num_key_value_heads") is not None
    return settings.integer("num_key_value_heads" if given else "num_attention_heads")


def _context(settings: Settings, max_seq: int | None) -> int:
    longest = settings.integer("max_position_embeddings") if max_seq is None else max_seq
    if not 1 <= longest <= LONGEST:
        raise UnsupportedModel(f"a context of {longest} positions: the format allows 1 to 2^24")
    return longest


def _activation(settings: Settings) -> int:
    name = settings.get(settings.family.activation)
    if name not in settings.family.activations:
        raise UnsupportedModel(f"{settings.family.activation} {name!r} of a {settings.model_type} model")
    return ACTIVATIONS[name]


def _head_dim(settings: Settings) -> int:
    """head_dim as the header has it: 0 where dim / n_heads says the same."""
    derived, remainder = divmod(settings.integer("hidden_size"), settings.integer("num_attention_heads"))
    if settings.get("head_dim") is not None:
        head_dim = settings.integer("head_dim")
        return 0 if head_dim == derived and not remainder else head_dim
    if remainder:
        raise UnsupportedModel(f"hidden_size is not a multiple of num_attention_heads (remainder {remainder})")
    return 0


def _factors(settings: Settings) -> dict[str, float]:
    """The factors of scores and embeddings, and the soft caps; those that do nothing are left at 0."""
    factors = {}
    head_size = _head_dim(settings) or settings.integer("hidden_size") // settings.integer("num_attention_heads")
    if settings.get("query_pre_attn_scalar") not in (None, head_size):
        factors["attn_scale"] = settings.number("query_pre_attn_scalar") ** -0.5
    if settings.family.scaled_embedding:
        factors["embed_scale"] = settings.integer("hidden_size") ** 0.5  # as float32, not rounded to bfloat16
    if settings.get("attn_logit_softcapping"):
        factors["attn_softcap"] = settings.number("attn_logit_softcapping")
    if settings.get("final_logit_softcapping"):
        factors["final_softcap"] = settings.number("final_logit_softcapping")
    return factors


def _linear_attention(settings: Settings, has_linear_layers: bool) -> dict[str, int]:
    if not has_linear_layers:
        return {}
    return {
        "lin_k_heads": settings.integer("linear_num_key_heads"),
        "lin_v_heads": settings.integer("linear_num_value_heads"),
        "lin_k_dim": settings.integer("linear_key_head_dim"),
        "lin_v_dim": settings.integer("linear_value_head_dim"),
        "lin_conv": settings.integer("linear_conv_kernel_dim"),
    }


def _check_sizes(header: Header) -> None:
    """Refuses sizes that no padding can mend without changing the model's numbers."""
    rules = [
        ("hidden_size", header.dim, 32),
        ("head_dim", header.head_size, 2),
        ("num_attention_heads × head_dim", header.q_dim, 32),
        ("num_attention_heads", header.n_heads, header.n_kv_heads),
    ]
    if header.lin_k_heads:
        rules += [
            ("linear_num_value_heads", header.lin_v_heads, math.lcm(4, header.lin_k_heads)),
            ("linear_num_value_heads × linear_value_head_dim", header.lin_value_dim, 32),
        ]
    for name, value, divisor in rules:
        if value % divisor:
            raise UnsupportedModel(f"{name} is {value}, which must be a multiple of {divisor}")


# ------------------------------------------------------------------------------------------------ layers


def _layers(settings: Settings) -> tuple[int, bytes | None]:
    """The window (0 for none) and a byte of flags per layer, or None where the window alone says it all."""
    flags = [
        of_type | extra
        for of_type, extra in zip(
            (_flags_of_type(settings, layer_type) for layer_type in _layer_types(settings)),
            _extra_flags(settings),
            strict=True,
        )
    ]
    window = settings.family.window_setting(settings.get)
    if window is None or not any(flag & FLAG_WINDOW for flag in flags):
        flags = [flag & ~FLAG_WINDOW for flag in flags]
        return 0, bytes(flags) if any(flags) else None
    if whole(window, "sliding_window") > LONGEST:
        raise UnsupportedModel(f"sliding_window {window}: the format allows 1 to 2^24")
    return window, None if all(flag == FLAG_WINDOW for flag in flags) else bytes(flags)


def _layer_types(settings: Settings) -> list[str]:
    family, n_layers = settings.family, settings.integer("num_hidden_layers")
    usual = family.layer_types(settings.get)
    listed = settings.get("layer_types")
    if listed is None:
        return usual
    if len(listed) != n_layers:
        raise UnsupportedModel(f"layer_types names {len(listed)} layers, num_hidden_layers is {n_layers}")
    if not family.own_layer_types and listed != usual:
        raise UnsupportedModel(f"layer_types {listed!r}: all layers of this {settings.model_type} are {usual[0]}")
    return listed


def _flags_of_type(settings: Settings, layer_type: str) -> int:
    if layer_type not in settings.family.flags:
        raise UnsupportedModel(f"layer_types: {layer_type!r} of a {settings.model_type} model")
    return settings.family.flags[layer_type]


def _extra_flags(settings: Settings) -> list[int]:
    n_layers = settings.integer("num_hidden_layers")
    extra = settings.family.extra_flags(settings.get)
    if len(extra) < n_layers:
        raise UnsupportedModel(f"no_rope_layers names {len(extra)} layers, num_hidden_layers is {n_layers}")
    return extra[:n_layers]


def _any_flag(layer_flags: bytes | None, flag: int) -> bool:
    return any(flags & flag for flags in layer_flags or b"")


# ------------------------------------------------------------------------------------------------ tensors


@dataclass(frozen=True)
class Source:
    """Where one array of the file comes from: a checkpoint's tensor, its shape there, what to do with it."""

    tensor: str
    shape: Shape
    steps: tuple[Step, ...]

    def apply(self, tensor: np.ndarray) -> np.ndarray:
        return apply_steps(self.steps, tensor)

    def undo(self, array: np.ndarray) -> np.ndarray:
        return undo_steps(self.steps, array)


@dataclass(frozen=True)
class _Context:
    """What the steps of an array depend on."""

    header: Header
    hidden_dim: int  # of the checkpoint, before padding

    def query_part(self, part: int) -> tuple[Step, ...]:
        header = self.header
        return (TakePart(part, 2, header.n_heads, header.head_size),) if header.attn_gate else ()

    def pairs(self, n_heads: int) -> tuple[Step, ...]:
        return (InterleavePairs(n_heads, self.header.head_size, self.header.rot_size),)

    def padding(self, axis: int) -> tuple[Step, ...]:
        padded = self.header.hidden_dim
        return () if self.hidden_dim == padded else (PadZeros(axis, self.hidden_dim, padded),)


# The steps that an array's meaning calls for; 1 + w is added by family. Layers without RoPE are permuted as
# well: the order of a head's dimensions does not matter to them as long as queries and keys agree.
_STEPS: dict[str, Callable[[_Context], tuple[Step, ...]]] = {
    "wq": lambda c: c.query_part(0) + c.pairs(c.header.n_heads),
    "bq": lambda c: c.pairs(c.header.n_heads),
    "wg": lambda c: c.query_part(1),
    "wk": lambda c: c.pairs(c.header.n_kv_heads),
    "bk": lambda c: c.pairs(c.header.n_kv_heads),
    "q_norm": lambda c: c.pairs(1),
    "k_norm": lambda c: c.pairs(1),
    "lconv": lambda c: (DropMiddleAxis(),),
    "w1": lambda c: c.padding(0),
    "w3": lambda c: c.padding(0),
    "w2": lambda c: c.padding(1),
}


def plan(
    header: Header, layer_flags: bytes | None, model_type: str, *, hidden_dim: int | None = None
) -> dict[str, Source]:
    """For every array of the file, in file order, where it comes from.

    hidden_dim is the checkpoint's intermediate_size; left out, it is the header's (no padding). Tensors are
    named as in a text-only checkpoint: pass the names of others through canonical_name() first.
    """
    family: Family = FAMILIES[model_type]
    context = _Context(header, header.hidden_dim if hidden_dim is None else hidden_dim)
    sources = {}
    for spec in tensor_specs(header, layer_flags):
        array = spec.base_name
        steps = _STEPS[array](context) if array in _STEPS else ()
        if array in family.zero_centred:
            steps = (AddOne(), *steps)
        if spec.layer is None:
            tensor = BODY_NAMES[array]
        else:
            tensor = f"model.layers.{spec.layer}.{family.names[array]}"
        sources[spec.name] = Source(tensor, source_shape(steps, spec.shape), steps)
    return sources


def restore(sources: Mapping[str, Source], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of the checkpoint, by name, from the arrays of a file: plan() backwards."""
    tensors: dict[str, np.ndarray] = {}
    for name, source in sources.items():
        part = source.undo(arrays[name])
        tensors[source.tensor] = tensors[source.tensor] + part if source.tensor in tensors else part
    return tensors


# Checkpoints with a vision tower hold the language model one level down; in which order changed over time.
_RENAMED = (
    (re.compile(r"^(model\.language_model|language_model\.model)\."), "model."),
    (re.compile(r"^language_model\.(?=lm_head\.)"), ""),
)
_UNUSED = (
    re.compile(r"^(model\.)?(visual|vision_tower|vision_model|multi_modal_projector)\."),  # images
    re.compile(r"^mtp\."),  # guesses several tokens ahead; not needed to compute the next
    re.compile(r"\.rotary_emb\.inv_freq$"),  # follows from the config
)


def canonical_name(tensor: str) -> str | None:
    """A checkpoint's tensor name as plan() uses it; None for one that a language model does without."""
    if any(pattern.search(tensor) for pattern in _UNUSED):
        return None
    for pattern, replacement in _RENAMED:
        if pattern.search(tensor):
            return pattern.sub(replacement, tensor)
    return tensor
