"""RoPE as a Hugging Face config describes it, turned into the header's rope_ fields and rot_dim.

Recent configs say everything in "rope_parameters" (Gemma 3: once per layer type). Older ones, which make up
most of what is published, have "rope_theta" beside "rope_scaling". Both are read, with the precedence that
transformers gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hf_settings import Settings, UnsupportedModel, positive, whole
from mlb_layout import ROPE_LINEAR, ROPE_LLAMA3, ROPE_PLAIN, ROPE_YARN

Parameters = Mapping[str, Any]
Fields = dict[str, Any]


def rope_fields(settings: Settings, has_local_layers: bool) -> Fields:
    """All header fields about RoPE. has_local_layers: some layer is flagged for rope_local_theta."""
    fields: Fields = {}
    if settings.family.rope_by_layer_type:
        parameters, local = _by_layer_type(settings)
        if has_local_layers:
            fields["rope_local_theta"] = _local_theta(local)
    else:
        parameters = _of_all_layers(settings)
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind not in SCALINGS:
        raise UnsupportedModel(f"rope_type {kind!r}: supported are {', '.join(SCALINGS)}")
    fields["rope_theta"] = positive(parameters["rope_theta"], "rope_theta")
    fields["rot_dim"] = _rot_dim(settings, parameters)
    return fields | SCALINGS[kind](settings, parameters)


def _of_all_layers(settings: Settings) -> Parameters:
    """One set of parameters; what it lacks may stand beside it."""
    parameters = dict(settings.get("rope_scaling") or settings.get("rope_parameters") or {})
    nested = [name for name, value in parameters.items() if isinstance(value, Mapping)]
    if nested:
        raise UnsupportedModel(f"rope_parameters of its own for {', '.join(nested)} in {settings.model_type}")
    for name in ("rope_theta", "partial_rotary_factor"):
        parameters.setdefault(name, settings.get(name))
    return parameters


def _by_layer_type(settings: Settings) -> tuple[Parameters, Parameters]:
    """Gemma 3: the parameters of full and of sliding layers. An older "rope_scaling" means full layers only."""
    given = settings.get("rope_parameters") or {}
    if not all(value is None or isinstance(value, Mapping) for value in given.values()):
        raise UnsupportedModel(f"rope_parameters {given!r}: {settings.model_type} has them by layer type")
    full = {**(given.get("full_attention") or {}), **(settings.get("rope_scaling") or {})}
    full.setdefault("rope_theta", settings.get("rope_theta"))
    local = dict(given.get("sliding_attention") or {})
    local.setdefault("rope_theta", settings.get("rope_local_base_freq"))
    return full, local


def _local_theta(local: Parameters) -> float:
    kind = local.get("rope_type", local.get("type", "default"))
    if kind != "default":
        raise UnsupportedModel(f"rope_type {kind!r} of the sliding layers: the format does not scale those")
    return positive(local["rope_theta"], "rope_theta of the sliding layers")


def _rot_dim(settings: Settings, parameters: Parameters) -> int:
    factor = parameters.get("partial_rotary_factor")
    if factor is None or factor == 1:
        return 0
    if not settings.family.partial_rotary or positive(factor, "partial_rotary_factor") > 1:
        raise UnsupportedModel(f"partial_rotary_factor {factor!r} of a {settings.model_type} model")
    rot_dim = int(settings.integer("head_dim") * factor)
    if rot_dim < 2 or rot_dim % 2:
        raise UnsupportedModel(f"partial_rotary_factor {factor!r} rotates {rot_dim} dimensions of a head")
    return rot_dim


def _number(parameters: Parameters, name: str) -> float:
    return positive(parameters.get(name), f"{name} of the RoPE scaling")


def _original_context(settings: Settings, parameters: Parameters) -> int:
    """The trained context length. Said beside the scaling it counts more than within, as in transformers."""
    name = "original_max_position_embeddings"
    value = settings.get(name) or parameters.get(name) or settings.get("max_position_embeddings")
    return whole(value, name)


def _plain(settings: Settings, parameters: Parameters) -> Fields:
    return {"rope_type": ROPE_PLAIN}


def _linear(settings: Settings, parameters: Parameters) -> Fields:
    return {"rope_type": ROPE_LINEAR, "rope_factor": _number(parameters, "factor")}


def _llama3(settings: Settings, parameters: Parameters) -> Fields:
    low, high = _number(parameters, "low_freq_factor"), _number(parameters, "high_freq_factor")
    if not low < high:
        raise UnsupportedModel(f"high_freq_factor {high} must be above low_freq_factor {low}")
    return {
        "rope_type": ROPE_LLAMA3,
        "rope_factor": _number(parameters, "factor"),
        "rope_low_freq_factor": low,
        "rope_high_freq_factor": high,
        "rope_orig_max_seq": _original_context(settings, parameters),
    }


def _yarn(settings: Settings, parameters: Parameters) -> Fields:
    if not parameters.get("truncate", True):
        raise UnsupportedModel("truncate False of yarn RoPE scaling: the format rounds the ramp's bounds")
    original = _original_context(settings, parameters)
    if parameters.get("factor") is None:
        factor = settings.integer("max_position_embeddings") / original
    else:
        factor = _number(parameters, "factor")
    # 0 and null mean the usual value here, as in transformers.
    fast = positive(parameters.get("beta_fast") or 32, "beta_fast")
    slow = positive(parameters.get("beta_slow") or 1, "beta_slow")
    if not slow < fast:
        raise UnsupportedModel(f"beta_slow {slow} must be below beta_fast {fast}")
    return {
        "rope_type": ROPE_YARN,
        "rope_factor": factor,
        "rope_low_freq_factor": fast,
        "rope_high_freq_factor": slow,
        "rope_orig_max_seq": original,
        "rope_attn_factor": _yarn_attention_factor(factor, parameters),
    }


def _yarn_attention_factor(factor: float, parameters: Parameters) -> float:
    """Given, or the ratio of the two mscales, or 0.1 ln(factor) + 1, in transformers' order."""

    def scale(mscale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0

    if parameters.get("attention_factor") is not None:
        return _number(parameters, "attention_factor")
    if parameters.get("mscale") and parameters.get("mscale_all_dim"):
        return scale(_number(parameters, "mscale")) / scale(_number(parameters, "mscale_all_dim"))
    return scale(1.0)


SCALINGS: dict[str, Callable[[Settings, Parameters], Fields]] = {
    "default": _plain,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}
