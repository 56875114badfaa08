#!/usr/bin/env python3
"""Compares ml_tokenizer and ml_decoder with the tokenizers library, id by id, on published tokenizers.

    build/venv-hf/bin/python tests/ids/compare.py                 all that tools/tokenizer_sources.py has fetched
    build/venv-hf/bin/python tests/ids/compare.py qwen3 --seed 2
    build/venv-hf/bin/python tests/ids/compare.py --reference     the slow encoder in place of src/text, fewer strings

Encoding with added tokens, encoding them as plain text (the library then gets a tokenizer.json without them), and
decoding: all of what was encoded and random ids, with pieces that must be whole characters and add up. Differences are
cut down to the shortest string that still differs. Exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import mlt  # noqa: E402
import tokenizer_sources  # noqa: E402
from corpus import added_corpus, base_corpus, vocabulary_corpus  # noqa: E402
from driver import DECODE, ENCODE, ENCODE_PLAIN, Driver, Failure  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

SHOWN = 5  # differences that are cut down and shown
RANDOM_SEQUENCES = 30000
Named = tuple[str, str]  # generator and string
Encoder = Callable[[list[str]], list]


@dataclass
class Result:
    """One comparison: how many were compared, and the first that differ."""

    what: str
    compared: int = 0
    different: int = 0
    by_generator: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        line = f"{self.what:<14}{self.compared:>9} compared {self.different:>7} different"
        if self.by_generator:
            line += "  " + ", ".join(f"{name} {count}" for name, count in self.by_generator.most_common())
        return "\n".join([line, *self.shown])


class Library:
    """The tokenizers library on one tokenizer.json."""

    def __init__(self, document: dict[str, Any]) -> None:
        document = document | {"truncation": None, "padding": None}
        self.whole = Tokenizer.from_str(json.dumps(document))
        self.added = [token["content"] for token in document["added_tokens"]]
        document["added_tokens"] = []
        self.without_added = Tokenizer.from_str(json.dumps(document))

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [e.ids for e in self.whole.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_plain(self, texts: list[str]) -> list[list[int]]:
        return [e.ids for e in self.without_added.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, sequences: list[list[int]]) -> list[str]:
        return self.whole.decode_batch(sequences, skip_special_tokens=False)


# ---------------------------------------------------------------- encoding


def compare_encoding(
    what: str, texts: Sequence[Named], ours: Encoder, theirs: Encoder, right: list | None = None
) -> Result:
    """`ours` and `theirs` give a list of ids for each string; `right`: those of theirs, if they are known."""
    result = Result(what)
    strings = [text for _, text in texts]
    right = theirs(strings) if right is None else right
    for (generator, text), a, b in zip(texts, ours(strings), right, strict=True):
        result.compared += 1
        if a != b:
            result.different += 1
            result.by_generator[generator] += 1
            if len(result.shown) < SHOWN:
                result.shown.append(_shown_encoding(text, ours, theirs))
    return result


def _shown_encoding(text: str, ours: Encoder, theirs: Encoder) -> str:
    text = shortest_difference(text, ours, theirs)
    points = " ".join(f"{ord(c):04X}" for c in text[:24])
    return f"    {ascii(text)} ({points})\n      ours   {ours([text])[0]}\n      theirs {theirs([text])[0]}"


def shortest_difference(text: str, ours: Encoder, theirs: Encoder) -> str:
    """Takes away halves, quarters, ... and single characters as long as the rest still differs."""
    size = max(1, len(text) // 2)
    while True:
        shorter = [text[:at] + text[at + size :] for at in range(0, len(text), size)]
        for candidate, a, b in zip(shorter, ours(shorter), theirs(shorter), strict=True):
            if a != b:
                text = candidate
                break
        else:
            if size == 1:
                return text
            size //= 2


# ---------------------------------------------------------------- decoding


def random_sequences(tokenizer: mlt.Tokenizer, seed: int, count: int) -> list[list[int]]:
    """Ids at random, and in kind 1 many byte tokens, which make up characters only now and then."""
    random_ = random.Random(f"{seed} sequences")
    ids = [id_ for id_, token in enumerate(tokenizer.tokens) if token.data]
    bytes_ = [id_ for id_ in ids if tokenizer.tokens[id_].attr == mlt.ATTR_BYTE]
    bytes_ = bytes_ or [id_ for id_ in ids if len(tokenizer.tokens[id_].data) == 1]
    spaces = [id_ for id_ in ids if tokenizer.tokens[id_].data.startswith((b" ", "▁".encode()))][:50]
    added = [id_ for id_ in ids if tokenizer.tokens[id_].added][:50] or ids
    high = [id_ for id_ in bytes_ if tokenizer.tokens[id_].data[0] >= 0x80] or ids
    pools = [ids, ids, bytes_, high, spaces or ids, added]
    sequences = []
    for _ in range(count):
        length = random_.randrange(1, 14)
        sequences.append([random_.choice(random_.choice(pools)) for _ in range(length)])
    return sequences


def compare_decoding(what: str, sequences: list[list[int]], driver: Driver, right: list[str]) -> Result:
    """Pieces put together must be `right`, and each must be text by itself."""
    result = Result(what)
    for ids, pieces, text in zip(sequences, driver.decode(DECODE, sequences), right, strict=True):
        result.compared += 1
        problem = _decoding_problem(pieces, text)
        if problem:
            result.different += 1
            if len(result.shown) < SHOWN:
                result.shown.append(f"    {ids}\n      {problem}\n      theirs {ascii(text)}")
    return result


def _decoding_problem(pieces: list[bytes] | Failure, text: str) -> str | None:
    if isinstance(pieces, Failure):
        return f"ours   {pieces}"
    for piece in pieces:
        try:
            piece.decode()
        except UnicodeDecodeError:
            return f"ours   the piece {piece!r} is not whole characters"
    whole = b"".join(pieces).decode()
    return None if whole == text else f"ours   {ascii(whole)}"


# ---------------------------------------------------------------- whole tokenizers


def corpus_of(tokenizer: mlt.Tokenizer, added: list[str], seed: int, most_pieces: int | None = None) -> list[Named]:
    """Every string once. `most_pieces`: of the vocabulary, chosen by the seed; None: all."""
    pieces = [token.data for token in tokenizer.tokens if token.attr != mlt.ATTR_BYTE]
    if most_pieces is not None and most_pieces < len(pieces):
        pieces = random.Random(f"{seed} pieces").sample(pieces, most_pieces)
    named = [*base_corpus(seed), *added_corpus(added, seed), *vocabulary_corpus(pieces, seed)]
    return [(generator, text) for text, generator in {text: generator for generator, text in named}.items()]


def compare_tokenizer(folder: Path, program: Path, seed: int, most_pieces: int | None = None) -> list[Result]:
    """All comparisons of one fetched tokenizer with src/text."""
    driver = Driver(program, folder / "model.mlt")
    tokenizer = mlt.read_tokenizer(driver.mlt)
    library = Library(json.loads((folder / "tokenizer.json").read_text()))
    texts = corpus_of(tokenizer, library.added, seed, most_pieces)
    encoded = library.encode([text for _, text in texts])
    results = [
        compare_encoding("added tokens", texts, lambda t: driver.encode(ENCODE, t), library.encode, encoded),
        compare_encoding("plain text", texts, lambda t: driver.encode(ENCODE_PLAIN, t), library.encode_plain),
    ]
    for what, sequences in (
        ("decode", encoded),
        ("decode random", random_sequences(tokenizer, seed, RANDOM_SEQUENCES)),
    ):
        results.append(compare_decoding(what, sequences, driver, library.decode(sequences)))
    return results


def compare_reference(folder: Path, seed: int, every: int) -> list[Result]:
    """The same with the slow encoder, on every so manieth string."""
    from reference_encoder import ReferenceTokenizer

    reference = ReferenceTokenizer(mlt.read_tokenizer(folder / "model.mlt"))
    library = Library(json.loads((folder / "tokenizer.json").read_text()))
    texts = corpus_of(reference.file, library.added, seed)
    texts = [named for named in texts if len(named[1]) < 200][seed % every :: every]

    def encoder(special: bool) -> Encoder:
        return lambda strings: [reference.encode(text, special=special) for text in strings]

    results = [
        compare_encoding("added tokens", texts, encoder(True), library.encode),
        compare_encoding("plain text", texts, encoder(False), library.encode_plain),
    ]
    sequences = [*library.encode([t for _, t in texts]), *random_sequences(reference.file, seed, RANDOM_SEQUENCES)]
    decoding = Result("decode")
    for ids, right in zip(sequences, library.decode(sequences), strict=True):
        decoding.compared += 1
        if reference.decode(ids) != right:
            decoding.different += 1
            if len(decoding.shown) < SHOWN:
                decoding.shown.append(f"    {ids}\n      ours   {ascii(reference.decode(ids))}\n      {ascii(right)}")
    return [*results, decoding]


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folders = {name: path for name, path in tokenizer_sources.fetched().items() if (path / "tokenizer.json").exists()}
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(folders)}")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--program", type=Path, default=ROOT / "build/native/ids_driver", metavar="FILE")
    parser.add_argument("--reference", action="store_true", help="compare the slow Python encoder instead")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="with --reference: one of N strings")
    options = parser.parse_args(None if arguments is None else list(arguments))
    if unknown := set(options.names) - set(folders):
        parser.error(f"not fetched: {', '.join(sorted(unknown))} (tools/tokenizer_sources.py fetch)")
    different = 0
    for name in options.names or folders:
        start = time.monotonic()
        if options.reference:
            results = compare_reference(folders[name], options.seed, options.every)
        else:
            results = compare_tokenizer(folders[name], options.program, options.seed)
        print(f"{name} ({time.monotonic() - start:.0f} s)")
        print(*(f"  {result}" for result in results), sep="\n", flush=True)
        different += sum(result.different for result in results)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
