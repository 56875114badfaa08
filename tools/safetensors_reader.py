"""Reads safetensors files, one or many shards, a tensor at a time. Every number of the header is checked.

    u64 n   n bytes of JSON: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, …}   tensor data

data_offsets count from the end of the JSON; together they must cover the data without overlap or hole, as the format
demands, so that a file cannot hide one thing behind another. Pickled weights (pytorch_model.bin) are refused: to
unpickle them runs code that they hold.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from checkpoint_errors import CheckpointError, listing, one_line

MAX_HEADER = 100_000_000  # bytes, as in the reference implementation
ITEM_SIZES = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True)
class SafeTensor:
    """Where a tensor lies. `type` is the file's name for it: "BF16" …"""

    name: str
    shape: tuple[int, ...]
    type: str
    path: Path
    data: mmap.mmap
    offset: int  # in its file
    size: int  # bytes

    def stored(self) -> np.ndarray:
        """The bytes, uint8, not copied."""
        return np.frombuffer(self.data, dtype=np.uint8, count=self.size, offset=self.offset)

    def read(self) -> np.ndarray:
        """The weights as float32. Integers and eight-bit floats, which need a scale from elsewhere, are refused."""
        stored = self.stored()
        if self.type == "BF16":
            return widen_bf16(stored).reshape(self.shape)
        if self.type not in ("F16", "F32", "F64"):
            raise CheckpointError(
                f"{self.path}: {self.name} is stored as {self.type}; BF16, F16, F32 and F64 are supported"
            )
        values = stored.view(f"<f{ITEM_SIZES[self.type]}")
        with np.errstate(over="ignore"):  # an overflow becomes an infinity, which the writer refuses
            return values.astype(np.float32).reshape(self.shape)


def widen_bf16(stored: np.ndarray) -> np.ndarray:
    """bfloat16 bytes to float32, exactly: a bfloat16 is the upper half of a float32."""
    wide = np.empty(stored.size // 2, dtype=np.uint32)
    wide[:] = stored.view("<u2")
    wide <<= 16
    return wide.view(np.float32)


def open_safetensors(folder: Path) -> dict[str, SafeTensor]:
    """All tensors of a model folder. Raises CheckpointError, OSError."""
    if (folder / SINGLE).is_file():
        return read_file(folder / SINGLE)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise CheckpointError(f"{folder}: only pickled weights ({listing(pickled)}), which can run code; not read")
    raise CheckpointError(f"{folder}: neither {SINGLE} nor {INDEX}")


# ---------------------------------------------------------------- shards


def _read_shards(folder: Path) -> dict[str, SafeTensor]:
    """The index names the shard of each tensor; both sides must agree about every one."""
    index_path = folder / INDEX
    index = parse_json(index_path.read_bytes(), index_path)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index_path}: no weight_map")
    shards: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or PurePosixPath(shard).name != shard or "\\" in shard:
            raise CheckpointError(f"{index_path}: {name} lies in {shard!r}, which is no file of this folder")
        shards.setdefault(shard, []).append(name)
    tensors: dict[str, SafeTensor] = {}
    for shard, promised in sorted(shards.items()):
        path = folder / shard
        if not path.is_file():
            raise CheckpointError(f"{path}: this shard is missing, and with it {listing(promised, 1)}")
        found = read_file(path)
        if absent := [name for name in promised if name not in found]:
            raise CheckpointError(f"{path}: lacks {listing(absent)}, which {INDEX} promises")
        for name, tensor in found.items():
            if weight_map.get(name) != shard:
                where = f"says is in {weight_map[name]}" if name in weight_map else "does not list"
                raise CheckpointError(f"{path}: holds {name}, which {INDEX} {where}")
            tensors[name] = tensor
    return tensors


# ---------------------------------------------------------------- one file


def read_file(path: Path) -> dict[str, SafeTensor]:
    """The tensors of one file in the order of its header. Raises CheckpointError, OSError."""
    with path.open("rb") as file:
        if path.stat().st_size < 8:
            raise CheckpointError(f"{path}: too short for a safetensors file")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack_from("<Q", data)
    if length > MAX_HEADER or 8 + length > len(data):
        raise CheckpointError(f"{path}: a header of {length} bytes does not fit in a file of {len(data)}")
    header = parse_json(data[8 : 8 + length], path)
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the header is no JSON object")
    header.pop("__metadata__", None)
    start = 8 + length
    tensors = {name: _tensor(path, data, start, name, entry) for name, entry in header.items()}
    _check_cover(path, tensors.values(), start, len(data))
    return tensors


def _tensor(path: Path, data: mmap.mmap, start: int, name: str, entry: Any) -> SafeTensor:
    what = f"{path}: tensor {one_line(name, 80)}"
    if not isinstance(entry, Mapping) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise CheckpointError(f"{what} lacks dtype, shape or data_offsets")
    type_, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(type_, str) or type_ not in ITEM_SIZES:
        raise CheckpointError(f"{what} has the unknown dtype {type_!r}")
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise CheckpointError(f"{what} has the shape {shape!r} and the offsets {offsets!r}")
    size = ITEM_SIZES[type_]
    for dim in shape:  # Python's whole numbers: nothing wraps
        size *= dim
    begin, end = offsets
    if begin > end or end - begin != size:
        raise CheckpointError(
            f"{what}, {type_} of {shape}, needs {size} bytes, its offsets {offsets} have {end - begin}"
        )
    if start + end > len(data):
        raise CheckpointError(f"{what} ends at byte {start + end}, the file at {len(data)}")
    return SafeTensor(name, tuple(shape), type_, path, data, start + begin, size)


def _check_cover(path: Path, tensors: Iterable[SafeTensor], start: int, end: int) -> None:
    at, before = start, "the header"
    for tensor in sorted(tensors, key=lambda tensor: (tensor.offset, tensor.size)):
        if tensor.offset != at:
            wrong = "overlap" if tensor.offset < at else f"have {tensor.offset - at} bytes of nothing between them"
            raise CheckpointError(f"{path}: {before} and {tensor.name} {wrong}")
        at, before = at + tensor.size, tensor.name
    if at != end:
        raise CheckpointError(f"{path}: {end - at} bytes follow the last tensor")


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


# ---------------------------------------------------------------- JSON


def parse_json(raw: bytes, path: Path) -> Any:
    """A JSON document in which no object has a key twice. Raises CheckpointError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise CheckpointError(f"{path}: the key {twice} is there twice")
        return result

    try:
        return json.loads(raw.decode(), object_pairs_hook=once)
    except CheckpointError:
        raise
    except RecursionError:
        raise CheckpointError(f"{path}: JSON nested too deeply") from None
    except ValueError as error:  # of JSON, of UTF-8, of whole numbers with thousands of digits
        raise CheckpointError(f"{path}: no JSON: {error}") from None
