"""The forward pass of a TinyLoop model in numpy and float64, written from docs/TINYLOOP.md alone: what the engine and
the torch module are compared with. The whole sequence at once, and no cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyloop_layout import NORM_EPS, ROPE_THETA, Header

# What a quantized matrix sees of its input (positions, columns): the input itself, or what the engine makes of it.
See = Callable[[np.ndarray], np.ndarray]


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + NORM_EPS) * weight


def rotate(x: np.ndarray) -> np.ndarray:
    """x: (positions, heads, head_dim). Turns the pairs (2i, 2i + 1) by position * theta^(-2i / head_dim)."""
    n, _, head_dim = x.shape
    angles = np.arange(n)[:, None] * ROPE_THETA ** (-np.arange(0, head_dim, 2) / head_dim)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1).reshape(x.shape)


def attention(x: np.ndarray, w: Mapping[str, np.ndarray], n_heads: int, see: See) -> np.ndarray:
    n, dim = x.shape
    x = see(x)
    q, k, v = ((x @ w[name].T).reshape(n, n_heads, -1) for name in ("wq", "wk", "wv"))
    scores = np.einsum("qhd,khd->hqk", rotate(q), rotate(k)) / np.sqrt(dim // n_heads)
    scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return see(np.einsum("hqk,khd->qhd", weights, v).reshape(n, dim)) @ w["wo"].T


def feed_forward(x: np.ndarray, w: Mapping[str, np.ndarray], see: See) -> np.ndarray:
    x = see(x)
    gate = x @ w["w1"].T
    return see(gate / (1 + np.exp(-gate)) * (x @ w["w3"].T)) @ w["w2"].T


def logits(
    header: Header,
    weights: Mapping[str, np.ndarray],
    ids: Sequence[int],
    loops: int | None = None,
    see: See = lambda x: x,
) -> np.ndarray:
    """float64 (positions, vocab_size).

    weights: dequantized, by the names of the file. loops: None for the default. see: what quantized matrices see of
    their inputs."""
    w = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    x = w["embed_weight"][np.asarray(ids)]
    if header.embed_factor_dim:
        x = x @ w["embed_proj"].T
    order = [*range(header.n_pre_blocks), *[header.n_pre_blocks] * (loops or header.default_loops)]
    for block in order:
        prefix = f"blocks.{block}."
        own = {name.removeprefix(prefix): value for name, value in w.items() if name.startswith(prefix)}
        x = x + attention(rms_norm(x, own["attn_norm"]), own, header.n_heads, see)
        x = x + feed_forward(rms_norm(x, own["ffn_norm"]), own, see)
    x = rms_norm(x, w["final_norm"])
    if header.embed_factor_dim:
        return x @ w["head_proj"].T @ w["head_weight"].T
    return see(x) @ w["head_weight"].T
