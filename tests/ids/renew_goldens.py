#!/usr/bin/env python3
"""Makes the files of tests/golden/ids anew, with the tokenizers library.

    build/venv-hf/bin/python tests/ids/renew_goldens.py           ids and .mlt files of everything
    build/venv-hf/bin/python tests/ids/renew_goldens.py tiny-gemma qwen3
    build/venv-hf/bin/python tests/ids/renew_goldens.py train     the vocabularies of the tiny ones first (seldom)

Published tokenizers that are not fetched (tools/tokenizer_sources.py) keep their old file. Look at the difference
before committing: a changed id must have a reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import mlt  # noqa: E402
import synthetic  # noqa: E402
import tokenizer_sources  # noqa: E402
import tokenizers  # noqa: E402
from compare import Library  # noqa: E402
from corpus import added_corpus, base_corpus, vocabulary_corpus  # noqa: E402
from goldens import GOLDEN, PUBLISHED, TINY, Golden, Row, read_goldens, write_goldens  # noqa: E402
from sample_texts import CODE, LANGUAGES  # noqa: E402
from tokenizer_json import SideFacts, convert_json  # noqa: E402
from tokenizer_parts import LLAMA3  # noqa: E402
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers  # noqa: E402

STRINGS = 2600  # of the base corpus in each file
LONGEST = 60  # characters
BYTE_LEVEL_PIECES = 720
SENTENCEPIECE_PIECES = 900

# A whole word that no merge rule reaches: seen only with ignore_merges.
UNREACHABLE = "Ġunreachable"


# ---------------------------------------------------------------- training


def training_texts() -> list[str]:
    numbers = random.Random("numbers")
    digits = [str(numbers.randrange(10 ** numbers.randrange(1, 6))) for _ in range(400)]
    return [*LANGUAGES, *CODE, " ".join(digits), "I'll don't we're I've I'm he'd it's " * 20, "    \n\n\t\t  \r\n" * 20]


def train_byte_level() -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=BYTE_LEVEL_PIECES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(training_texts(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab = model["vocab"]
    vocab[UNREACHABLE] = len(vocab)
    return {"vocab": vocab, "merges": model["merges"]}


def train_sentencepiece() -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE())
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=SENTENCEPIECE_PIECES,
        special_tokens=["<s>", "</s>", *bytes_],
        limit_alphabet=300,
        show_progress=False,
    )
    words = [
        word for text in training_texts() for word in ("▁" + text.replace(" ", "▁")).replace("▁", "\0▁").split("\0")
    ]
    tokenizer.train_from_iterator([*words, "▁▁▁▁▁▁▁▁"], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": model["merges"]}


def train() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, trained in (("byte-level", train_byte_level()), ("sentencepiece", train_sentencepiece())):
        text = json.dumps(trained, ensure_ascii=False, separators=(",", ":"))
        (GOLDEN / f"{name}.json").write_text(text + "\n")


# ---------------------------------------------------------------- ids


def chosen_strings(added: list[str], pieces: list[bytes]) -> list[str]:
    """Some short strings of each generator."""
    random_ = random.Random("goldens")
    by_generator: dict[str, list[str]] = {}
    for name, text in base_corpus():
        if len(text) <= LONGEST:
            by_generator.setdefault(name, []).append(text)
    share = STRINGS // len(by_generator)
    texts = [text for strings in by_generator.values() for text in random_.sample(strings, min(share, len(strings)))]
    for corpus, count in ((added_corpus(added), 400), (vocabulary_corpus(pieces), 400)):
        strings = [text for _, text in corpus if len(text) <= LONGEST]
        texts += random_.sample(strings, min(count, len(strings)))
    return list(dict.fromkeys([*texts, *synthetic.EXTRA_TEXTS]))


def golden_of(source: str, tokenizer: mlt.Tokenizer, library: Library) -> Golden:
    pieces = [token.data for token in tokenizer.tokens if token.attr != mlt.ATTR_BYTE]
    texts = chosen_strings(library.added, pieces)
    ids = library.encode(texts)
    rows = map(Row, texts, ids, library.encode_plain(texts), library.decode(ids))
    sha256 = hashlib.sha256(tokenizer.pack()).hexdigest()
    return Golden(f"tokenizers {tokenizers.__version__}", source, sha256, list(rows))


def renew_tiny(name: str) -> Golden:
    document = synthetic.document(name)
    tokenizer = convert_json(document, SideFacts(no_eos=True)).tokenizer
    mlt.write_tokenizer(GOLDEN / f"{name}.mlt", tokenizer)
    return golden_of("tests/ids/synthetic.py", tokenizer, Library(document))


def renew_published(source: tokenizer_sources.Source, folder: Path) -> Golden:
    packages = ", ".join(f"{package.name} {package.version}" for package in source.packages) or source.model
    document = json.loads((folder / "tokenizer.json").read_text())
    return golden_of(packages, mlt.read_tokenizer(folder / "model.mlt"), Library(document))


def write(path: Path, names: Iterable[str], renewed: dict[str, Golden]) -> None:
    """Keeps what is not renewed, in the order of `names`."""
    goldens = read_goldens(path) | renewed
    write_goldens(path, {name: goldens[name] for name in names if name in goldens})
    strings = sum(len(golden.rows) for golden in goldens.values())
    print(f"{path.relative_to(ROOT)}: {len(renewed)} renewed, {strings} strings, {path.stat().st_size} bytes")


def main() -> int:
    published = {source.name: source for source in tokenizer_sources.SOURCES}
    names = [*synthetic.VARIANTS, *published]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"train, or of {', '.join(names)}")
    options = parser.parse_args()
    if unknown := set(options.names) - {"train", *names}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if "train" in options.names:
        train()
    wanted = set(options.names) - {"train"} or set(names)
    write(TINY, synthetic.VARIANTS, {name: renew_tiny(name) for name in synthetic.VARIANTS if name in wanted})
    fetched = tokenizer_sources.fetched()
    for name in sorted((wanted & set(published)) - set(fetched)):
        print(f"skipped {name}: not fetched")
    ready = [name for name in published if name in wanted and name in fetched]
    write(PUBLISHED, published, {name: renew_published(published[name], fetched[name]) for name in ready})
    return 0


if __name__ == "__main__":
    sys.exit(main())
