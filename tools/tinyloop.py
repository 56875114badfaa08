#!/usr/bin/env python3
"""Reference writer and reader of .tinyloop model files, and a command line to look at them.

    python3 tools/tinyloop.py inspect model.tinyloop           header, sizes, tensors, one a line
    python3 tools/tinyloop.py verify model.tinyloop            every check of the loader, and the engine's logits
    python3 tools/tinyloop.py export model.pt -o x.tinyloop    a torch checkpoint, quantized
    python3 tools/tinyloop.py upgrade old.tinyloop -o x.tinyloop --bits 2 --group-size 64
    python3 tools/tinyloop.py tiny -o x.tinyloop --bits 2      a small random model

The map of the file and its rules are in tinyloop_layout.py, quantization in tinyloop_quant.py; docs/TINYLOOP.md says it
in words. `export` needs torch, the rest does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from mlb import atomic_file
from tinyloop_layout import (  # noqa: F401  (re-exported: the tools' one door to the format)
    E_FORMAT,
    E_IO,
    E_SHAPE,
    HEADER_SIZES,
    Header,
    Tensor,
    TinyLoopError,
    check_header,
    file_size,
    tensors,
    unpack_header,
)
from tinyloop_quant import Codes, QuantizeError, pack_codes, quantize, unpack_codes

# ---------------------------------------------------------------- writer


def write_model(path: str | Path, header: Header, provide: Callable[[Tensor], np.ndarray | Codes]) -> None:
    """Writes a whole file; `path` appears complete or not at all.

    provide: called once per tensor, in file order. Gives float weights of its shape, which are quantized here, or, of a
        quantized tensor, Codes, which are stored as they are.

    Raises TinyLoopError for a header that a loader would refuse, QuantizeError, with the tensor's name, for weights
    that the format cannot hold, OSError for the disk.
    """
    check_header(header)
    if unpack_header(header.pack()) != header:
        raise TinyLoopError(
            E_FORMAT, f"version {header.version} cannot say bits {header.bits}, group_size {header.group_size}"
        )
    with atomic_file(Path(path)) as file:
        file.write(header.pack())
        for tensor in tensors(header):
            try:
                file.write(_stored(header, tensor, provide(tensor)))
            except QuantizeError as error:
                raise QuantizeError(f"{tensor.name}: {error}") from None


def _stored(header: Header, tensor: Tensor, value: np.ndarray | Codes) -> bytes:
    if tensor.kind == "quantized":
        codes = value if isinstance(value, Codes) else quantize(_shaped(tensor, value), header.bits, header.group_size)
        n_groups = tensor.cols // header.group_size
        if codes.bits != header.bits or codes.codes.shape != tensor.shape or codes.d.shape != (tensor.rows, n_groups):
            raise QuantizeError(f"has other bits or shapes than the header implies for {tensor.shape}")
        if codes.codes.max() >= 1 << header.bits or (codes.d.astype(np.float16) != codes.d).any():
            raise QuantizeError("has a code that is too large, or a scale that is no float16 value")
        return pack_codes(codes.codes, header.bits).tobytes() + codes.d.astype("<f2").tobytes()
    with np.errstate(over="ignore"):  # an overflow becomes an infinity, which is refused
        array = _shaped(tensor, value).astype("<f4" if tensor.kind == "f32" else "<f2")
    if not np.isfinite(array).all():
        raise QuantizeError("non-finite weight")
    return array.tobytes()


def _shaped(tensor: Tensor, value: np.ndarray) -> np.ndarray:
    value = np.asarray(value)
    if value.shape != tensor.shape:
        raise QuantizeError(f"has shape {value.shape}, the header implies {tensor.shape}")
    return value


# ---------------------------------------------------------------- reader


class Model:
    """A file that was read. Tensors go by the names of tinyloop_layout.tensors."""

    def __init__(self, header: Header, data: bytes) -> None:
        self.header = header
        self.data = data
        self.offsets: dict[str, tuple[Tensor, int]] = {}
        offset = HEADER_SIZES[header.version]
        for tensor in tensors(header):
            self.offsets[tensor.name] = (tensor, offset)
            offset += tensor.size(header)

    def stored(self, name: str) -> bytes:
        """The bytes of one tensor."""
        tensor, offset = self.offsets[name]
        return self.data[offset : offset + tensor.size(self.header)]

    def raw(self, name: str) -> Codes | np.ndarray:
        """As stored: codes and scales of a quantized tensor, or float32 values."""
        tensor, stored = self.offsets[name][0], self.stored(name)
        if tensor.kind != "quantized":
            dtype = "<f4" if tensor.kind == "f32" else "<f2"
            return np.frombuffer(stored, dtype).astype(np.float32).reshape(tensor.shape)
        size = tensor.codes_size(self.header)
        codes = unpack_codes(np.frombuffer(stored[:size], np.uint8), self.header.bits).reshape(tensor.shape)
        d = np.frombuffer(stored[size:], "<f2").astype(np.float32).reshape(tensor.rows, -1)
        return Codes(codes, d, self.header.bits)

    def array(self, name: str) -> np.ndarray:
        """float32 of the tensor's shape, dequantized if need be."""
        value = self.raw(name)
        return value.dequantize() if isinstance(value, Codes) else value

    def weights(self) -> dict[str, np.ndarray]:
        """All tensors as float32."""
        return {name: self.array(name) for name in self.offsets}

    @property
    def n_parameters(self) -> int:
        return sum(tensor.rows * tensor.cols for tensor, _ in self.offsets.values())


def parse_model(data: bytes, bits: int | None = None, group_size: int | None = None) -> Model:
    """A whole file's bytes. `bits` and `group_size`: what versions 1 and 2 mean, when it is not what docs/TINYLOOP.md
    says. Raises TinyLoopError."""
    header = unpack_header(data, bits, group_size)
    if len(data) != (need := file_size(header)):
        raise TinyLoopError(E_FORMAT, f"file has {len(data)} bytes, its header implies {need}")
    return Model(header, data)


def read_model(path: str | Path, bits: int | None = None, group_size: int | None = None) -> Model:
    """The same from a file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TinyLoopError(E_IO, f"cannot be read: {error.strerror or error}") from None
    return parse_model(data, bits, group_size)


def random_weights(header: Header, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights for a small model of random numbers: about what training would begin with, norms not quite 1."""
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    for tensor in tensors(header):
        values = generator.standard_normal(tensor.shape)
        if tensor.kind == "f32":
            weights[tensor.name] = 1 + 0.2 * values
        else:
            weights[tensor.name] = values * (1 if tensor.name == "embed_weight" else tensor.cols**-0.5)
    return weights


def write_weights(path: str | Path, header: Header, weights: Mapping[str, np.ndarray]) -> None:
    """write_model with all weights at hand."""
    write_model(path, header, lambda tensor: weights[tensor.name])


if __name__ == "__main__":
    import sys

    import tinyloop_cli

    sys.exit(tinyloop_cli.main())
