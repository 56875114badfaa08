"""Makes .mlb files that break one rule each, files that break two, and odd ones that must load all the same.

Nothing is committed: the files are small changes to tiny models. Tests import `cases()` and `truncations()`; from the
command line the same files are written out for other readers of the format:

    python3 tests/python/bad_files.py FOLDER     FOLDER/NAME.mlb and FOLDER/index.json (name, status, words)
"""

from __future__ import annotations

import functools
import json
import math
import re
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from mlb import (
    E_FORMAT,
    E_SHAPE,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    HEADER_SIZE,
    OK,
    Header,
    Span,
    align,
    implied_size,
    iter_spans,
)
from tiny import write_tiny

U32_MAX = 0xFFFFFFFF
NAN, INF = math.nan, math.inf
NOT_POSITIVE = (0.0, -0.0, -1.0, NAN, INF)
NEGATIVE = (-1.0, -1e-40, NAN, INF, -INF)


@dataclass(frozen=True)
class Case:
    """A file, what a loader must say of it, and what its message must name (all of the words)."""

    name: str
    data: bytes
    status: str
    words: tuple[str, ...] = ()

    def judge(self, status: str, message: str) -> str | None:
        """What is wrong with a loader's answer, or None. The message must not quote the file's path, which might hold
        the words that are looked for. They must stand alone: "dim" is not named by "head_dim"."""
        if status != self.status:
            return f"{self.name}: expected {self.status}, got {status or 'no status'}: {message}"
        plain = message.replace("layer flags", "layer_flags")
        missing = [word for word in self.words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", plain)]
        return f"{self.name}: {', '.join(missing)} not named in: {message}" if missing else None


@functools.cache
def tiny_bytes(feature: str) -> bytes:
    """A whole tiny model as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.mlb"
        write_tiny(path, feature)
        return path.read_bytes()


def header_of(data: bytes) -> Header:
    return Header.unpack(data)


def flags_of(data: bytes) -> bytes | None:
    header = header_of(data)
    return data[HEADER_SIZE : HEADER_SIZE + header.n_layers] if header.layer_flags else None


def spans_of(data: bytes) -> list[Span]:
    return list(iter_spans(header_of(data), flags_of(data)))


def changed(feature: str, **fields: float | bytes) -> bytes:
    """A tiny model with header fields replaced and the body left as it was."""
    data = tiny_bytes(feature)
    return replace(header_of(data), **fields).pack() + data[HEADER_SIZE:]


def patched(feature: str, offset: int, new: bytes, **fields: float) -> bytes:
    """A tiny model with some bytes, and perhaps header fields, replaced."""
    data = changed(feature, **fields)
    return data[:offset] + new + data[offset + len(new) :]


def cases() -> list[Case]:
    """All but the truncations."""
    return [
        *_envelope(),
        *_enumerations(),
        *_floats(),
        *_rope_scaling(),
        *_dimensions(),
        *_heads(),
        *_linear_dimensions(),
        *_layer_flags(),
        *_sizes(),
        *_quants(),
        *_two_rules(),
        *_odd_headers(),
        *_odd_bodies(),
    ]


def _field(feature: str, name: str, values: tuple, status: str, *words: str, **others: float) -> Iterator[Case]:
    """One field wrong in several ways; its name is what the message must hold unless other words are given."""
    with_others = "".join(f"-{other}-{value}" for other, value in others.items())
    for value in values:
        data = changed(feature, **others | {name: value})
        yield Case(f"{feature}-{name}-{value}{with_others}", data, status, words or (name,))


# ---------------------------------------------------------------- header, FORMAT


def _envelope() -> Iterator[Case]:
    data = tiny_bytes("one_layer")
    for size in (0, 1, 3, 4, 8, 255):
        yield Case(f"header-cut-at-{size}", data[:size], E_FORMAT, (str(size), "256"))
    yield Case("header-only", data[:256], E_FORMAT, ("256", str(implied_size(header_of(data), None))))
    for magic in (b"MLB2", b"GGUF", b"1BLM", b"mlb1", bytes(4)):
        name = f"magic-{magic.hex()}"
        yield Case(name, changed("one_layer", magic=magic), E_FORMAT, ("magic",))
    yield from _field("one_layer", "version", (0, 2, 1 << 24, U32_MAX), E_FORMAT)
    for at in (160, 163, 200, 255):
        yield Case(f"reserved-{at}", patched("one_layer", at, b"\x01"), E_FORMAT, ("reserved", str(at)))


def _enumerations() -> Iterator[Case]:
    yield from _field("one_layer", "wtype", (0, 3, 1 << 8, U32_MAX), E_FORMAT)
    yield from _field("one_layer", "rope_type", (4, 1 << 16, U32_MAX), E_FORMAT)
    yield from _field("one_layer", "act", (2, U32_MAX), E_FORMAT)
    for name in ("qkv_bias", "qk_norm", "layer_flags", "post_norms", "scale_f16", "attn_gate"):
        yield from _field("one_layer", name, (2, 1 << 8, U32_MAX), E_FORMAT)
    yield from _field("one_layer", "q8_mask", (1, 127), E_FORMAT)  # a Q8_0 model
    yield from _field("q4", "q8_mask", (128, 1 << 31, U32_MAX), E_FORMAT)
    yield from _field("one_layer", "sliding_window", ((1 << 24) + 1, U32_MAX), E_FORMAT)


def _floats() -> Iterator[Case]:
    yield from _field("one_layer", "rope_theta", NOT_POSITIVE, E_FORMAT)
    for name in ("norm_eps", "rope_local_theta", "embed_scale", "attn_scale", "attn_softcap", "final_softcap"):
        yield from _field("one_layer", name, NEGATIVE, E_FORMAT)


def _rope_scaling() -> Iterator[Case]:
    for feature in ("rope_llama3", "rope_linear", "rope_yarn"):
        yield from _field(feature, "rope_factor", NOT_POSITIVE, E_FORMAT)
    for feature in ("rope_llama3", "rope_yarn"):
        yield from _field(feature, "rope_low_freq_factor", NOT_POSITIVE, E_FORMAT)
        yield from _field(feature, "rope_high_freq_factor", NOT_POSITIVE, E_FORMAT)
        yield from _field(feature, "rope_orig_max_seq", (0,), E_FORMAT)
    yield from _field("rope_llama3", "rope_high_freq_factor", (1.0, 0.5), E_FORMAT)  # low is 1
    yield from _field("rope_yarn", "rope_high_freq_factor", (32.0, 33.0), E_FORMAT)  # beta_fast is 32
    yield from _field("rope_yarn", "rope_attn_factor", NOT_POSITIVE, E_FORMAT)
    for feature in ("one_layer", "rope_llama3", "rope_linear"):
        yield from _field(feature, "rope_attn_factor", (1.0, -1.0, 1e-40, NAN, INF), E_FORMAT)
    zeros = {"rope_factor": 0, "rope_low_freq_factor": 0, "rope_high_freq_factor": 0, "rope_orig_max_seq": 0}
    for rope_type in (1, 2, 3):
        data = changed("one_layer", rope_type=rope_type, **zeros)
        yield Case(f"rope-type-{rope_type}-without-parameters", data, E_FORMAT, ("rope_factor",))


# ---------------------------------------------------------------- header, SHAPE


def _dimensions() -> Iterator[Case]:
    for name in ("dim", "n_layers", "n_heads", "n_kv_heads", "hidden_dim"):
        yield from _field("one_layer", name, (0, 65536 + 32, 1 << 31, U32_MAX), E_SHAPE)
    yield from _field("one_layer", "n_layers", (65537,), E_SHAPE)
    yield from _field("one_layer", "vocab", (0, 1, 2, (1 << 24) + 1, U32_MAX), E_SHAPE)
    yield from _field("one_layer", "max_seq", (0, (1 << 24) + 1, U32_MAX), E_SHAPE)
    for name in ("dim", "hidden_dim"):
        yield from _field("one_layer", name, (1, 16, 33, 48, 65535), E_SHAPE)


def _heads() -> Iterator[Case]:
    yield from _field("llama", "n_heads", (5, 6, 65536), E_SHAPE, "n_heads", n_kv_heads=1)  # must divide dim 64
    yield from _field("llama", "n_kv_heads", (3, 8), E_SHAPE)  # of 4 heads
    yield from _field("llama", "head_dim", (1, 15, 0x7FFFFFFF, U32_MAX), E_SHAPE)
    yield from _field("llama", "n_heads", (64,), E_SHAPE, "head_dim", n_kv_heads=1)  # heads of 1
    # q_dim: not a multiple of 32, too large, and wrapping to 0, to 32 and to 64 in 32 bits.
    yield from _field("llama", "head_dim", (2, 6, 10), E_SHAPE, "q_dim")
    yield from _field("llama", "head_dim", (16384 + 8, 65536, 1 << 30, (1 << 30) + 8, U32_MAX - 1), E_SHAPE, "q_dim")
    many = {"n_heads": 65536, "n_kv_heads": 1}
    yield from _field("llama", "head_dim", (2, 65536), E_SHAPE, "q_dim", **many)
    yield from _field("llama", "rot_dim", (1, 7, 15, 17, 18, 1 << 31, U32_MAX, U32_MAX - 1), E_SHAPE)
    yield from _field("head_dim", "rot_dim", (18,), E_SHAPE)  # heads of 16, given


def _linear_dimensions() -> Iterator[Case]:
    for name in ("lin_v_heads", "lin_k_dim", "lin_v_dim", "lin_conv"):
        yield from _field("linear", name, (0, 65537, U32_MAX), E_SHAPE)
    yield from _field("linear", "lin_k_heads", (65537, 1 << 31, U32_MAX), E_SHAPE)
    yield from _field("linear", "lin_k_heads", (3, 8), E_SHAPE, "lin_k_heads", "lin_v_heads")  # 4 value heads
    yield from _field("linear", "lin_v_heads", (2, 6, 7), E_SHAPE, lin_k_heads=1, lin_v_dim=32)
    yield from _field("linear", "lin_v_dim", (1, 4, 10), E_SHAPE)  # times 4 heads: no multiple of 32
    # Relations are checked once lin_k_heads is set, with or without a linear layer.
    unused = {"lin_k_heads": 2, "lin_v_heads": 5, "lin_k_dim": 16, "lin_v_dim": 32, "lin_conv": 4}
    yield Case("linear-relation-unused", changed("llama", **unused), E_SHAPE, ("lin_v_heads",))


# ---------------------------------------------------------------- layer flags


def _layer_flags() -> Iterator[Case]:
    def case(name: str, feature: str, layer: int, bits: int, status: str, *words: str, **fields: float) -> Case:
        data = patched(feature, HEADER_SIZE + layer, bytes([bits]), **fields)
        return Case(f"flags-{name}", data, status, ("layer_flags", str(bits), *words))

    for bits in (16, 32, 64, 128, 255, 24):
        yield case(f"unknown-{bits}", "nope", 1, bits, E_FORMAT)
    yield case("unknown-in-last-layer", "nope", 3, 16, E_FORMAT, str(HEADER_SIZE + 3))
    both = FLAG_LOCAL_ROPE | FLAG_NOPE
    yield case("local-and-nope", "local_rope", 0, both, E_FORMAT)
    yield case("local-nope-window", "local_rope", 2, both | FLAG_WINDOW, E_FORMAT)
    for other in (FLAG_WINDOW, FLAG_LOCAL_ROPE, FLAG_NOPE):
        bits = FLAG_LINEAR | other
        yield case(f"linear-with-{other}", "linear", 0, bits, E_FORMAT, rope_local_theta=100.0)
    local = FLAG_LOCAL_ROPE
    yield case("local-without-theta", "nope", 0, local, E_FORMAT, "rope_local_theta")
    yield case("local-with-theta-minus-zero", "nope", 0, local, E_FORMAT, rope_local_theta=-0.0)
    yield case("linear-without-dimensions", "nope", 2, FLAG_LINEAR, E_SHAPE, "lin_k_heads")
    data = changed("linear", lin_k_heads=0)
    yield Case("flags-linear-dimensions-taken-away", data, E_SHAPE, ("layer_flags", "lin_k_heads"))


# ---------------------------------------------------------------- sizes and quants


def _sizes() -> Iterator[Case]:
    """Headers that promise more than the file has, some of them by numbers that wrap in 32 or 64 bits."""

    def case(name: str, size: int, feature: str = "one_layer", flags: bytes | None = None, **fields: float) -> Case:
        start = changed(feature, **fields)[:HEADER_SIZE] + (flags or b"")
        need = implied_size(header_of(start), flags)
        words = (str(size), str(need)) if need < 1 << 64 else (str(size),)
        return Case(f"size-{name}", (start + bytes(size))[:size], E_FORMAT, words)

    big = 65536
    yield case("vocab-2^24-dim-65536", 300, vocab=1 << 24, dim=big)
    yield case("vocab-x-dim-is-2^32", 300, vocab=big, dim=big)
    yield case("vocab-x-dim-is-2^32-q4", 300, "q4", vocab=big, dim=big)
    yield case("scales-are-2^32", 300, vocab=1 << 19, dim=big, hidden_dim=big)
    yield case("ffn-is-2^32", 40000, dim=big, hidden_dim=big, vocab=3)
    yield case("largest-attention", 300, dim=big, n_heads=big // 2, n_kv_heads=big // 2)
    yield case("largest-without-linear", 300, n_layers=big, dim=big, hidden_dim=big, vocab=1 << 24)
    yield case("many-layers", 20000, n_layers=big)
    yield case("one-layer-more", len(tiny_bytes("llama")), "llama", n_layers=3)
    yield case("one-token-more", len(tiny_bytes("untied")), "untied", vocab=252)
    yield case("classifier-missing", len(tiny_bytes("llama")), "llama", shared_classifier=0)
    huge = {"lin_k_heads": big, "lin_v_heads": big, "lin_k_dim": big, "lin_v_dim": big, "lin_conv": big}
    linear = bytes([FLAG_LINEAR])
    yield case("linear-convolution-wraps", 300, "linear", linear, n_layers=1, **huge)
    yield case("linear-total-over-2^64", big + 500, "linear", linear * big, n_layers=big, dim=big, **huge)
    linear_value = {"lin_k_heads": 4, "lin_v_heads": big, "lin_k_dim": 1, "lin_v_dim": big, "lin_conv": 1}
    yield case("linear-values-are-2^32", 300, "linear", linear, n_layers=1, **linear_value)
    # The flags themselves are cut off.
    header = changed("nope", n_layers=big)[:HEADER_SIZE]
    yield Case("size-flags-cut", header + bytes(44), E_FORMAT, ("300", str(HEADER_SIZE + big)))
    yield Case("size-flags-missing", header, E_FORMAT, ("256", str(HEADER_SIZE + big)))


def _q8_spans(feature: str) -> list[Span]:
    return [s for s in spans_of(tiny_bytes(feature)) if s.spec and s.spec.kind == "q8_0" and s.part == "q"]


def _quants() -> Iterator[Case]:
    """-128 in every Q8_0 array of three models, and at both ends of one."""
    for feature in ("untied", "linear_q4", "mask_all"):
        for span in _q8_spans(feature):
            at = span.offset + span.size // 3
            yield Case(f"quant-{feature}-{span.name}", patched(feature, at, b"\x80"), E_FORMAT, ("-128", str(at)))
    first, last = _q8_spans("untied")[0], _q8_spans("untied")[-1]
    for name, at in (("first", first.offset), ("last", last.offset + last.size - 1)):
        yield Case(f"quant-{name}", patched("untied", at, b"\x80"), E_FORMAT, ("-128", str(at)))


# ---------------------------------------------------------------- two rules at once


def _two_rules() -> Iterator[Case]:
    """The order is: header FORMAT, header SHAPE, layer flags, sizes, quants."""
    start = tiny_bytes("linear")[:HEADER_SIZE]

    def short(name: str, flags: bytes, status: str, *words: str, **fields: float) -> Case:
        """A header and flags without a body."""
        return Case(f"order-{name}", replace(header_of(start), **fields).pack() + flags, status, words)

    plain = bytes([8, 8, 0])
    unknown = bytes([8, 16, 0])
    yield Case("order-format-before-shape", changed("llama", dim=0, act=2), E_FORMAT, ("act",))
    yield Case("order-late-format-before-early-shape", patched("llama", 255, b"\x01", dim=33), E_FORMAT, ("reserved",))
    yield Case("order-magic-before-shape", changed("llama", vocab=0, magic=b"MLB0"), E_FORMAT, ("magic",))
    yield short("format-before-flags", unknown, E_FORMAT, "norm_eps", norm_eps=-1.0)
    yield short("shape-before-flags", unknown, E_SHAPE, "vocab", vocab=2)
    yield short("shape-before-size", plain, E_SHAPE, "n_kv_heads", n_kv_heads=3)
    yield short("shape-before-missing-flags", b"", E_SHAPE, "rot_dim", rot_dim=3)
    yield short("flags-before-size", unknown, E_FORMAT, "layer_flags", "16")
    yield short("flags-shape-before-size", plain, E_SHAPE, "lin_k_heads", lin_k_heads=0)
    quant = _q8_spans("untied")[0].offset
    data = patched("untied", quant, b"\x80")[:-600]
    yield Case("order-size-before-quants", data, E_FORMAT, (str(len(data)), str(len(data) + 600 - _padding("untied"))))
    yield Case("order-shape-before-quants", patched("untied", quant, b"\x80", max_seq=0), E_SHAPE, ("max_seq",))


def _padding(feature: str) -> int:
    """Bytes of padding after a model's last array."""
    last = spans_of(tiny_bytes(feature))[-1]
    return align(last.size) - last.size


# ---------------------------------------------------------------- odd, and valid


def _odd_headers() -> Iterator[Case]:
    def fine(name: str, feature: str, **fields: float) -> Case:
        return Case(f"fine-{name}", changed(feature, **fields), OK)

    for value in (1, 7, U32_MAX):
        yield fine(f"shared-classifier-{value}", "llama", shared_classifier=value)
    for name in ("norm_eps", "rope_local_theta", "embed_scale", "attn_scale", "attn_softcap", "final_softcap"):
        yield fine(f"{name}-minus-zero", "llama", **{name: -0.0})
        yield fine(f"{name}-subnormal", "llama", **{name: 1e-40})
    yield fine("rope_attn_factor-minus-zero", "llama", rope_attn_factor=-0.0)
    yield fine("rope_theta-subnormal", "llama", rope_theta=1e-40)
    yield fine("rope_theta-one", "rope_yarn", rope_theta=1.0)
    yield fine("rope_theta-largest", "llama", rope_theta=float(np.finfo(np.float32).max))
    bands = {"rope_low_freq_factor": NAN, "rope_high_freq_factor": -INF, "rope_orig_max_seq": U32_MAX}
    yield fine("plain-rope-with-garbage", "llama", rope_factor=NAN, **bands)
    yield fine("linear-rope-with-garbage", "rope_linear", **bands)
    yield fine("window-largest", "llama", sliding_window=1 << 24)
    yield fine("window-flag-without-window", "window_layers", sliding_window=0)
    yield fine("local-base-without-local-layers", "nope", rope_local_theta=100.0)
    garbage = {"lin_v_heads": U32_MAX, "lin_k_dim": 7, "lin_v_dim": 1 << 31, "lin_conv": U32_MAX}
    yield fine("linear-garbage-without-key-heads", "llama", **garbage)
    linear = {"lin_k_heads": 2, "lin_v_heads": 4, "lin_k_dim": 65536, "lin_v_dim": 65536, "lin_conv": 65536}
    yield fine("linear-sizes-without-linear-layers", "llama", **linear)
    yield fine("head_dim-said-twice", "llama", head_dim=16)
    for rot_dim in (2, 16):
        yield fine(f"rot_dim-{rot_dim}", "llama", rot_dim=rot_dim)
    yield fine("max_seq-one", "llama", max_seq=1)
    yield fine("max_seq-largest", "llama", max_seq=1 << 24)


def _odd_bodies() -> Iterator[Case]:
    for feature in ("llama", "everything"):
        data = bytearray(tiny_bytes(feature))
        for span in spans_of(data):
            pad = slice(span.offset + span.size, align(span.offset + span.size))
            data[pad] = b"\x80" * (pad.stop - pad.start)  # would be -128 if it were taken for quants
        assert data != tiny_bytes(feature)
        yield Case(f"fine-{feature}-padding-not-zero", bytes(data), OK)
        for extra in (1, 63, 64, 1000):
            yield Case(f"fine-{feature}-{extra}-bytes-follow", tiny_bytes(feature) + b"\x80" * extra, OK)
    data, padding = tiny_bytes("untied"), _padding("untied")
    for missing in (1, padding - 1, padding):
        yield Case(f"fine-{missing}-bytes-of-padding-missing", data[: len(data) - missing], OK)
    for name, value in (("nan", NAN), ("inf", -INF)):
        for span in spans_of(data):
            if span.name in ("final_norm", "layers.0.wq") and span.part in ("f32", "d"):
                new = struct.pack("<f", value)
                yield Case(f"fine-{name}-in-{span.name}", patched("untied", span.offset, new), OK)
    for name, bits in (("nan", 0x7E01), ("inf", 0xFC00), ("subnormal", 0x0001)):
        scale = next(span for span in spans_of(tiny_bytes("q8_f16")) if span.part == "d")
        yield Case(f"fine-{name}-in-f16-scale", patched("q8_f16", scale.offset, struct.pack("<H", bits)), OK)
    nibbles = next(span for span in spans_of(tiny_bytes("q4")) if span.part == "q")
    yield Case("fine-every-nibble", patched("q4", nibbles.offset, bytes(range(256))), OK)


# ---------------------------------------------------------------- truncations


def truncations(feature: str) -> Iterator[Case]:
    """The model cut at the start, end and padded end of every array, and one byte either side."""
    data = tiny_bytes(feature)
    need = implied_size(header_of(data), flags_of(data))
    edges = {HEADER_SIZE}
    for span in spans_of(data):
        end = span.offset + span.size
        edges |= {span.offset, end, align(end)}
    lengths = sorted({edge + step for edge in edges for step in (-1, 0, 1)})
    for length in lengths:
        cut = data[:length]
        status = OK if len(cut) >= need else E_FORMAT
        yield Case(f"{feature}-cut-at-{length}", cut, status, () if status == OK else (str(length),))


def main() -> int:
    """Writes all files and their index into the folder named on the command line."""
    if len(sys.argv) != 2:
        print("usage: bad_files.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for case in cases():
        (folder / f"{case.name}.mlb").write_bytes(case.data)
        index.append({"name": case.name, "status": case.status, "words": case.words})
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(index)} files in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
