"""The forward pass of the .mlb format in float64, written from the format document and nothing else.

One position after the other, one head after the other, no trick: this file is meant to be read beside the
document. It shares no code with the engine, nor with transformers, with which test_reference.py compares it; so
what all three agree on is what the document means, and the engine can then be held against this one for everything
that a header can say, also for combinations that no published model has.

Weights are w = q × d (dequantized), activations are not quantized: what the engine's `--exact` mode computes. With
quantize_activations the input of every quantized matrix goes through the document's quantization rule, which is
what the engine's production mode computes, but for the order of its additions. With quantize_cache keys and values go
through that rule too, in blocks of 32 of each head, and so do queries if activations do: the engine's `--kv q8`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from mlb import (
    ACT_GELU,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_YARN,
    Header,
    Model,
)
from quant import quantize_q8_0

Observe = Callable[[str, np.ndarray], None]  # called with a matrix's name and its input

L2_EPSILON = 1e-6


# ---------------------------------------------------------------- small functions


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x) + epsilon) * weight


def l2_norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.sum(x * x) + L2_EPSILON)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def gelu(x: np.ndarray) -> np.ndarray:
    """With the tanh approximation."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, x)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def soft_cap(x: np.ndarray, cap: float) -> np.ndarray:
    """cap · tanh(x / cap); a cap of 0 means none."""
    return cap * np.tanh(x / cap) if cap else x


# ---------------------------------------------------------------- RoPE


def inverse_frequencies(header: Header, local: bool = False) -> np.ndarray:
    """What a position is multiplied with to give the angle of each pair, (rot_size / 2). Document, "RoPE"."""
    size = header.rot_size
    i = np.arange(size // 2)
    if local:
        return header.rope_local_theta ** (-2.0 * i / size)
    plain = header.rope_theta ** (-2.0 * i / size)
    if header.rope_type == ROPE_LINEAR:
        return plain / header.rope_factor
    if header.rope_type == ROPE_LLAMA3:
        return np.array([_llama3(inv, header) for inv in plain])
    if header.rope_type == ROPE_YARN:
        ramp = _yarn_ramp(header)
        return plain / header.rope_factor * ramp + plain * (1 - ramp)
    return plain


def _llama3(inv: float, header: Header) -> float:
    low, high = header.rope_low_freq_factor, header.rope_high_freq_factor
    original, factor = header.rope_orig_max_seq, header.rope_factor
    wavelength = 2 * math.pi / inv
    if wavelength < original / high:
        return inv
    if wavelength > original / low:
        return inv / factor
    s = (original / wavelength - low) / (high - low)
    return (1 - s) * inv / factor + s * inv


def _yarn_ramp(header: Header) -> np.ndarray:
    size, original = header.rot_size, header.rope_orig_max_seq

    def dimension(rotations: float) -> float:
        return size * math.log(original / (2 * math.pi * rotations)) / (2 * math.log(header.rope_theta))

    low = max(math.floor(dimension(header.rope_low_freq_factor)), 0)
    high = min(math.ceil(dimension(header.rope_high_freq_factor)), size - 1)
    if low == high:
        high += 0.001
    return np.clip((np.arange(size // 2) - low) / (high - low), 0, 1)


def rotate(head: np.ndarray, angles: np.ndarray, factor: float) -> np.ndarray:
    """Turns the pairs (2i, 2i + 1) of a head by angles (pairs); dimensions past the last pair stay as they are."""
    rotated = head.copy()
    even, odd = head[0 : 2 * len(angles) : 2], head[1 : 2 * len(angles) : 2]
    cos, sin = factor * np.cos(angles), factor * np.sin(angles)
    rotated[0 : 2 * len(angles) : 2] = even * cos - odd * sin
    rotated[1 : 2 * len(angles) : 2] = even * sin + odd * cos
    return rotated


# ---------------------------------------------------------------- linear attention


def delta_step(
    state: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    decay: float,
    beta: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One position of one value head: (new state dk × dv, output dv). query and key are as projected."""
    query = l2_norm(query) / math.sqrt(len(query))
    key = l2_norm(key)
    state = state * decay
    state = state + np.outer(key, beta * (value - state.T @ key))
    return state, state.T @ query


def decay_of(a: np.ndarray, a_log: np.ndarray, dt_bias: np.ndarray) -> np.ndarray:
    """exp(g) of each value head."""
    return np.exp(-np.exp(a_log) * softplus(a + dt_bias))


# ---------------------------------------------------------------- the model


def quantize_heads(heads: np.ndarray) -> np.ndarray:
    """Heads (n, head_size) as they come back from bytes; a last block of fewer than 32 is filled up with zeros."""
    size = heads.shape[1]
    padded = np.pad(heads.astype(np.float32), ((0, 0), (0, -size % 32)))
    return quantize_q8_0(padded).dequantize()[:, :size].astype(np.float64)


class Reference:
    """A model and the state of one sequence. step() takes the next token and gives the logits after it."""

    def __init__(
        self,
        model: Model,
        *,
        quantize_activations: bool = False,
        quantize_cache: bool = False,
        observe: Observe | None = None,
    ) -> None:
        self.header = model.header
        self.flags = model.layer_flags or bytes([FLAG_WINDOW]) * model.header.n_layers
        self.quantized = {spec.name for spec in model.tensors() if spec.kind != "f32"}
        self.weights = {spec.name: model.array(spec.name).astype(np.float64) for spec in model.tensors()}
        self.quantize_activations = quantize_activations
        self.quantize_cache = quantize_cache
        self.observe = observe
        self.angles = {local: self._angles(local) for local in (False, True)}
        self.reset()

    def reset(self) -> None:
        """Forgets the sequence."""
        header = self.header
        self.position = 0
        self.keys = [[] for _ in range(header.n_layers)]  # per position: n_kv_heads × head_size
        self.values = [[] for _ in range(header.n_layers)]
        self.conv = [np.zeros((max(header.lin_conv, 1) - 1, header.lin_channels)) for _ in range(header.n_layers)]
        self.state = [
            np.zeros((header.lin_v_heads, header.lin_k_dim, header.lin_v_dim)) for _ in range(header.n_layers)
        ]

    def step(self, token: int) -> np.ndarray:
        """The logits (vocab) at the position of this token."""
        header = self.header
        x = self.weights["tok_emb"][token] * (header.embed_scale or 1.0)
        for layer in range(header.n_layers):
            x = x + self._post_norm(layer, "post_attn_norm", self._mix(layer, self._norm(layer, "attn_norm", x)))
            x = x + self._post_norm(layer, "post_ffn_norm", self._ffn(layer, self._norm(layer, "ffn_norm", x)))
        self.position += 1
        x = rms_norm(x, self.weights["final_norm"], header.norm_eps)
        return soft_cap(self._matmul("tok_emb" if header.shared_classifier else "wcls", x), header.final_softcap)

    # ---- parts of a layer

    def _mix(self, layer: int, x: np.ndarray) -> np.ndarray:
        return (self._linear_attention if self._linear(layer) else self._attention)(layer, x)

    def _attention(self, layer: int, x: np.ndarray) -> np.ndarray:
        header, weights, at = self.header, self.weights, f"layers.{layer}."
        q, k, v = (self._matmul(at + name, x) for name in ("wq", "wk", "wv"))
        if header.qkv_bias:
            q, k, v = q + weights[at + "bq"], k + weights[at + "bk"], v + weights[at + "bv"]
        q = q.reshape(header.n_heads, header.head_size)
        k = k.reshape(header.n_kv_heads, header.head_size)
        if header.qk_norm:
            q = np.array([self._norm(layer, "q_norm", head) for head in q])
            k = np.array([self._norm(layer, "k_norm", head) for head in k])
        if not self.flags[layer] & FLAG_NOPE:
            local = bool(self.flags[layer] & FLAG_LOCAL_ROPE)
            angles = self.position * self.angles[local]
            factor = 1.0 if local else header.rope_attn_factor or 1.0
            q = np.array([rotate(head, angles, factor) for head in q])
            k = np.array([rotate(head, angles, factor) for head in k])
        v = v.reshape(header.n_kv_heads, header.head_size)
        if self.quantize_cache:
            k, v = quantize_heads(k), quantize_heads(v)
            q = quantize_heads(q) if self.quantize_activations else q
        self.keys[layer].append(k)
        self.values[layer].append(v)

        out = np.concatenate([self._attend(layer, head, q[head]) for head in range(header.n_heads)])
        if header.attn_gate:
            out = out * sigmoid(self._matmul(at + "wg", x))
        return self._matmul(at + "wo", out)

    def _attend(self, layer: int, head: int, query: np.ndarray) -> np.ndarray:
        """The output of one query head: the visible values, weighted by the softmax of the scores."""
        header = self.header
        kv_head = head // (header.n_heads // header.n_kv_heads)
        first = 0
        if header.sliding_window and self.flags[layer] & FLAG_WINDOW:
            first = max(0, self.position + 1 - header.sliding_window)
        scale = header.attn_scale or 1 / math.sqrt(header.head_size)
        scores = np.array([query @ key[kv_head] * scale for key in self.keys[layer][first:]])
        weights = softmax(soft_cap(scores, header.attn_softcap))
        return sum(w * value[kv_head] for w, value in zip(weights, self.values[layer][first:], strict=True))

    def _linear_attention(self, layer: int, x: np.ndarray) -> np.ndarray:
        header, weights, at = self.header, self.weights, f"layers.{layer}."
        n_k, n_v, dk, dv = header.lin_k_heads, header.lin_v_heads, header.lin_k_dim, header.lin_v_dim
        inputs = np.vstack([self.conv[layer], self._matmul(at + "lqkv", x)])  # taps × channels, oldest first
        self.conv[layer] = inputs[1:]
        mixed = silu(np.sum(inputs * weights[at + "lconv"].T, axis=0))
        queries, keys, values = np.split(mixed, [n_k * dk, 2 * n_k * dk])
        queries, keys, values = queries.reshape(n_k, dk), keys.reshape(n_k, dk), values.reshape(n_v, dv)
        z = self._matmul(at + "lz", x).reshape(n_v, dv)
        beta = sigmoid(self._matmul(at + "lb", x))
        decay = decay_of(self._matmul(at + "la", x), weights[at + "A_log"], weights[at + "dt_bias"])

        out = np.empty((n_v, dv))
        for head in range(n_v):
            k_head = head // (n_v // n_k)
            self.state[layer][head], y = delta_step(
                self.state[layer][head], queries[k_head], keys[k_head], values[head], decay[head], beta[head]
            )
            out[head] = self._norm(layer, "lnorm", y) * silu(z[head])
        return self._matmul(at + "lout", out.reshape(-1))

    def _ffn(self, layer: int, x: np.ndarray) -> np.ndarray:
        act = gelu if self.header.act == ACT_GELU else silu
        gate, up = (self._matmul(f"layers.{layer}.{name}", x) for name in ("w1", "w3"))
        return self._matmul(f"layers.{layer}.w2", act(gate) * up)

    # ---- helpers

    def _linear(self, layer: int) -> bool:
        return bool(self.flags[layer] & FLAG_LINEAR)

    def _norm(self, layer: int, name: str, x: np.ndarray) -> np.ndarray:
        return rms_norm(x, self.weights[f"layers.{layer}.{name}"], self.header.norm_eps)

    def _post_norm(self, layer: int, name: str, x: np.ndarray) -> np.ndarray:
        return self._norm(layer, name, x) if self.header.post_norms else x

    def _matmul(self, name: str, x: np.ndarray) -> np.ndarray:
        if self.observe:
            self.observe(name, x)
        if self.quantize_activations and name in self.quantized:
            x = quantize_q8_0(x.astype(np.float32)[None]).dequantize()[0].astype(np.float64)
        return self.weights[name] @ x

    def _angles(self, local: bool) -> np.ndarray | None:
        if local and not self.header.rope_local_theta:
            return None
        return inverse_frequencies(self.header, local)


def logits_of(model: Model, tokens: Iterable[int], **options: bool | Observe) -> np.ndarray:
    """The logits at every position of a prompt, (positions, vocab), float64."""
    reference = Reference(model, **options)
    return np.array([reference.step(token) for token in tokens])
