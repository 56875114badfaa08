#!/usr/bin/env python3
"""Reference writer and reader of .mlb model files, and a command line to look at them.

    python3 tools/mlb.py inspect model.mlb          header fields and tensors, one a line
    python3 tools/mlb.py verify model.mlb           every check of the loader
    python3 tools/mlb.py diff a.mlb b.mlb           the first differences
    python3 tools/mlb.py tiny llama -o tiny.mlb     a small random model of some feature

The map of the file is in mlb_layout.py, the rules of its header in mlb_rules.py, quantization in quant.py; this module
puts bytes to disk and takes them back, and is the only one that the other tools need to import.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mlb_layout import (  # noqa: F401  (re-exported: the tools' one door to the format)
    ACT_GELU,
    ACT_SILU,
    ALIGNMENT,
    FIELD_OFFSETS,
    FIELDS,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    HEADER_SIZE,
    MASK_ALL,
    MASK_O,
    MASK_QK,
    MASK_TOK_EMB,
    MASK_V,
    MASK_W2,
    MASK_W13,
    MASK_WCLS,
    Q4_0,
    Q8_0,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_PLAIN,
    ROPE_YARN,
    Header,
    Span,
    TensorSpec,
    align,
    implied_size,
    iter_spans,
    tensor_specs,
)
from mlb_rules import E_FORMAT, E_IO, E_SHAPE, OK, MlbError, validate, validate_bytes  # noqa: F401
from quant import (
    F16_MAX,
    Quantized,
    QuantizeError,
    pack_nibbles,
    quantize_q4_0_fit,
    quantize_q4_0_round,
    quantize_q8_0,
    unpack_nibbles,
)

Provide = Callable[[TensorSpec], "np.ndarray | Quantized"]
Importance = Callable[[TensorSpec], "np.ndarray | None"] | Mapping[str, np.ndarray]


# ---------------------------------------------------------------- writer


def write_model(
    path: str | Path,
    header: Header,
    layer_flags: bytes | None,
    provide: Provide,
    *,
    q4_rule: str = "fit",
    importance: Importance | None = None,
) -> None:
    """Writes a whole file, one tensor in memory at a time; `path` appears complete or not at all.

    provide: called once per tensor, in file order. Gives float weights of the spec's shape, which are quantized here,
        or a Quantized of the spec's kind, which is stored as it is.
    q4_rule: "fit" (search for the best fit) or "round" (as llama.cpp rounds).
    importance: mean squared input of each column of a matrix, by tensor name, for the fit; None, or a missing name,
        weighs by x² instead.

    Raises MlbError for a header that a loader would refuse, QuantizeError, with the tensor's name, for weights that the
    format cannot hold, OSError for the disk.
    """
    if q4_rule not in ("fit", "round"):
        raise ValueError(f"q4_rule must be fit or round, not {q4_rule}")
    status, message = validate(header, layer_flags, None)
    if status != OK:
        raise MlbError(status, message)

    def importance_of(spec: TensorSpec) -> np.ndarray | None:
        return importance(spec) if callable(importance) else (importance or {}).get(spec.name)

    with atomic_file(Path(path)) as file:
        file.write(header.pack())
        if header.layer_flags:
            _write_array(file, np.frombuffer(layer_flags, dtype=np.uint8))
        for spec in tensor_specs(header, layer_flags):
            try:
                for array in _stored_arrays(spec, provide(spec), q4_rule, importance_of(spec)):
                    _write_array(file, array)
            except QuantizeError as error:
                raise QuantizeError(f"{spec.name}: {error}") from None


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its name if the body succeeds and is removed if it does not."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        if error.filename == str(temporary):
            error.filename = str(path)  # the name that the caller knows
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _write_array(file: BinaryIO, array: np.ndarray) -> None:
    file.write(np.ascontiguousarray(array).data)
    file.write(bytes(align(array.nbytes) - array.nbytes))


def _stored_arrays(
    spec: TensorSpec, value: np.ndarray | Quantized, q4_rule: str, importance: np.ndarray | None
) -> list[np.ndarray]:
    """The arrays of one tensor as they lie in the file, quantized if they are not yet."""
    if spec.kind == "f32":
        if isinstance(value, Quantized):
            raise QuantizeError("is stored as f32, but quantized weights were given")
        with np.errstate(over="ignore"):  # an overflow becomes an infinity, which is refused
            array = _shaped(spec, value).astype("<f4")
        if not np.isfinite(array).all():
            raise QuantizeError("non-finite weight")
        return [array]
    if not isinstance(value, Quantized):
        x = _shaped(spec, value)
        if spec.kind == "q8_0":
            value = quantize_q8_0(x, spec.scale_f16)
        elif q4_rule == "round":
            value = quantize_q4_0_round(x, spec.scale_f16)
        else:
            value = quantize_q4_0_fit(x, spec.scale_f16, importance)
    _check_quantized(spec, value)
    q = value.q if spec.kind == "q8_0" else pack_nibbles(value.q)
    return [q, value.d.astype("<f2" if spec.scale_f16 else "<f4")]


def _shaped(spec: TensorSpec, value: np.ndarray) -> np.ndarray:
    value = np.asarray(value)
    if value.shape != spec.shape:
        raise QuantizeError(f"has shape {value.shape}, the header implies {spec.shape}")
    return value


def _check_quantized(spec: TensorSpec, value: Quantized) -> None:
    if value.kind != spec.kind:
        raise QuantizeError(f"is stored as {spec.kind}, but {value.kind} weights were given")
    if value.q.shape != spec.shape or value.d.shape != (spec.rows, spec.cols // 32):
        raise QuantizeError(f"has quants {value.q.shape} and scales {value.d.shape} for a shape of {spec.shape}")
    least, most = (-127, 127) if spec.kind == "q8_0" else (-8, 7)
    if value.q.min() < least or value.q.max() > most:
        raise QuantizeError(f"has quants outside {least} to {most}")
    if not np.isfinite(value.d).all():
        raise QuantizeError("non-finite scale")
    if spec.scale_f16:
        if np.abs(value.d).max() > F16_MAX:
            raise QuantizeError(f"scale {np.abs(value.d).max():.6g} is above {F16_MAX:.0f}, the largest float16")
        if (value.d.astype(np.float16) != value.d).any():
            raise QuantizeError("has scales that are no float16 values, and this model stores float16 scales")


# ---------------------------------------------------------------- reader


def read_model(path: str | Path) -> Model:
    """Opens a file and checks all but its quants. Raises MlbError. The bytes stay on disk until asked for."""
    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            header_bytes = file.read(HEADER_SIZE)
        data = np.memmap(path, dtype=np.uint8, mode="r") if size else np.empty(0, dtype=np.uint8)
    except OSError as error:
        raise MlbError(E_IO, f"cannot be read: {error.strerror or error}") from None
    if len(header_bytes) < HEADER_SIZE:
        raise MlbError(*validate_bytes(header_bytes))
    header = Header.unpack(header_bytes)
    layer_flags = data[HEADER_SIZE : HEADER_SIZE + header.n_layers].tobytes() if header.layer_flags else None
    status, message = validate(header, layer_flags, size)
    if status != OK:
        raise MlbError(status, message)
    return Model(header, layer_flags, data)


class Model:
    """A file that was read. Tensors go by the names of `tensors()`: "tok_emb", "layers.0.wq", "final_norm" …"""

    def __init__(self, header: Header, layer_flags: bytes | None, data: np.ndarray) -> None:
        self.header = header
        self.layer_flags = layer_flags
        self.data = data
        self._spans: dict[str, dict[str, Span]] = {}
        for span in iter_spans(header, layer_flags):
            self._spans.setdefault(span.name, {})[span.part] = span

    def tensors(self) -> list[TensorSpec]:
        """In file order, without the layer flags."""
        return tensor_specs(self.header, self.layer_flags)

    def spans(self) -> list[Span]:
        """All arrays of the file in order, the layer flags included."""
        return [span for parts in self._spans.values() for span in parts.values()]

    def spans_of(self, name: str) -> list[Span]:
        """The arrays of one tensor: one, or quants and scales."""
        return list(self._find(name)[1].values())

    def stored(self, span: Span) -> np.ndarray:
        """The bytes of one array, uint8, without its padding."""
        return self.data[span.offset : span.offset + span.size]

    def raw(self, name: str) -> Quantized | np.ndarray:
        """As stored: levels and scales of a matrix, or float32 values. MlbError for the quant -128."""
        spec, parts = self._find(name)
        if spec.kind == "f32":
            return self.stored(parts["f32"]).view("<f4").astype(np.float32).reshape(spec.shape)
        stored = self.stored(parts["q"])
        q = stored.view(np.int8) if spec.kind == "q8_0" else unpack_nibbles(stored)
        if spec.kind == "q8_0" and q.min() == -128:
            at = int(q.argmin())
            offset = parts["q"].offset + at
            row, col = divmod(at, spec.cols)
            raise MlbError(E_FORMAT, f"{name} row {row}, column {col} at offset {offset}: quant -128 is not allowed")
        d = self.stored(parts["d"]).view("<f2" if spec.scale_f16 else "<f4").astype(np.float32)
        return Quantized(np.array(q).reshape(spec.shape), d.reshape(spec.rows, -1), spec.kind)

    def array(self, name: str) -> np.ndarray:
        """float32 of the tensor's shape, dequantized if need be."""
        value = self.raw(name)
        return value.dequantize() if isinstance(value, Quantized) else value

    def _find(self, name: str) -> tuple[TensorSpec, dict[str, Span]]:
        parts = self._spans.get(name, {})
        spec = next((span.spec for span in parts.values()), None)
        if spec is None:
            raise KeyError(f"no tensor {name} in this model")
        return spec, parts


def verify_model(path: str | Path) -> Model:
    """read_model and then every quant: what the loader accepts. Raises MlbError."""
    model = read_model(path)
    for spec in model.tensors():
        if spec.kind == "q8_0":
            model.raw(spec.name)
    return model


if __name__ == "__main__":
    import sys

    import mlb_cli

    sys.exit(mlb_cli.main())
