"""Writes src/text/unicode_tables.h: what the tokenizers library takes for letters, numbers, marks, blanks and NFC.

build/venv-hf/bin/python tools/make_unicode_tables.py [--check]     (half a minute)

A tokenizer is right when it agrees with the library that made the model's training data, and that library mixes three
Unicode versions: its regular expressions know one, the Digits pre-tokenizer another, the NFC normalizer a third. So
nothing here is read from the Unicode database: the library is asked about every code point. Python's own database only
names what was found (combining classes and one-step decompositions never change once assigned), and every such name is
checked against the library before it is written.

The packed tables, which src/text/unicode.c unpacks when a tokenizer is opened:

    runs            code points 0 to 0x10FFFF as runs of equal value, one after the other
                    +----+--------+   value  0 OTHER, 1 LETTER, 2 MARK, 3: in the next byte
                    | 76 | 543210 |   length 1 to 60 as 0 to 59; 60, 61, 62: 1, 2, 3 bytes follow, little-endian,
                    +----+--------+          which hold the length
    decompositions  by rising code point, in columns, since like beside like is what gzip packs well
                    gaps            numbers: how far the code point is from the one before, the first from 0
                    second indices  bytes: which of `seconds` the second half is
                    first steps     numbers: the first half less that of the one before, 2 d for d >= 0, -2 d - 1 below
    seconds         numbers: what is added to the one before, from 0; twice the second half, 1 more if it never composes

Numbers have 7 bits a byte, least first, bit 7 set on all but the last.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = Path(__file__).resolve().parent.parent / "src/text/unicode_tables.h"

OTHER, LETTER, MARK, NUMBER, BLANK, LATE_NUMBER = range(6)
CLASS_MASK = 7  # values below NON_STARTER: a class, and these bits
JOINS = 8  # may compose with what precedes it, or be reordered
CHANGES = 16  # is not its own NFC
NON_STARTER = 64  # values from here on: a mark that joins; the rest is the rank of its combining class

END = 0x110000
SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = [c for c in range(END) if c not in SURROGATES]
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)  # these (and their Jamo) are composed by arithmetic, not by table
HANGUL_JOINING = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
PICKED_APART = "\x01"  # between probes: a control character, in no class and inert to normalization

BLOCK = 256  # code points, in the unpacked table

nfc = normalizers.NFC().normalize_str
nfd = normalizers.NFD().normalize_str


def must(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"make_unicode_tables.py: the library contradicts Unicode's promises: {what}")


# ---------------------------------------------------------------- asking the library


def split_off(pre_tokenizer: pre_tokenizers.PreTokenizer) -> set[int]:
    """The code points that a pre-tokenizer makes pieces of their own or removes, probed in batches."""
    found = set()
    for start in range(0, len(CODE_POINTS), 4096):
        chunk = CODE_POINTS[start : start + 4096]
        text = PICKED_APART + "".join(chr(c) + PICKED_APART for c in chunk)
        kept = set()
        for piece, (begin, end) in pre_tokenizer.pre_tokenize_str(text):
            if PICKED_APART in piece:
                kept.update(range(begin, end))
        found.update(c for i, c in enumerate(chunk) if 2 * i + 1 not in kept)
    return found


def regex_class(pattern: str) -> set[int]:
    return split_off(pre_tokenizers.Split(Regex(pattern), "removed"))


@dataclass
class Nfc:
    """`steps`: one-step canonical decompositions of one or two code points. `excluded`: pairs that never compose.
    `ranks`: non-starters and the ranks of their combining classes."""

    steps: dict[int, tuple[int, ...]]
    excluded: set[int]
    ranks: dict[int, int]

    def joins(self) -> set[int]:
        """Code points that begin, once decomposed, with something that may move or compose backwards."""
        seconds = {step[1] for c, step in self.steps.items() if len(step) == 2 and c not in self.excluded}
        begins = seconds | set(HANGUL_JOINING) | set(self.ranks)
        return begins | {c for c in self.steps if ord(nfd(chr(c))[0]) in begins}


def probe_nfc() -> Nfc:
    full = {c: nfd(chr(c)) for c in CODE_POINTS if c not in HANGUL_SYLLABLES}
    steps = {c: one_step(c) for c, text in full.items() if text != chr(c)}
    excluded = {c for c, step in steps.items() if len(step) == 2 and nfc(full[c]) != chr(c)}
    ranks = probe_ranks([c for c in full if c not in steps])
    result = Nfc(steps, excluded, ranks)
    check_decompositions(result, full)
    check_compositions(result)
    return result


def one_step(code_point: int) -> tuple[int, ...]:
    words = unicodedata.decomposition(chr(code_point)).split()
    must(bool(words) and "<" not in words[0] and len(words) <= 2, f"U+{code_point:04X} decomposes")
    return tuple(int(word, 16) for word in words)


def check_decompositions(found: Nfc, full: dict[int, str]) -> None:
    def expand(c: int) -> str:
        return "".join(map(expand, found.steps[c])) if c in found.steps else chr(c)

    for c, step in found.steps.items():
        must(expand(c) == full[c], f"decomposition of U+{c:04X}")
        must(len(full[c]) <= 4 and step[-1] not in found.steps or len(step) == 1, f"short steps of U+{c:04X}")


def check_compositions(found: Nfc) -> None:
    """Every first half with every second half: normalization by the tables is that of the library."""
    pairs = {step: c for c, step in found.steps.items() if len(step) == 2 and c not in found.excluded}
    for first in sorted({pair[0] for pair in pairs}):
        for second in sorted({pair[1] for pair in pairs}):
            must(compose(found, pairs, first, second) == nfc(chr(first) + chr(second)), f"U+{first:04X} U+{second:04X}")


def compose(found: Nfc, pairs: dict[tuple[int, ...], int], first: int, second: int) -> str:
    """NFC of a starter that has a place in `pairs` and what follows it."""
    text = [ord(c) for c in nfd(chr(first) + chr(second))]
    composed, last_rank = text[:1], -1
    for c in text[1:]:
        rank = found.ranks.get(c, -1)
        blocked = len(composed) > 1 and last_rank >= rank
        if not blocked and (composed[0], c) in pairs:
            composed[0] = pairs[composed[0], c]
        else:
            composed.append(c)
            last_rank = rank
    return "".join(map(chr, composed))


def probe_ranks(code_points: Iterable[int]) -> dict[int, int]:
    """A non-starter is what changes places with another one. All that counts of its class is the order."""
    lowest, highest = "\u0334", "\u0345"  # classes 1 and 240
    marks = [c for c in code_points if not stays(highest, chr(c)) or not stays(chr(c), lowest)]
    classes = {c: unicodedata.combining(chr(c)) for c in marks}
    must(0 not in classes.values(), "a non-starter without a combining class")
    order = sorted(set(classes.values()))
    examples = {k: next(c for c in marks if classes[c] == k) for k in order}
    for c in marks:
        for k, example in examples.items():
            must(stays(chr(c), chr(example)) == (classes[c] <= k), f"class of U+{c:04X}")
    return {c: order.index(classes[c]) for c in marks}


def stays(first: str, second: str) -> bool:
    text = PICKED_APART + first + second
    return nfd(text) == text


def values_of_all(found: Nfc) -> list[int]:
    """The value of every code point; surrogates, which no text holds, go on with the run before them."""
    letters, marks, numbers = regex_class(r"\p{L}"), regex_class(r"\p{M}"), regex_class(r"\p{N}")
    blanks = regex_class(r"\s")
    digits = split_off(pre_tokenizers.Digits(individual_digits=True))
    must(numbers <= digits, "a number that is no digit to Digits")
    joins = found.joins()

    def value(c: int) -> int:
        if c in found.ranks:
            must(c in marks, f"U+{c:04X}, a non-starter, is a mark")
            return NON_STARTER + found.ranks[c]
        sets = ((letters, LETTER), (marks, MARK), (numbers, NUMBER), (blanks, BLANK), (digits, LATE_NUMBER))
        char_class = next((number for members, number in sets if c in members), OTHER)
        return char_class | (JOINS if c in joins else 0) | (CHANGES if nfc(chr(c)) != chr(c) else 0)

    values: list[int] = []
    for c in range(END):
        values.append(values[-1] if c in SURROGATES else value(c))
    return values


# ---------------------------------------------------------------- packing


def number(n: int) -> bytes:
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def pack_runs(values: list[int]) -> bytes:
    out = bytearray()
    start = 0
    while start < END:
        value, length = values[start], 1
        while start + length < END and values[start + length] == value:
            length += 1
        extra = 0 if length <= 60 else (length.bit_length() + 7) // 8
        out.append(min(value, 3) << 6 | (59 + extra if extra else length - 1))
        if extra:
            out += length.to_bytes(extra, "little")
        if value >= 3:
            out.append(value)
        start += length
    return bytes(out)


def numbers(ns: Iterable[int]) -> bytes:
    return b"".join(map(number, ns))


def steps_between(items: list[int]) -> list[int]:
    return [n - before for before, n in pairwise([0, *items])]


@dataclass
class PackedDecompositions:
    gaps: bytes
    second_indices: bytes
    first_steps: bytes
    seconds: bytes
    n_seconds: int


def pack_decompositions(found: Nfc) -> PackedDecompositions:
    def second_of(c: int) -> int:
        """A single code point has second half 0."""
        step = found.steps[c]
        never_composes = len(step) == 1 or c in found.excluded
        return 2 * (step[1] if len(step) == 2 else 0) + never_composes

    code_points = sorted(found.steps)
    firsts = [found.steps[c][0] for c in code_points]
    seconds = sorted({second_of(c) for c in code_points})
    return PackedDecompositions(
        gaps=numbers(steps_between(code_points)),
        second_indices=bytes(seconds.index(second_of(c)) for c in code_points),
        first_steps=numbers(2 * d if d >= 0 else -2 * d - 1 for d in steps_between(firsts)),
        seconds=numbers(steps_between(seconds)),
        n_seconds=len(seconds),
    )


# ---------------------------------------------------------------- rendering


def rows(items: Iterable[str], width: int = 110) -> str:
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


def array(name: str, data: bytes) -> str:
    return f"/* {len(data)} bytes */\nstatic const uint8_t {name}[] = {{\n{rows(map(str, data))}\n}};"


def fnv1a(data: bytes) -> int:
    hash_value = 0xCBF29CE484222325
    for byte in data:
        hash_value = (hash_value ^ byte) * 0x100000001B3 % 2**64
    return hash_value


def version_of(belongs: Callable[[int], bool], newest_first: dict[int, str]) -> str:
    """The Unicode version of a table, told by the newest code point in it. A new one has to be looked up by hand."""
    return next((version for c, version in newest_first.items() if belongs(c)), "unknown")


def versions(values: list[int], found: Nfc) -> list[str]:
    known = {0x16FF4: "17.0", 0x16D70: "16.0", 0x1E4F0: "15.0"}
    classes = version_of(lambda c: values[c] & CLASS_MASK == NUMBER, known)
    digits = version_of(lambda c: values[c] & CLASS_MASK in (NUMBER, LATE_NUMBER), known)
    marks = version_of(lambda c: c in found.ranks, {0x1ABF: "13.0", 0x9FE: "11.0", 0x1DF6: "10.0", 0x1E944: "9.0"})
    return [classes, digits, marks]


def render() -> str:
    found = probe_nfc()
    values = values_of_all(found)
    blocks = [values[start : start + BLOCK] for start in range(0, END, BLOCK)]
    uniform = {block[0] for block in blocks if len(set(block)) == 1}
    n_blocks = len(uniform) + sum(len(set(block)) > 1 for block in blocks)
    must(n_blocks <= 256, "a block number fits a byte")
    packed = pack_decompositions(found)
    n_pairs = sum(1 for c in found.steps if len(found.steps[c]) == 2 and c not in found.excluded)
    classes, digits, marks = versions(values, found)
    return f"""\
/* unicode_tables.h - generated by tools/make_unicode_tables.py, which also explains the packing; do not edit.
 * Asked of tokenizers {tokenizers.__version__}: letters, numbers, marks and blanks are those of Unicode {classes},
 * the Digits pre-tokenizer's numbers those of {digits}, NFC that of {marks}. Included by unicode.c alone. */
#ifndef ML_TEXT_UNICODE_TABLES_H
#define ML_TEXT_UNICODE_TABLES_H

#include <stdint.h>

enum {{
  N_BLOCKS = {n_blocks}, /* of {BLOCK} code points; those that are all of one value are kept once */
  N_DECOMPOSITIONS = {len(found.steps)},
  N_COMPOSITIONS = {n_pairs},
  N_SECONDS = {packed.n_seconds}
}};

/* clang-format off */

/* The value of every code point in order has the 64-bit FNV-1a hash 0x{fnv1a(bytes(values)):016x}. */
{array("packed_runs", pack_runs(values))}

{array("packed_gaps", packed.gaps)}

{array("second_indices", packed.second_indices)}

{array("packed_first_steps", packed.first_steps)}

{array("packed_seconds", packed.seconds)}

/* clang-format on */

#endif
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes src/text/unicode_tables.h.")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    options = parser.parse_args()
    text = render()
    if not options.check:
        OUTPUT.write_text(text)
    elif OUTPUT.read_text() != text:
        sys.exit(f"{OUTPUT.name} is not what the installed tokenizers {tokenizers.__version__} gives")


if __name__ == "__main__":
    main()
