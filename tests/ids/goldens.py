#!/usr/bin/env python3
"""Stored results of the tokenizers library: strings with their ids, for many tokenizers in one xz-compressed JSON file.

    python3 tests/ids/goldens.py tiny-gemma     prints one

Two files in tests/golden/ids: tiny.ids.xz of the tokenizers of synthetic.py, whose .mlt files lie beside it, and
published.ids.xz of those that tools/tokenizer_sources.py fetches. A file is an object of tokenizers by name:

    {"made_by": "tokenizers 0.23.3", "source": "...", "mlt_sha256": "...",
     "texts": [...], "ids": [...], "plain": [...], "decoded": [...]}

ids: added tokens become ids. plain: added tokens are text; null if that is the same. decoded: of ids, added tokens
included; null if that is the text again. One column after the other, since the texts are mostly the same.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "ids"
TINY = GOLDEN / "tiny.ids.xz"
PUBLISHED = GOLDEN / "published.ids.xz"


@dataclass(frozen=True)
class Row:
    text: str
    ids: list[int]
    plain: list[int]
    decoded: str


@dataclass(frozen=True)
class Golden:
    """One tokenizer. `mlt_sha256` is of the .mlt that was current when it was made."""

    made_by: str
    source: str
    mlt_sha256: str
    rows: list[Row]


def write_goldens(path: Path, goldens: dict[str, Golden]) -> None:
    document = {}
    for name, golden in goldens.items():
        document[name] = {
            "made_by": golden.made_by,
            "source": golden.source,
            "mlt_sha256": golden.mlt_sha256,
            "texts": [row.text for row in golden.rows],
            "ids": [row.ids for row in golden.rows],
            "plain": [None if row.plain == row.ids else row.plain for row in golden.rows],
            "decoded": [None if row.decoded == row.text else row.decoded for row in golden.rows],
        }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_goldens(path: Path) -> dict[str, Golden]:
    """By name; none if there is no such file."""
    if not path.exists():
        return {}
    goldens = {}
    for name, entry in json.loads(lzma.decompress(path.read_bytes())).items():
        columns = zip(*(entry.pop(column) for column in ("texts", "ids", "plain", "decoded")), strict=True)
        rows = [
            Row(text, ids, ids if plain is None else plain, text if decoded is None else decoded)
            for text, ids, plain, decoded in columns
        ]
        goldens[name] = Golden(**entry, rows=rows)
    return goldens


def main() -> int:
    goldens = read_goldens(TINY) | read_goldens(PUBLISHED)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", choices=goldens, help=f"of {', '.join(goldens)}")
    golden = goldens[parser.parse_args().name]
    print(golden.made_by, golden.source, golden.mlt_sha256, sep="\n")
    for row in golden.rows:
        print(ascii(row.text), *row.ids)
    return 0


if __name__ == "__main__":
    sys.exit(main())
