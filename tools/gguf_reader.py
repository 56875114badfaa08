"""Reads the header of GGUF files: metadata, and where each tensor lies. Every number of the file is checked.

    "GGUF"  u32 version  u64 tensors  u64 keys
    keys    times:  string key, u32 type, value
    tensors times:  string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset
    padding to general.alignment (32)
    tensor data, each at its offset from here, a multiple of the alignment

    string  u64 length, bytes          array  u32 type, u64 length, values

Little-endian. A model may be split over files named -00001-of-00003.gguf; each has a header, the first all metadata.
The library `gguf` reads such files too, but takes 14 seconds for a vocabulary of 262144 and believes what it reads;
here it is used for what it does best, decoding blocks (gguf_blocks.py).
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from checkpoint_errors import CheckpointError, one_line

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMS = 4
MAX_KEY = 65535
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 20

SCALARS = {
    0: ("u8", np.dtype("<u1")),
    1: ("i8", np.dtype("<i1")),
    2: ("u16", np.dtype("<u2")),
    3: ("i16", np.dtype("<i2")),
    4: ("u32", np.dtype("<u4")),
    5: ("i32", np.dtype("<i4")),
    6: ("f32", np.dtype("<f4")),
    7: ("bool", np.dtype("?")),
    10: ("u64", np.dtype("<u8")),
    11: ("i64", np.dtype("<i8")),
    12: ("f64", np.dtype("<f8")),
}
STRING, ARRAY = 8, 9
INTEGERS = frozenset(name for name, _ in SCALARS.values() if name[0] in "ui")
FLOATS = frozenset(("f32", "f64"))


@dataclass(frozen=True)
class BlockType:
    """How weights are stored: `block` consecutive ones of a row in `size` bytes."""

    name: str
    block: int
    size: int


BLOCK_TYPES = {
    number: BlockType(name, block, size)
    for number, name, block, size in (
        (0, "F32", 1, 4),
        (1, "F16", 1, 2),
        (2, "Q4_0", 32, 18),
        (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34),
        (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210),
        (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74),
        (18, "IQ3_XXS", 256, 98),
        (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110),
        (22, "IQ2_S", 256, 82),
        (23, "IQ4_XS", 256, 136),
        (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56),
        (30, "BF16", 1, 2),
        (34, "TQ1_0", 256, 54),
        (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17),
    )
}

SPLIT_NAME = re.compile(r"^(.+)-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies. `shape` has rows first, as numpy has it; the file stores it the other way round."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    data: mmap.mmap
    offset: int  # in its file
    size: int  # bytes

    def stored(self) -> np.ndarray:
        """The bytes, uint8, not copied."""
        return np.frombuffer(self.data, dtype=np.uint8, count=self.size, offset=self.offset)


@dataclass(frozen=True)
class Value:
    """A metadata value. `type`: "u32", "string" …, of arrays "array of u32" with an ndarray or a list of bytes."""

    type: str
    value: Any


@dataclass
class Metadata:
    """The keys of a file with their values. The getters raise CheckpointError for a missing key or an unfit type;
    with a default, None included, a missing key gives that."""

    path: Path
    values: dict[str, Value]
    read: set[str] = field(default_factory=set)  # keys that somebody asked for

    _REQUIRED = object()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def integer(self, key: str, default: Any = _REQUIRED, at_least: int = 0) -> Any:
        value = self._get(key, INTEGERS, "a whole number", default)
        if value is not None and value < at_least:
            raise CheckpointError(f"{self.path}: {key} is {value}, at least {at_least} is needed")
        return value

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self._get(key, INTEGERS | FLOATS, "a number", default)
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def flag(self, key: str, default: Any = _REQUIRED) -> Any:
        return self._get(key, {"bool"}, "true or false", default)

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self._get(key, {"string"}, "a text", default)
        return self._decoded(key, value) if isinstance(value, bytes) else value

    def texts(self, key: str, default: Any = _REQUIRED) -> Any:
        """A list of bytes objects: token texts need not be UTF-8."""
        return self._get(key, {"array of string"}, "a list of texts", default)

    def integers(self, key: str, default: Any = _REQUIRED) -> Any:
        return self._get(key, {f"array of {name}" for name in INTEGERS}, "a list of whole numbers", default)

    def numbers(self, key: str, default: Any = _REQUIRED) -> Any:
        return self._get(key, {f"array of {name}" for name in FLOATS}, "a list of floats", default)

    def _get(self, key: str, types: Iterable[str], wanted: str, default: Any) -> Any:
        self.read.add(key)
        found = self.values.get(key)
        if found is None:
            if default is self._REQUIRED:
                raise CheckpointError(f"{self.path}: the key {key} is missing")
            return default
        if found.type not in types:
            raise CheckpointError(f"{self.path}: {key} is of type {found.type}, not {wanted}")
        return found.value

    def _decoded(self, key: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path}: {key} is not UTF-8 at its byte {error.start}") from None


@dataclass
class GgufModel:
    """One model, all its files."""

    path: Path  # the first file
    metadata: Metadata
    tensors: dict[str, GgufTensor]


def open_gguf(path: Path) -> GgufModel:
    """Opens a file, and the others if it is one of a split model. Raises CheckpointError, OSError."""
    name = SPLIT_NAME.match(path.name)
    if not name:
        metadata, tensors = _read_file(path)
        if _split_count(metadata) > 1:
            raise CheckpointError(f"{path}: one of {_split_count(metadata)} files, but not named -00001-of-…")
        return GgufModel(path, metadata, tensors)
    first, tensors = None, {}
    count = int(name[3])
    for number in range(count):
        part = path.with_name(f"{name[1]}-{number + 1:05}-of-{count:05}.gguf")
        if not part.is_file():
            raise CheckpointError(f"{part}: this part of the model is missing")
        metadata, part_tensors = _read_file(part)
        _check_part(metadata, number, count)
        first = first or metadata
        for tensor_name, tensor in part_tensors.items():
            if tensor_name in tensors:
                raise CheckpointError(f"{part}: tensor {tensor_name} is in an earlier part too")
            tensors[tensor_name] = tensor
    if first is None:
        raise CheckpointError(f"{path}: a model of 0 files")
    expected = first.integer("split.tensors.count", len(tensors))
    if expected != len(tensors):
        raise CheckpointError(f"{path}: {len(tensors)} tensors in all parts, split.tensors.count says {expected}")
    return GgufModel(first.path, first, tensors)


def _split_count(metadata: Metadata) -> int:
    return metadata.integer("split.count", 1)


def _check_part(metadata: Metadata, number: int, count: int) -> None:
    for key, wanted in (("split.count", count), ("split.no", number)):
        if metadata.integer(key, wanted) != wanted:
            raise CheckpointError(f"{metadata.path}: {key} is {metadata.integer(key)}, its name says {wanted}")


# ---------------------------------------------------------------- one file


class _Cursor:
    """A place in the file that never passes its end."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def fail(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: {what}")

    def take(self, size: int, what: str) -> bytes:
        if size > self.left:
            raise self.fail(f"{what} at byte {self.at} needs {size} bytes, the file ends at {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def scalar(self, code: str, what: str) -> Any:
        return struct.unpack(code, self.take(struct.calcsize(code), what))[0]

    def string(self, what: str) -> bytes:
        return self.take(self.scalar("<Q", f"the length of {what}"), what)

    def name(self, what: str) -> str:
        raw = self.string(what)
        if not raw or len(raw) > MAX_KEY:
            raise self.fail(f"{what} has {len(raw)} bytes, 1 to {MAX_KEY} are allowed")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fail(f"{what} {raw[:40]!r} is not UTF-8") from None

    def count(self, least: int, what: str) -> int:
        """A u64 number of things of at least `least` bytes each: more than fit in the file are refused here."""
        count = self.scalar("<Q", f"the number of {what}")
        if count * least > self.left:
            raise self.fail(f"{count} {what} do not fit in the {self.left} bytes that are left")
        return count


def _read_file(path: Path) -> tuple[Metadata, dict[str, GgufTensor]]:
    with path.open("rb") as file:
        if path.stat().st_size < 24:
            raise CheckpointError(f"{path}: too short for a GGUF file")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(path, data)
    if cursor.take(4, "the magic") != MAGIC:
        raise cursor.fail("not a GGUF file")
    version = cursor.scalar("<I", "the version")
    if version not in VERSIONS:
        other = "a big-endian file" if version and version & 0xFFFF == 0 else f"version {version}"
        raise cursor.fail(f"{other}; supported are little-endian files of versions 2 and 3")
    n_tensors = cursor.count(32, "tensors")
    n_keys = cursor.count(13, "metadata keys")
    metadata = _read_metadata(cursor, n_keys)
    tensors = _read_tensors(cursor, n_tensors, _alignment(metadata))
    return metadata, tensors


def _read_metadata(cursor: _Cursor, n_keys: int) -> Metadata:
    values: dict[str, Value] = {}
    for number in range(n_keys):
        key = cursor.name(f"metadata key {number}")
        if key in values:
            raise cursor.fail(f"the key {key} is there twice")
        values[key] = _read_value(cursor, cursor.scalar("<I", f"the type of {key}"), key)
    return Metadata(cursor.path, values)


def _read_value(cursor: _Cursor, type_: int, key: str) -> Value:
    if type_ in SCALARS:
        name, dtype = SCALARS[type_]
        return Value(name, np.frombuffer(cursor.take(dtype.itemsize, key), dtype=dtype)[0].item())
    if type_ == STRING:
        return Value("string", cursor.string(key))
    if type_ == ARRAY:
        return _read_array(cursor, key)
    raise cursor.fail(f"{key} has the unknown type {type_}")


def _read_array(cursor: _Cursor, key: str) -> Value:
    type_ = cursor.scalar("<I", f"the element type of {key}")
    if type_ == STRING:
        count = cursor.count(8, f"elements of {key}")
        return Value("array of string", [cursor.string(key) for _ in range(count)])
    if type_ not in SCALARS:
        raise cursor.fail(f"{key} is an array of the type {type_}, which is nothing that a model needs")
    name, dtype = SCALARS[type_]
    count = cursor.count(dtype.itemsize, f"elements of {key}")
    return Value(f"array of {name}", np.frombuffer(cursor.take(count * dtype.itemsize, key), dtype=dtype))


def _alignment(metadata: Metadata) -> int:
    alignment = metadata.values.get("general.alignment", Value("u32", DEFAULT_ALIGNMENT))
    metadata.read.add("general.alignment")
    good = alignment.type == "u32" and 8 <= alignment.value <= MAX_ALIGNMENT and alignment.value.bit_count() == 1
    if not good:
        raise CheckpointError(
            f"{metadata.path}: general.alignment is {alignment.value!r} ({alignment.type}), "
            f"not a power of two from 8 to {MAX_ALIGNMENT} (u32)"
        )
    return alignment.value


def _read_tensors(cursor: _Cursor, n_tensors: int, alignment: int) -> dict[str, GgufTensor]:
    infos: dict[str, tuple[tuple[int, ...], BlockType, int]] = {}
    for number in range(n_tensors):
        name = cursor.name(f"the name of tensor {number}")
        if name in infos:
            raise cursor.fail(f"tensor {name} is there twice")
        infos[name] = _read_tensor_info(cursor, name)
    start = -(-cursor.at // alignment) * alignment
    tensors: dict[str, GgufTensor] = {}
    end, before = 0, ""
    for name, (shape, type_, offset) in sorted(infos.items(), key=lambda item: (item[1][2], item[0])):
        if offset % alignment:
            raise cursor.fail(f"tensor {name} starts at {offset}, not at a multiple of {alignment}")
        if offset < end:
            raise cursor.fail(f"tensors {before} and {name} overlap")
        size = _stored_size(shape, type_)
        if start + offset + size > len(cursor.data):
            raise cursor.fail(
                f"tensor {name} of {size} bytes at {start + offset} goes past the end of the file, {len(cursor.data)}"
            )
        end, before = offset + size, name
        tensors[name] = GgufTensor(name, shape, type_, cursor.data, start + offset, size)
    return {name: tensors[name] for name in infos}


def _read_tensor_info(cursor: _Cursor, name: str) -> tuple[tuple[int, ...], BlockType, int]:
    what = f"tensor {one_line(name, 80)}"
    n_dims = cursor.scalar("<I", f"the dimensions of {what}")
    if not 1 <= n_dims <= MAX_DIMS:
        raise cursor.fail(f"{what} has {n_dims} dimensions, 1 to {MAX_DIMS} are allowed")
    dims = [cursor.scalar("<Q", f"a dimension of {what}") for _ in range(n_dims)]
    number = cursor.scalar("<I", f"the type of {what}")
    offset = cursor.scalar("<Q", f"the offset of {what}")
    if number not in BLOCK_TYPES:
        raise cursor.fail(f"{what} has the type {number}, which is unknown or holds no weights")
    type_ = BLOCK_TYPES[number]
    if 0 in dims:
        raise cursor.fail(f"{what} has an empty dimension: {dims}")
    if dims[0] % type_.block:
        raise cursor.fail(f"{what} has rows of {dims[0]}, which is no multiple of {type_.name}'s {type_.block}")
    return tuple(reversed(dims)), type_, offset


def _stored_size(shape: tuple[int, ...], type_: BlockType) -> int:
    count = 1
    for dim in shape:  # Python's whole numbers: nothing wraps, however large the file says they are
        count *= dim
    return count // type_.block * type_.size
