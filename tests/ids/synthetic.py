r"""Small tokenizers for every flag of the format, so that the comparison needs no network.

Two vocabularies, trained once by `renew_goldens.py train` on sample_texts.py, lie in tests/golden/ids; the variants
below put the steps of a published family around one of them. `document(name)` is a tokenizer.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizer_parts import FROM_BYTES, GPT2, LLAMA3, PREPEND_MARK, QWEN2, QWEN35, SPACE_TO_MARK, STRIP_ONE

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "ids"

# Neighbours that begin, end and contain each other, with the shorter one first and last; spaces, marks, line ends;
# text that ordinary pieces spell too; a character of several bytes.
ADDED = ["<|x|>", "<x", "<xy>", "<|end|>", "<|end", "a b", "\n\n", "  ", "</s>", "the", "中|", "▁▁", "<tool>", "|>"]
NOT_SPECIAL = {"<tool>", "\n\n", "  ", "the"}

# Strings that tell variants apart which the corpus may miss: a word that no merge rule reaches.
EXTRA_TEXTS = [" unreachable", "unreachable", " unreachables", "x unreachable unreachable\n"]

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = BYTE_LEVEL | {"use_regex": False}
DIGITS = {"type": "Digits", "individual_digits": True}
NFC = {"type": "NFC"}


def _split(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, NO_REGEX]}


def _metaspace(scheme: str) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}


def _decoder(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(steps)}


def _bos(token: str) -> dict[str, Any]:
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [None], "tokens": [token]}},  # the id is filled in below
    }


_LEGACY = {"type": "Sequence", "normalizers": [PREPEND_MARK, SPACE_TO_MARK]}

# name -> vocabulary, and the parts that differ from nothing at all
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny-llama3": ("byte-level", {"pre_tokenizer": _split(LLAMA3), "ignore_merges": True, "bos": True}),
    "tiny-llama3-merging": ("byte-level", {"pre_tokenizer": _split(LLAMA3)}),
    "tiny-qwen2": ("byte-level", {"pre_tokenizer": _split(QWEN2), "normalizer": NFC}),
    "tiny-qwen35": ("byte-level", {"pre_tokenizer": _split(QWEN35), "normalizer": NFC}),
    "tiny-gpt2": ("byte-level", {"pre_tokenizer": BYTE_LEVEL}),
    "tiny-gpt2-nfc": ("byte-level", {"pre_tokenizer": _split(GPT2), "normalizer": NFC, "ignore_merges": True}),
    "tiny-smollm2": (
        "byte-level",
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [DIGITS, BYTE_LEVEL]}},
    ),
    "tiny-digits": (
        "byte-level",
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [DIGITS, *_split(LLAMA3)["pretokenizers"]]}},
    ),
    "tiny-llama2": ("sentencepiece", {"normalizer": _LEGACY, "decoder": _decoder(*FROM_BYTES, STRIP_ONE), "bos": True}),
    "tiny-metaspace": (
        "sentencepiece",
        {"pre_tokenizer": _metaspace("first"), "decoder": _decoder(*FROM_BYTES, STRIP_ONE), "bos": True},
    ),
    "tiny-gemma": ("sentencepiece", {"normalizer": SPACE_TO_MARK, "decoder": _decoder(*FROM_BYTES)}),
    "tiny-no-bytes": (
        "sentencepiece",
        {
            "pre_tokenizer": _metaspace("never"),
            "decoder": _decoder(*FROM_BYTES),
            "byte_fallback": False,
            "byte_pieces": 0,
        },
    ),
    "tiny-some-bytes": (
        "sentencepiece",
        {"pre_tokenizer": _metaspace("first"), "decoder": _decoder(*FROM_BYTES, STRIP_ONE), "byte_pieces": 0xE3},
    ),
}


def base(name: str) -> dict[str, Any]:
    """ "vocab" and "merges" of a trained vocabulary."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def document(name: str) -> dict[str, Any]:
    """A whole tokenizer.json of one variant."""
    base_name, parts = VARIANTS[name]
    parts = dict(parts)
    trained = base(base_name)
    vocab, merges = trained["vocab"], trained["merges"]
    if (kept := parts.pop("byte_pieces", None)) is not None:
        vocab = _with_byte_pieces(vocab, kept)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": parts.pop("byte_fallback", base_name == "sentencepiece"),
        "ignore_merges": parts.pop("ignore_merges", False),
        "vocab": vocab,
        "merges": merges,
    }
    added = _added_tokens(vocab)
    bos = parts.pop("bos", False)
    result = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
    result |= {"pre_tokenizer": None, "post_processor": None, "decoder": BYTE_LEVEL} | parts | {"model": model}
    if bos:
        result["post_processor"] = _bos(ADDED[0])
        result["post_processor"]["special_tokens"][ADDED[0]]["ids"] = [added[0]["id"]]
    return result


def _with_byte_pieces(vocab: dict[str, int], count: int) -> dict[str, int]:
    """The vocabulary with the first `count` byte pieces only, numbered anew. No merge rule uses them."""
    pieces = sorted(vocab, key=vocab.__getitem__)
    kept = [piece for piece in pieces if not piece.startswith("<0x") or int(piece[3:5], 16) < count]
    return {piece: id_ for id_, piece in enumerate(kept)}


def _added_tokens(vocab: dict[str, int]) -> list[dict[str, Any]]:
    """Pieces of the vocabulary keep their ids, the others follow it."""
    entries = []
    next_id = len(vocab)
    for content in ADDED:
        id_ = vocab.get(content, next_id)
        next_id += id_ == next_id
        options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        entries.append({"id": id_, "content": content, **options, "special": content not in NOT_SPECIAL})
    return entries
