"""Stories as token ids: a small byte-level BPE, trained here, and batches of stories of about the same length.

Every story stands alone: START, its tokens, END. A prompt is START and the beginning of a story, so a model is asked
for just what it was trained on; generation ends with END. Needs the tokenizers library (build/venv-hf).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from make_stories import END as BETWEEN

START, END = "<|story|>", "<|end|>"
BOS, EOS = 0, 1
AT_ONCE = 4096  # stories that are encoded together: what the library says of each takes far more room than its ids


def read_stories(path: Path) -> list[str]:
    """The stories of a file that make_stories.py wrote."""
    return path.read_text(encoding="utf-8").rstrip("\n").split(BETWEEN)


def train_tokenizer(stories: list[str], vocab: int) -> Tokenizer:
    """A byte-level BPE of `vocab` tokens with GPT-2's pattern; it prepends START."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{START} $A", special_tokens=[(START, BOS)])
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json, as transformers and convert.py read them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": START, "eos_token": END, "add_bos_token": True, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def encode(tokenizer: Tokenizer, stories: list[str], longest: int) -> list[np.ndarray]:
    """Each story with START and END, uint16; those of more than `longest` ids are left out."""
    parts = (stories[i : i + AT_ONCE] for i in range(0, len(stories), AT_ONCE))
    encoded = (np.array([*e.ids, EOS], dtype=np.uint16) for part in parts for e in tokenizer.encode_batch(part))
    return [ids for ids in encoded if len(ids) <= longest]


def save_tokens(path: Path, parts: dict[str, list[np.ndarray]]) -> None:
    """Encoded stories, by the name of the part that they belong to."""
    arrays: dict[str, np.ndarray] = {}
    for name, stories in parts.items():
        arrays[name] = np.concatenate(stories) if stories else np.zeros(0, np.uint16)
        arrays[f"{name}_lengths"] = np.array([len(ids) for ids in stories], dtype=np.int64)
    np.savez(path, **arrays)


def load_tokens(path: Path) -> list[list[np.ndarray]]:
    """The parts of a file of save_tokens."""
    with np.load(path) as arrays:
        names = [name for name in arrays.files if not name.endswith("_lengths")]
        return [np.split(arrays[name], np.cumsum(arrays[f"{name}_lengths"]))[:-1] for name in names]


def batches(stories: list[np.ndarray], tokens: int, seed: int) -> Iterator[np.ndarray]:
    """Batches without end: rows of stories, filled up with -1, each of about `tokens` ids. The order is the seed's.

    Stories of similar length share a batch, so that little is filled up.
    """
    epoch = 0
    while True:
        rng = random.Random(f"{seed}:batches:{epoch}")
        order = list(range(len(stories)))
        rng.shuffle(order)
        cut: list[list[int]] = []
        for first in range(0, len(order), 2048):
            cut += _cut(sorted(order[first : first + 2048], key=lambda i: len(stories[i])), stories, tokens)
        rng.shuffle(cut)
        for batch in cut:
            yield _filled([stories[i] for i in batch])
        epoch += 1


def in_order(stories: list[np.ndarray], tokens: int) -> Iterator[np.ndarray]:
    """All stories once, for evaluation."""
    order = sorted(range(len(stories)), key=lambda i: len(stories[i]))
    for batch in _cut(order, stories, tokens):
        yield _filled([stories[i] for i in batch])


def _cut(order: list[int], stories: list[np.ndarray], tokens: int) -> list[list[int]]:
    """Consecutive stories in batches of at most `tokens` ids, filling included; order: by length."""
    cut: list[list[int]] = [[]]
    for i in order:
        if cut[-1] and (len(cut[-1]) + 1) * len(stories[i]) > tokens:
            cut.append([])
        cut[-1].append(i)
    return cut


def _filled(rows: list[np.ndarray]) -> np.ndarray:
    filled = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int64)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return filled
