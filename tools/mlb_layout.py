"""The .mlb file as a map: the header's fields, the tensors it implies, and where each array lies.

    offset 0      256            align 64
    +------------+--------------+---------+-----------+-----+------------+--------+
    | header 256 | layer flags? | tok_emb | layer 0 … | ... | final_norm | wcls?  |
    +------------+--------------+---------+-----------+-----+------------+--------+

Every array starts at a multiple of 64 and is zero-padded to the next one; the padding after the last array may be
missing. A quantized matrix is two arrays, q then d. All numbers are little-endian. Nothing here judges: a header with
absurd values packs and unpacks like any other (mlb_rules.py has the rules).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

HEADER_SIZE = 256
ALIGNMENT = 64
MAGIC = b"MLB1"

Q8_0, Q4_0 = 1, 2
ROPE_PLAIN, ROPE_LLAMA3, ROPE_LINEAR, ROPE_YARN = range(4)
ACT_SILU, ACT_GELU = range(2)
FLAG_WINDOW, FLAG_LOCAL_ROPE, FLAG_NOPE, FLAG_LINEAR = 1, 2, 4, 8

# Bits of q8_mask: the classes of matrices that a Q4_0 model may store as Q8_0.
MASK_TOK_EMB, MASK_WCLS, MASK_QK, MASK_V, MASK_O, MASK_W13, MASK_W2 = (1 << bit for bit in range(7))
MASK_ALL = 127

U32_MAX = 0xFFFFFFFF


@dataclass
class Header:
    """All fields of the header by their names in the format document. Floats are kept as the float32 they become.

    After magic and version the fields stand in file order, four bytes each, from offset 8; `reserved` fills up to
    256. A default of 0 means what a zero means in the file: the plain Llama behaviour.
    """

    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    hidden_dim: int
    vocab: int
    max_seq: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    wtype: int = Q8_0
    shared_classifier: int = 0
    rope_type: int = ROPE_PLAIN
    rope_factor: float = 0.0
    rope_low_freq_factor: float = 0.0  # yarn: beta_fast
    rope_high_freq_factor: float = 0.0  # yarn: beta_slow
    rope_orig_max_seq: int = 0
    q8_mask: int = 0
    qkv_bias: int = 0
    head_dim: int = 0
    qk_norm: int = 0
    rope_attn_factor: float = 0.0
    sliding_window: int = 0
    layer_flags: int = 0
    rope_local_theta: float = 0.0
    act: int = ACT_SILU
    post_norms: int = 0
    embed_scale: float = 0.0
    attn_scale: float = 0.0
    scale_f16: int = 0
    attn_softcap: float = 0.0
    final_softcap: float = 0.0
    rot_dim: int = 0
    attn_gate: int = 0
    lin_k_heads: int = 0
    lin_v_heads: int = 0
    lin_k_dim: int = 0
    lin_v_dim: int = 0
    lin_conv: int = 0
    magic: bytes = MAGIC
    version: int = 1
    reserved: bytes = bytes(96)

    def __setattr__(self, name: str, value: int | float | bytes) -> None:
        # So that a header compares equal to itself read back, and prints what the file holds.
        if name in FLOAT_FIELDS:
            value = ctypes.c_float(value).value
        elif name in U32_FIELDS and not 0 <= value <= U32_MAX:
            raise ValueError(f"{name} {value} does not fit an unsigned 32-bit field")
        object.__setattr__(self, name, value)

    def pack(self) -> bytes:
        """The 256 bytes of the file. Never validates."""
        return _STRUCT.pack(self.magic, self.version, *(getattr(self, name) for name in FIELDS), self.reserved)

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """From at least 256 bytes. Never validates, not even the magic."""
        magic, version, *values, reserved = _STRUCT.unpack_from(data)
        return cls(*values, magic=magic, version=version, reserved=reserved)

    def text(self, name: str) -> str:
        """A field for people: floats in the fewest digits that give the same float32, reserved bytes in hex."""
        value = getattr(self, name)
        if name in FLOAT_FIELDS:
            return str(np.float32(value))
        if name == "magic":
            return repr(value)[2:-1]
        if name == "reserved":
            return value.hex() if any(value) else "0"
        return str(value)

    @property
    def head_size(self) -> int:
        """Size of a head: head_dim, or dim / n_heads when that is 0."""
        return self.head_dim or self.dim // self.n_heads

    @property
    def q_dim(self) -> int:
        return self.head_size * self.n_heads

    @property
    def kv_dim(self) -> int:
        return self.head_size * self.n_kv_heads

    @property
    def rot_size(self) -> int:
        """Dimensions of a head that RoPE rotates: rot_dim, or all when that is 0."""
        return self.rot_dim or self.head_size

    @property
    def lin_value_dim(self) -> int:
        """V * dv of linear attention; 0 when the model has none, whatever the other lin_ fields hold."""
        return self.lin_v_heads * self.lin_v_dim if self.lin_k_heads else 0

    @property
    def lin_channels(self) -> int:
        """Queries, keys and values of linear attention: 2 * K * dk + V * dv, or 0 without."""
        return 2 * self.lin_k_heads * self.lin_k_dim + self.lin_value_dim


FIELDS = tuple(f.name for f in fields(Header) if f.name not in ("magic", "version", "reserved"))
FLOAT_FIELDS = frozenset(f.name for f in fields(Header) if f.type == "float")
U32_FIELDS = frozenset(f.name for f in fields(Header) if f.type == "int")
FIELD_OFFSETS = {"magic": 0, "version": 4} | {name: 8 + 4 * i for i, name in enumerate(FIELDS)} | {"reserved": 160}
_STRUCT = struct.Struct("<4sI" + "".join("f" if name in FLOAT_FIELDS else "I" for name in FIELDS) + "96s")
assert _STRUCT.size == HEADER_SIZE


def align(size: int) -> int:
    """The next multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a file. `name` is the document's, "layers.3.wq" within a layer; a vector is one row."""

    name: str
    layer: int | None
    rows: int
    cols: int
    kind: str  # "f32", "q8_0" or "q4_0"
    scale_f16: bool = False

    @property
    def base_name(self) -> str:
        """The name without its layer: "wq"."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that stands for it: (cols,) for vectors, (rows, cols) for all else."""
        return (self.cols,) if self.kind == "f32" and self.rows == 1 else (self.rows, self.cols)

    def parts(self) -> list[tuple[str, int]]:
        """The arrays in the file as (part, bytes without padding): "f32", or "q" and "d"."""
        n = self.rows * self.cols
        if self.kind == "f32":
            return [("f32", 4 * n)]
        return [("q", n if self.kind == "q8_0" else n // 2), ("d", n // 32 * (2 if self.scale_f16 else 4))]


class Span(NamedTuple):
    """Where one array lies. `spec` is None for the layer flags."""

    spec: TensorSpec | None
    part: str  # "u8", "f32", "q", "d"
    offset: int
    size: int  # bytes, without padding

    @property
    def name(self) -> str:
        return self.spec.name if self.spec else "layer_flags"


def _matrix(header: Header, name: str, rows: int, cols: int, mask: int, layer: int | None) -> TensorSpec:
    kind = "q8_0" if header.wtype == Q8_0 or header.q8_mask & mask else "q4_0"
    return TensorSpec(name, layer, rows, cols, kind, bool(header.scale_f16))


def _vector(name: str, cols: int, layer: int | None, rows: int = 1) -> TensorSpec:
    return TensorSpec(name, layer, rows, cols, "f32")


def _attention_specs(header: Header, layer: int) -> Iterator[TensorSpec]:
    at = f"layers.{layer}."
    dim, q_dim, kv_dim = header.dim, header.q_dim, header.kv_dim
    yield _matrix(header, at + "wq", q_dim, dim, MASK_QK, layer)
    yield _matrix(header, at + "wk", kv_dim, dim, MASK_QK, layer)
    yield _matrix(header, at + "wv", kv_dim, dim, MASK_V, layer)
    yield _matrix(header, at + "wo", dim, q_dim, MASK_O, layer)
    if header.attn_gate:
        yield _matrix(header, at + "wg", q_dim, dim, MASK_QK, layer)
    if header.qkv_bias:
        yield _vector(at + "bq", q_dim, layer)
        yield _vector(at + "bk", kv_dim, layer)
        yield _vector(at + "bv", kv_dim, layer)
    if header.qk_norm:
        yield _vector(at + "q_norm", header.head_size, layer)
        yield _vector(at + "k_norm", header.head_size, layer)


def _linear_attention_specs(header: Header, layer: int) -> Iterator[TensorSpec]:
    at = f"layers.{layer}."
    dim, heads, value_dim, channels = header.dim, header.lin_v_heads, header.lin_value_dim, header.lin_channels
    yield _matrix(header, at + "lqkv", channels, dim, MASK_QK, layer)
    yield _matrix(header, at + "lz", value_dim, dim, MASK_V, layer)
    for name in ("lb", "la"):
        yield TensorSpec(at + name, layer, heads, dim, "q8_0", bool(header.scale_f16))
    yield _vector(at + "lconv", header.lin_conv, layer, rows=channels)
    yield _vector(at + "dt_bias", heads, layer)
    yield _vector(at + "A_log", heads, layer)
    yield _vector(at + "lnorm", header.lin_v_dim, layer)
    yield _matrix(header, at + "lout", dim, value_dim, MASK_O, layer)


def _layer_specs(header: Header, layer: int, linear: bool) -> Iterator[TensorSpec]:
    at = f"layers.{layer}."
    dim, hidden = header.dim, header.hidden_dim
    yield _vector(at + "attn_norm", dim, layer)
    yield from (_linear_attention_specs if linear else _attention_specs)(header, layer)
    yield _vector(at + "ffn_norm", dim, layer)
    yield _matrix(header, at + "w1", hidden, dim, MASK_W13, layer)
    yield _matrix(header, at + "w2", dim, hidden, MASK_W2, layer)
    yield _matrix(header, at + "w3", hidden, dim, MASK_W13, layer)
    if header.post_norms:
        yield _vector(at + "post_attn_norm", dim, layer)
        yield _vector(at + "post_ffn_norm", dim, layer)


def _first_spec(header: Header) -> TensorSpec:
    mask = MASK_TOK_EMB | (MASK_WCLS if header.shared_classifier else 0)
    return _matrix(header, "tok_emb", header.vocab, header.dim, mask, None)


def _last_specs(header: Header) -> Iterator[TensorSpec]:
    yield _vector("final_norm", header.dim, None)
    if not header.shared_classifier:
        yield _matrix(header, "wcls", header.vocab, header.dim, MASK_WCLS, None)


def iter_tensor_specs(header: Header, layer_flags: bytes | None) -> Iterator[TensorSpec]:
    """The tensors in file order, one at a time: a hostile header may promise a great many."""
    yield _first_spec(header)
    for layer in range(header.n_layers):
        linear = bool(layer_flags and layer_flags[layer] & FLAG_LINEAR)
        yield from _layer_specs(header, layer, linear)
    yield from _last_specs(header)


def tensor_specs(header: Header, layer_flags: bytes | None = None) -> list[TensorSpec]:
    """All tensors in file order. layer_flags: a byte per layer if header.layer_flags is set, else None."""
    return list(iter_tensor_specs(header, layer_flags))


def iter_spans(header: Header, layer_flags: bytes | None) -> Iterator[Span]:
    """All arrays in file order with their places, the layer flags included."""
    offset = HEADER_SIZE
    if header.layer_flags:
        yield Span(None, "u8", offset, header.n_layers)
        offset += align(header.n_layers)
    for spec in iter_tensor_specs(header, layer_flags):
        for part, size in spec.parts():
            yield Span(spec, part, offset, size)
            offset += align(size)


def implied_size(header: Header, layer_flags: bytes | None) -> int:
    """Bytes of the whole file, without the padding after the last array. Takes no longer for more layers."""

    def padded(specs: Iterable[TensorSpec]) -> int:
        return sum(align(size) for spec in specs for _, size in spec.parts())

    n_linear = sum(bool(flags & FLAG_LINEAR) for flags in layer_flags or b"")
    layers = n_linear * padded(_layer_specs(header, 0, True)) if n_linear else 0
    layers += (header.n_layers - n_linear) * padded(_layer_specs(header, 0, False))
    flags = align(header.n_layers) if header.layer_flags else 0
    last = list(_last_specs(header))
    last_size = last[-1].parts()[-1][1]
    return HEADER_SIZE + flags + padded([_first_spec(header)]) + layers + padded(last) - align(last_size) + last_size
