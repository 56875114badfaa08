"""The rules that a .mlb header must keep, as one table, and the check that walks it.

The first broken rule in this order gives the status: header FORMAT rules, header SHAPE rules, layer flags, file size
(and, where the caller has the bytes, quants). Status names are those of the C library. The law is the format
document's validation table; what it leaves open is in docs/FORMAT-notes.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlb_layout import (
    ACT_GELU,
    FIELD_OFFSETS,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    HEADER_SIZE,
    MAGIC,
    MASK_ALL,
    Q4_0,
    Q8_0,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_PLAIN,
    ROPE_YARN,
    Header,
    implied_size,
)

OK = "ML_OK"
E_IO = "ML_E_IO"
E_FORMAT = "ML_E_FORMAT"
E_SHAPE = "ML_E_SHAPE"

MAX_DIM = 65536  # every dimension but the next two
MAX_VOCAB = MAX_SEQ = MAX_WINDOW = 1 << 24
BLOCK = 32

Problem = tuple[str, str]  # status name, message


class MlbError(ValueError):
    """A file, or a header about to be written, that breaks a rule. `status` is the C library's name for it."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def validate(header: Header, layer_flags: bytes | None, file_size: int | None) -> Problem:
    """(ML_OK, "") or the status and message of the first rule that is broken.

    layer_flags: the bytes at offset 256, as many as the file has up to n_layers; None without. file_size: bytes in
    the file, or None to leave sizes unchecked (a header about to be written).
    """
    for problem in _all_problems(header, layer_flags, file_size):
        return problem
    return OK, ""


def validate_bytes(data: bytes) -> Problem:
    """validate() of a file's first bytes: everything but the quants."""
    if len(data) < HEADER_SIZE:
        return E_FORMAT, f"file has {len(data)} bytes, fewer than its header's {HEADER_SIZE}"
    header = Header.unpack(data)
    flags = bytes(data[HEADER_SIZE : HEADER_SIZE + header.n_layers]) if header.layer_flags else None
    return validate(header, flags, len(data))


def _all_problems(header: Header, layer_flags: bytes | None, file_size: int | None) -> Iterator[Problem]:
    for message in _format_problems(header):
        yield E_FORMAT, message
    for message in _shape_problems(header):
        yield E_SHAPE, message
    if header.layer_flags:
        flags = layer_flags or b""
        if len(flags) == header.n_layers:
            yield from _flag_problems(header, flags)
        elif file_size is None or file_size >= HEADER_SIZE + header.n_layers:
            raise ValueError(f"{header.n_layers} layer flags are needed, {len(flags)} were given")
        else:
            need = HEADER_SIZE + header.n_layers
            yield E_FORMAT, f"file has {file_size} bytes, layer_flags alone reach to {need}"
    elif layer_flags:
        raise ValueError("layer flags were given, but the header's layer_flags is 0")
    if file_size is not None:
        need = implied_size(header, layer_flags)
        if file_size < need:
            yield E_FORMAT, f"file has {file_size} bytes, its header implies {need}"


def _at(header: Header, name: str, rule: str) -> str:
    return f"{name} {header.text(name)} at offset {FIELD_OFFSETS[name]}: {rule}"


def _format_problems(h: Header) -> Iterator[str]:
    """Flags, enumerations, floats and reserved bytes."""
    if h.magic != MAGIC:
        yield _at(h, "magic", f"must be {MAGIC}")
    if h.version != 1:
        yield _at(h, "version", "must be 1")
    if h.wtype not in (Q8_0, Q4_0):
        yield _at(h, "wtype", "must be 1 (Q8_0) or 2 (Q4_0)")
    if not _positive(h.rope_theta):
        yield _at(h, "rope_theta", "must be finite and above 0")
    if not _not_negative(h.norm_eps):
        yield _at(h, "norm_eps", "must be finite and at least 0")
    if h.rope_type > ROPE_YARN:
        yield _at(h, "rope_type", "must be 0 to 3")
    yield from _rope_problems(h)
    if h.q8_mask and h.wtype == Q8_0:
        yield _at(h, "q8_mask", "must be 0 in a Q8_0 model")
    if h.q8_mask > MASK_ALL:
        yield _at(h, "q8_mask", f"must be at most {MASK_ALL}")
    for name in ("qkv_bias", "qk_norm", "layer_flags", "post_norms", "scale_f16", "attn_gate"):
        if getattr(h, name) > 1:
            yield _at(h, name, "must be 0 or 1")
    if h.sliding_window > MAX_WINDOW:
        yield _at(h, "sliding_window", f"must be at most {MAX_WINDOW}")
    if h.act > ACT_GELU:
        yield _at(h, "act", "must be 0 (SiLU) or 1 (GELU)")
    for name in ("rope_local_theta", "embed_scale", "attn_scale", "attn_softcap", "final_softcap"):
        if not _not_negative(getattr(h, name)):
            yield _at(h, name, "must be finite and at least 0")
    if any(h.reserved):
        first = next(i for i, byte in enumerate(h.reserved) if byte)
        yield f"reserved byte at offset {160 + first} is {h.reserved[first]}: must be 0"


def _rope_problems(h: Header) -> Iterator[str]:
    """The scaling parameters that rope_type uses; those of other types may hold anything."""
    if h.rope_type != ROPE_PLAIN and not _positive(h.rope_factor):
        yield _at(h, "rope_factor", "must be finite and above 0")
    low, high = h.rope_low_freq_factor, h.rope_high_freq_factor
    if h.rope_type in (ROPE_LLAMA3, ROPE_YARN):
        if not _positive(low):
            yield _at(h, "rope_low_freq_factor", "must be finite and above 0")
        if not _positive(high):
            yield _at(h, "rope_high_freq_factor", "must be finite and above 0")
        if not h.rope_orig_max_seq:
            yield _at(h, "rope_orig_max_seq", "must be above 0")
    if h.rope_type == ROPE_LLAMA3 and not high > low:
        yield _at(h, "rope_high_freq_factor", f"must be above rope_low_freq_factor, which is {low}")
    if h.rope_type == ROPE_YARN:
        if not high < low:
            yield _at(h, "rope_high_freq_factor", f"beta_slow must be below beta_fast, which is {low}")
        if not _positive(h.rope_attn_factor):
            yield _at(h, "rope_attn_factor", "must be finite and above 0 with yarn")
    elif h.rope_type in (ROPE_PLAIN, ROPE_LLAMA3, ROPE_LINEAR) and h.rope_attn_factor != 0:
        yield _at(h, "rope_attn_factor", "must be 0 without yarn")


def _shape_problems(h: Header) -> Iterator[str]:
    """Dimensions: limits first, so that the relations below divide by no zero."""
    limits = dict.fromkeys(("dim", "n_layers", "n_heads", "n_kv_heads", "hidden_dim"), MAX_DIM)
    if h.lin_k_heads:
        limits |= dict.fromkeys(("lin_k_heads", "lin_v_heads", "lin_k_dim", "lin_v_dim", "lin_conv"), MAX_DIM)
    for name, limit in (limits | {"vocab": MAX_VOCAB, "max_seq": MAX_SEQ}).items():
        least = 3 if name == "vocab" else 1
        if not least <= getattr(h, name) <= limit:
            yield _at(h, name, f"must be {least} to {limit}")
    for name in ("dim", "hidden_dim"):
        if getattr(h, name) % BLOCK:
            yield _at(h, name, f"must be a multiple of {BLOCK}")
    if h.n_heads % h.n_kv_heads:
        yield _at(h, "n_kv_heads", f"must divide n_heads, which is {h.n_heads}")
    if not h.head_dim and h.dim % h.n_heads:
        yield _at(h, "n_heads", f"must divide dim, which is {h.dim}, when head_dim is 0")
    if h.head_size % 2:
        yield f"head_dim {h.head_size}: must be even"
    if h.q_dim % BLOCK or not 0 < h.q_dim <= MAX_DIM:
        yield f"q_dim {h.q_dim} (head_dim x n_heads): must be a multiple of {BLOCK} and at most {MAX_DIM}"
    if h.rot_dim % 2 or h.rot_dim > h.head_size:
        yield _at(h, "rot_dim", f"must be even and at most the head size, which is {h.head_size}")
    if h.lin_k_heads:
        yield from _linear_problems(h)


def _linear_problems(h: Header) -> Iterator[str]:
    if h.lin_v_heads % h.lin_k_heads:
        yield _at(h, "lin_v_heads", f"must be a multiple of lin_k_heads, which is {h.lin_k_heads}")
    if h.lin_v_heads % 4:
        yield _at(h, "lin_v_heads", "must be a multiple of 4")
    if h.lin_value_dim % BLOCK:
        rule = f"times lin_v_heads, which is {h.lin_v_heads}, must be a multiple of {BLOCK}"
        yield _at(h, "lin_v_dim", rule)


def _flag_problems(h: Header, flags: bytes) -> Iterator[Problem]:
    for layer, bits in enumerate(flags):
        place = f"layer_flags[{layer}] {bits} at offset {HEADER_SIZE + layer}"
        if bits & ~(FLAG_WINDOW | FLAG_LOCAL_ROPE | FLAG_NOPE | FLAG_LINEAR):
            yield E_FORMAT, f"{place}: has bits above 8"
        if bits & FLAG_LOCAL_ROPE and bits & FLAG_NOPE:
            yield E_FORMAT, f"{place}: local RoPE base (2) and no RoPE (4) exclude each other"
        if bits & FLAG_LINEAR and bits != FLAG_LINEAR:
            yield E_FORMAT, f"{place}: linear attention (8) must stand alone"
        if bits & FLAG_LOCAL_ROPE and h.rope_local_theta == 0:
            yield E_FORMAT, f"{place}: local RoPE base (2) needs rope_local_theta, which is 0"
        if bits & FLAG_LINEAR and not h.lin_k_heads:
            yield E_SHAPE, f"{place}: linear attention (8) needs lin_k_heads, which is 0"


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _not_negative(value: float) -> bool:
    return math.isfinite(value) and value >= 0
