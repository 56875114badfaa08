"""The character tables of src/text are what the installed tokenizers library answers for every code point."""

import re

import pytest

pytest.importorskip("tokenizers", reason="the tokenizers library is not installed (build/venv-hf)")

import make_unicode_tables as tables


def test_the_committed_tables_are_the_librarys() -> None:
    assert tables.OUTPUT.read_text() == tables.render(), "run tools/make_unicode_tables.py and look at the difference"


def values_in(text: str) -> list[int]:
    """The value of every code point, unpacked from the C file by the rules at the head of the tool."""
    packed = re.search(r"packed_runs\[\] = \{(.*?)\}", text, re.DOTALL)
    assert packed
    data = iter(int(byte) for byte in re.findall(r"\d+", packed[1]))
    values: list[int] = []
    for head in data:
        extra = max((head & 63) - 59, 0)
        length = int.from_bytes([next(data) for _ in range(extra)], "little") if extra else (head & 63) + 1
        value = head >> 6
        values += [next(data) if value == 3 else value] * length
    return values


def test_some_values_by_hand() -> None:
    """What the library answers has to be put in the right place: a few code points that are known otherwise."""
    values = values_in(tables.OUTPUT.read_text())
    assert len(values) == tables.END
    known = {
        0x1C: tables.OTHER,
        0x61: tables.LETTER,
        0x85: tables.BLANK,
        0x345: max(values),  # class 240, the highest
        0x1161: tables.LETTER | tables.JOINS,
        0x2167: tables.NUMBER,
        0x212B: tables.LETTER | tables.CHANGES,
        0x11DE0: tables.LATE_NUMBER,
        0x1F999: tables.OTHER,
    }
    assert {c: values[c] for c in known} == known
