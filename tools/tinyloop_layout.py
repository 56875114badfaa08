"""What a .tinyloop file holds, in which order, and the rules that it must keep: docs/TINYLOOP.md as tables.

The format document fixes the header's fields and their order, the three versions and the two storage modes. Everything
else here is our choice, made in this one place and in docs/TINYLOOP.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields

OK = "ML_OK"
E_IO = "ML_E_IO"
E_FORMAT = "ML_E_FORMAT"
E_SHAPE = "ML_E_SHAPE"

MAGIC = 0x504C4C54  # the bytes "TLLP"
BLOCK = 32  # columns that share a quantized activation's scale: group sizes are multiples of it
MAX_DIM = 65536
MAX_VOCAB = 1 << 24
MAX_PRE_BLOCKS = 255
MAX_LOOPS = 64
MAX_SEQ = 4096
ROPE_THETA = 10000.0
NORM_EPS = 1e-5

# version -> bytes of the header, and what it implies for the fields that it lacks
HEADER_SIZES = {1: 36, 2: 40, 3: 44}
IMPLIED_BITS = 4
IMPLIED_GROUP_SIZE = 32


@dataclass(frozen=True)
class Header:
    """The fields in the file's order, each an unsigned 32-bit number. `bits` and `group_size` hold the implied values
    where the version does not store them."""

    version: int
    dim: int
    n_heads: int
    ffn_dim: int
    vocab_size: int
    embed_factor_dim: int
    n_pre_blocks: int
    default_loops: int
    bits: int = IMPLIED_BITS
    group_size: int = IMPLIED_GROUP_SIZE

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads

    @property
    def n_blocks(self) -> int:
        """Blocks that the file holds: the own ones, and the shared one, which comes last."""
        return self.n_pre_blocks + 1

    def pack(self) -> bytes:
        values = [MAGIC, *(getattr(self, field.name) for field in fields(self))]
        return struct.pack("<11I", *values)[: HEADER_SIZES[self.version]]


FIELD_OFFSETS = {"magic": 0} | {field.name: 4 + 4 * i for i, field in enumerate(fields(Header))}


class TinyLoopError(ValueError):
    """A file, or a header about to be written, that breaks a rule. `status` is the C library's name for it."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


# ---------------------------------------------------------------- rules


def _fail(status: str, name: str, value: object, rule: str) -> TinyLoopError:
    return TinyLoopError(status, f"{name} {value} at offset {FIELD_OFFSETS[name]}: {rule}")


def unpack_header(data: bytes, bits: int | None = None, group_size: int | None = None) -> Header:
    """Reads and checks the header of a file's first bytes. `bits` and `group_size` take the place of what versions 1
    and 2 imply, for files of others. Raises TinyLoopError."""
    if len(data) < 4 or (magic := struct.unpack_from("<I", data)[0]) != MAGIC:
        found = f"{magic:#x}" if len(data) >= 4 else f"of {len(data)} bytes"
        raise _fail(E_FORMAT, "magic", found, f"must be {MAGIC:#x}")
    version = struct.unpack_from("<I", data, 4)[0] if len(data) >= 8 else None
    if version is not None and version not in HEADER_SIZES:
        raise _fail(E_FORMAT, "version", version, "must be 1, 2 or 3")
    size = HEADER_SIZES[version] if version else 8
    if version is None or len(data) < size:
        raise TinyLoopError(E_FORMAT, f"file has {len(data)} bytes, fewer than its header's {size}")
    numbers = struct.unpack_from(f"<{size // 4 - 1}I", data, 4)
    values = dict(zip((field.name for field in fields(Header)), numbers, strict=False))
    if bits is not None:
        values.setdefault("bits", bits)
    if group_size is not None:
        values.setdefault("group_size", group_size)
    header = Header(**values)
    check_header(header)
    return header


def check_header(h: Header) -> None:
    """Raises TinyLoopError for the first broken rule: what is no such file (FORMAT), then dimensions (SHAPE)."""
    if h.version not in HEADER_SIZES:
        raise _fail(E_FORMAT, "version", h.version, "must be 1, 2 or 3")
    if h.bits not in (2, 4):
        raise _fail(E_FORMAT, "bits", h.bits, "must be 2 or 4")
    if h.default_loops < 1:
        raise _fail(E_FORMAT, "default_loops", h.default_loops, "must be at least 1")
    if h.default_loops > MAX_LOOPS:
        raise _fail(E_FORMAT, "default_loops", h.default_loops, f"must be at most {MAX_LOOPS}")
    if h.n_pre_blocks > MAX_PRE_BLOCKS:
        raise _fail(E_FORMAT, "n_pre_blocks", h.n_pre_blocks, f"must be at most {MAX_PRE_BLOCKS}")
    for name in ("dim", "n_heads", "ffn_dim", "vocab_size", "group_size"):
        if getattr(h, name) < 1:
            raise _fail(E_SHAPE, name, getattr(h, name), "must be at least 1")
    for name in ("dim", "n_heads", "ffn_dim", "vocab_size", "embed_factor_dim", "group_size"):
        limit = MAX_VOCAB if name == "vocab_size" else MAX_DIM
        if getattr(h, name) > limit:
            raise _fail(E_SHAPE, name, getattr(h, name), f"must be at most {limit}")
    for name in ("dim", "ffn_dim", "embed_factor_dim", "group_size"):
        if getattr(h, name) % BLOCK:
            raise _fail(E_SHAPE, name, getattr(h, name), f"must be a multiple of {BLOCK}")
    if h.dim % h.n_heads:
        raise _fail(E_SHAPE, "dim", h.dim, f"must be a multiple of n_heads, which is {h.n_heads}")
    for name in ("dim", "ffn_dim"):
        if getattr(h, name) % h.group_size:
            raise _fail(E_SHAPE, name, getattr(h, name), f"must be a multiple of group_size, which is {h.group_size}")
    if h.head_dim % 2:
        raise _fail(E_SHAPE, "n_heads", h.n_heads, f"makes heads of {h.head_dim}, which must be a multiple of 2")


# ---------------------------------------------------------------- tensors


@dataclass(frozen=True)
class Tensor:
    """One tensor of the file. kind: "f32" (norms), "f16" (factors) or "quantized"."""

    name: str
    kind: str
    rows: int
    cols: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cols,) if self.kind == "f32" else (self.rows, self.cols)

    def codes_size(self, header: Header) -> int:
        return self.rows * self.cols * header.bits // 8

    def size(self, header: Header) -> int:
        """Bytes in the file."""
        if self.kind != "quantized":
            return self.rows * self.cols * (4 if self.kind == "f32" else 2)
        return self.codes_size(header) + self.rows * (self.cols // header.group_size) * 2


def tensors(h: Header) -> Iterator[Tensor]:
    """All tensors in the file's order; they follow each other, and the header, without padding."""
    factor, dim, vocab = h.embed_factor_dim, h.dim, h.vocab_size
    if factor:
        yield Tensor("embed_weight", "f16", vocab, factor)
        yield Tensor("embed_proj", "f16", dim, factor)
    else:
        yield Tensor("embed_weight", "quantized", vocab, dim)
    for block in range(h.n_blocks):
        yield Tensor(f"blocks.{block}.attn_norm", "f32", 1, dim)
        for name in ("wq", "wk", "wv", "wo"):
            yield Tensor(f"blocks.{block}.{name}", "quantized", dim, dim)
        yield Tensor(f"blocks.{block}.ffn_norm", "f32", 1, dim)
        yield Tensor(f"blocks.{block}.w1", "quantized", h.ffn_dim, dim)
        yield Tensor(f"blocks.{block}.w2", "quantized", dim, h.ffn_dim)
        yield Tensor(f"blocks.{block}.w3", "quantized", h.ffn_dim, dim)
    yield Tensor("final_norm", "f32", 1, dim)
    if factor:
        yield Tensor("head_proj", "f16", factor, dim)
        yield Tensor("head_weight", "f16", vocab, factor)
    else:
        yield Tensor("head_weight", "quantized", vocab, dim)


def file_size(header: Header) -> int:
    """Bytes of the whole file: exact, there is neither padding nor anything after the last tensor."""
    return HEADER_SIZES[header.version] + sum(tensor.size(header) for tensor in tensors(header))
