"""Tiny random models, one for every feature of the .mlb format.

A feature is a function that gives a header and layer flags; its docstring is what `mlb.py tiny --list` shows. Weights
come from an integer generator keyed by seed and tensor name, so the same feature and seed give the same bytes on every
machine, and two features share the weights of the tensors that they have in common. Magnitudes are chosen so that
the forward pass is worth testing: attention neither flat nor one-hot, logits spread over several units, and a
greedy continuation that does not just repeat a token.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlb import (
    ACT_GELU,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    MASK_ALL,
    MASK_O,
    MASK_QK,
    MASK_TOK_EMB,
    MASK_V,
    MASK_W2,
    MASK_W13,
    MASK_WCLS,
    Q4_0,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_YARN,
    Header,
    TensorSpec,
    write_model,
)

Shape = tuple[Header, bytes | None]


class TinyModel(NamedTuple):
    """Ready for `write_model(path, *make_tiny(feature))`."""

    header: Header
    layer_flags: bytes | None
    provide: Callable[[TensorSpec], np.ndarray]


def make_tiny(feature: str, seed: int = 0, **changes: float) -> TinyModel:
    """The model of a feature of FEATURES, with some header fields changed, its weights still float32."""
    header, layer_flags = FEATURES[feature]()
    header = replace(header, **changes)
    return TinyModel(header, layer_flags, lambda spec: _weights(header, spec, seed))


def write_tiny(path: str | Path, feature: str, seed: int = 0) -> None:
    """Writes the model of a feature. At most about 200 KB."""
    write_model(path, *make_tiny(feature, seed))


# ---------------------------------------------------------------- weights


def _weights(header: Header, spec: TensorSpec, seed: int) -> np.ndarray:
    """Roughly normal values; mean and spread by the tensor's part in the forward pass. float32, of the spec's shape."""
    name = spec.base_name
    # What a layer adds must outweigh the embedding, or greedy decoding repeats the last token for ever.
    branch = max(1.4, 2.0 * header.embed_scale * _GAINS["tok_emb"] / math.sqrt(header.dim))
    if name in _GAINS:
        mean, spread = 0.0, _GAINS[name] / math.sqrt(spec.cols)
        if name in ("wo", "w2", "lout"):
            spread *= branch
    else:
        mean, spread = _VECTORS[name]
        if name.startswith("post_"):
            mean *= branch
    values = mean + spread * _normal(spec.name, spec.rows * spec.cols, seed)
    if name == "lconv":
        values.reshape(spec.rows, spec.cols)[:, -1] += 0.7  # the current input counts most
    return values.astype(np.float32).reshape(spec.shape)


# Matrices: the root mean square of an output for inputs of root mean square 1.
_GAINS = {
    "tok_emb": 3.0,
    "wcls": 3.0,
    "wq": 1.4,
    "wk": 1.4,
    "wv": 1.0,
    "wo": 2.0,
    "wg": 2.0,
    "lqkv": 1.0,
    "lz": 1.0,
    "lb": 1.0,
    "la": 1.0,
    "lout": 2.0,
    "w1": 1.0,
    "w3": 1.5,
    "w2": 2.0,
}

# All else: mean and spread.
_VECTORS = {
    "attn_norm": (1.0, 0.1),
    "ffn_norm": (1.0, 0.1),
    "post_attn_norm": (1.0, 0.1),
    "post_ffn_norm": (1.0, 0.1),
    "final_norm": (1.0, 0.1),
    "q_norm": (1.4, 0.2),
    "k_norm": (1.4, 0.2),
    "lnorm": (1.0, 0.1),
    "bq": (0.0, 0.3),
    "bk": (0.0, 0.3),
    "bv": (0.0, 0.3),
    "lconv": (0.0, 0.3),
    "dt_bias": (-1.0, 0.5),
    "A_log": (-1.0, 0.7),  # decays of about 0.6 to 0.95 a step
}


def _normal(name: str, n: int, seed: int) -> np.ndarray:
    """n roughly normal numbers: splitmix64 of a counter, four 16-bit parts of it summed. Integers until the end."""
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    parts = sum((z >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    # Four uniform numbers of 0 .. 65535: mean 131070, variance (65536² - 1) / 3.
    return (parts.astype(np.int64) - 131070) / math.sqrt((65536**2 - 1) / 3)


# ---------------------------------------------------------------- features


def _base(**changes: float) -> Header:
    """Llama's plain shape. 251 tokens: prime, so no kernel gets whole groups of rows."""
    plain = Header(
        dim=64,
        n_layers=2,
        n_heads=4,
        n_kv_heads=2,
        hidden_dim=96,
        vocab=251,
        max_seq=256,
        shared_classifier=1,
    )
    return replace(plain, **changes)


def _plain(text: str, **changes: float) -> Callable[[], Shape]:
    """A feature that is the base with some fields changed."""

    def feature() -> Shape:
        return _base(**changes), None

    feature.__doc__ = text
    return feature


def _flagged(text: str, flags: list[int], **changes: float) -> Callable[[], Shape]:
    """A feature with a byte of flags per layer."""

    def feature() -> Shape:
        return _base(layer_flags=1, n_layers=len(flags), **changes), bytes(flags)

    feature.__doc__ = text
    return feature


def _q4(**changes: float) -> dict[str, float]:
    return {"wtype": Q4_0} | changes


_LLAMA3 = {
    "rope_type": ROPE_LLAMA3,
    "rope_factor": 8.0,
    "rope_low_freq_factor": 1.0,
    "rope_high_freq_factor": 4.0,
    "rope_orig_max_seq": 32,
}
_YARN = {
    "rope_type": ROPE_YARN,
    "rope_factor": 4.0,
    "rope_low_freq_factor": 32.0,
    "rope_high_freq_factor": 1.0,
    "rope_orig_max_seq": 64,
    "rope_attn_factor": 0.1 * math.log(4.0) + 1,
}
_LINEAR = {"lin_k_heads": 2, "lin_v_heads": 4, "lin_k_dim": 16, "lin_v_dim": 8, "lin_conv": 4}
_GEMMA = {"act": ACT_GELU, "post_norms": 1, "embed_scale": 8.0, "attn_scale": 0.2, "norm_eps": 1e-6}
_LOCAL = FLAG_WINDOW | FLAG_LOCAL_ROPE
_EVERYTHING = (
    _q4(q8_mask=MASK_TOK_EMB | MASK_V | MASK_W2, scale_f16=1, shared_classifier=0)
    | {"n_heads": 8, "n_kv_heads": 2, "head_dim": 12, "rot_dim": 8, "qkv_bias": 1, "qk_norm": 1, "attn_gate": 1}
    | {"sliding_window": 5, "rope_local_theta": 500.0, "attn_softcap": 8.0, "final_softcap": 12.0}
    | _YARN
    | _GEMMA
    | _LINEAR
)

FEATURES: dict[str, Callable[[], Shape]] = {
    "llama": _plain("plain Llama shape: Q8_0, grouped queries, shared classifier"),
    "q4": _plain("Q4_0 weights", **_q4()),
    "q8_f16": _plain("Q8_0 with float16 scales", scale_f16=1),
    "q4_f16": _plain("Q4_0 with float16 scales", **_q4(scale_f16=1)),
    "mask_tok_emb": _plain("Q4_0, but the embedding Q8_0", **_q4(q8_mask=MASK_TOK_EMB, shared_classifier=0)),
    "mask_wcls": _plain("Q4_0, but the classifier Q8_0", **_q4(q8_mask=MASK_WCLS, shared_classifier=0)),
    "mask_shared": _plain("Q4_0, but the shared embedding Q8_0 by the classifier's bit", **_q4(q8_mask=MASK_WCLS)),
    "mask_qk": _plain("Q4_0, but wq, wk and wg Q8_0", **_q4(q8_mask=MASK_QK, attn_gate=1)),
    "mask_v": _plain("Q4_0, but wv Q8_0", **_q4(q8_mask=MASK_V)),
    "mask_o": _plain("Q4_0, but wo Q8_0", **_q4(q8_mask=MASK_O)),
    "mask_w13": _plain("Q4_0, but w1 and w3 Q8_0", **_q4(q8_mask=MASK_W13)),
    "mask_w2": _plain("Q4_0, but w2 Q8_0", **_q4(q8_mask=MASK_W2)),
    "mask_all": _plain("Q4_0 with every class Q8_0, float16 scales", **_q4(q8_mask=MASK_ALL, scale_f16=1)),
    "mha": _plain("as many key heads as query heads", n_kv_heads=4),
    "mqa": _plain("one key head for all query heads", n_heads=8, n_kv_heads=1),
    "head_dim": _plain("head size apart from dim / n_heads: q_dim 96 beside dim 64", n_heads=6, head_dim=16),
    "odd_heads": _plain("head size 6, no multiple of 8", n_heads=16, n_kv_heads=4, head_dim=6),
    "qkv_bias": _plain("biases on q, k and v", qkv_bias=1),
    "qk_norm": _plain("RMS norm of query and key heads", qk_norm=1),
    "rope_llama3": _plain("llama3 RoPE scaling", **_LLAMA3),
    "rope_linear": _plain("linear RoPE scaling", rope_type=ROPE_LINEAR, rope_factor=2.5),
    "rope_yarn": _plain("yarn RoPE scaling with an attention factor", **_YARN),
    "rot_dim": _plain("RoPE on a quarter of each head", n_heads=2, n_kv_heads=1, rot_dim=8, shared_classifier=0),
    "window": _plain("one sliding window for all layers", sliding_window=6),
    "window_layers": _flagged("a sliding window on every other layer", [FLAG_WINDOW, 0] * 2, sliding_window=6),
    "local_rope": _flagged(
        "layers with a RoPE base of their own, beside scaled ones",
        [_LOCAL, FLAG_LOCAL_ROPE, 0],
        sliding_window=6,
        rope_local_theta=300.0,
        rope_type=ROPE_LINEAR,
        rope_factor=4.0,
    ),
    "nope": _flagged("layers without RoPE, one of them behind the window", [0, FLAG_NOPE, 0, 5], sliding_window=6),
    "gelu": _plain("GELU in the feed-forward", act=ACT_GELU),
    "post_norms": _plain("norms on the outputs of attention and feed-forward", post_norms=1),
    "embed_scale": _plain("a factor on the embedding, not on the shared classifier", embed_scale=8.0),
    "attn_scale": _plain("an attention score factor of its own", attn_scale=0.4),
    "attn_softcap": _plain("soft-capped attention scores", attn_softcap=3.0),
    "final_softcap": _plain("soft-capped logits", final_softcap=6.0),
    "attn_gate": _plain("gated attention output", attn_gate=1),
    "linear": _flagged("linear attention layers among others, two value heads to a key head", [8, 8, 0], **_LINEAR),
    "linear_only": _flagged(
        "linear attention alone: key heads of 12, as many value heads",
        [FLAG_LINEAR] * 3,
        lin_k_heads=4,
        lin_v_heads=4,
        lin_k_dim=12,
        lin_v_dim=16,
        lin_conv=3,
    ),
    "linear_q4": _flagged("linear attention in Q4_0 with float16 scales", [8, 0], **_q4(scale_f16=1), **_LINEAR),
    "linear_mask": _flagged(
        "linear attention in Q4_0, its classes of wq, wv and wo Q8_0",
        [0, 8],
        **_q4(q8_mask=MASK_QK | MASK_V | MASK_O, post_norms=1),
        **_LINEAR,
    ),
    "untied": _plain("a classifier of its own", shared_classifier=0),
    "long_context": _plain("the largest max_seq that the format allows", max_seq=1 << 24),
    "one_layer": _plain("the smallest of everything", dim=32, n_layers=1, n_heads=1, n_kv_heads=1, hidden_dim=32),
    "qwen2": _plain("Qwen2 shape", qkv_bias=1, rope_theta=1e6, norm_eps=1e-6),
    "qwen3": _plain("Qwen3 shape", qk_norm=1, head_dim=24, rope_theta=1e6, norm_eps=1e-6),
    "qwen35": _flagged(
        "Qwen3.5 shape: three linear layers to one gated attention layer",
        [FLAG_LINEAR, FLAG_LINEAR, FLAG_LINEAR, 0],
        qk_norm=1,
        attn_gate=1,
        n_heads=2,
        n_kv_heads=1,
        rot_dim=8,
        rope_theta=1e7,
        norm_eps=1e-6,
        **_LINEAR,
    ),
    "smollm3": _flagged("SmolLM3 shape: every fourth layer without RoPE", [0, 0, 0, FLAG_NOPE], rope_theta=5e6),
    "gemma2": _flagged(
        "Gemma 2 shape: soft caps, a window on every other layer",
        [FLAG_WINDOW, 0, FLAG_WINDOW, 0],
        sliding_window=8,
        attn_softcap=5.0,
        final_softcap=10.0,
        **_GEMMA,
    ),
    "gemma3": _flagged(
        "Gemma 3 shape: five local layers to one global",
        [_LOCAL] * 5 + [0],
        dim=32,
        head_dim=16,
        hidden_dim=64,
        sliding_window=8,
        rope_theta=1e6,
        rope_local_theta=1e4,
        qk_norm=1,
        **_GEMMA,
    ),
    "everything": _flagged("all features at once", [_LOCAL, FLAG_LINEAR, FLAG_NOPE, 0, 5], **_EVERYTHING),
}
