"""The smallest tokenizer.json documents of both kinds, as objects that a test may change."""

from __future__ import annotations

import copy
from typing import Any

from tokenizer_parts import FROM_BYTES, LLAMA3, PREPEND_MARK, SPACE_TO_MARK, STRIP_ONE
from tokenizer_vocab import BYTE_OF_CHARACTER

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
ALPHABET = sorted(BYTE_OF_CHARACTER, key=BYTE_OF_CHARACTER.__getitem__)


def entry(id_: int, content: str, **options: Any) -> dict[str, Any]:
    """One of added_tokens."""
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id_, "content": content, "special": True} | plain | options


def split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def template(*tokens: str, ids: dict[str, list[int]], after: str | None = None) -> dict[str, Any]:
    items = [{"SpecialToken": {"id": token, "type_id": 0}} for token in tokens]
    items.append({"Sequence": {"id": "A", "type_id": 0}})
    items += [{"SpecialToken": {"id": after, "type_id": 0}}] if after else []
    specials = {token: {"id": token, "ids": list_, "tokens": [token]} for token, list_ in ids.items()}
    return {"type": "TemplateProcessing", "single": items, "pair": [], "special_tokens": specials}


def _document(model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    options = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    model = {"type": "BPE", **options, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False} | model
    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    document = empty | {"pre_tokenizer": None, "post_processor": None, "decoder": None} | parts | {"model": model}
    return copy.deepcopy(document)


def byte_level() -> dict[str, Any]:
    """256 bytes, "ab" 256, "abc" 257, " a" 258, and the added token <s> 259; the pattern of Llama 3."""
    vocab = {piece: id_ for id_, piece in enumerate([*ALPHABET, "ab", "abc", "Ġa"])}
    return _document(
        {"vocab": vocab, "merges": [["a", "b"], ["ab", "c"], ["Ġ", "a"]]},
        added_tokens=[entry(259, "<s>")],
        pre_tokenizer=sequence(split(LLAMA3), BYTE_LEVEL),
        decoder=BYTE_LEVEL,
    )


def sentencepiece() -> dict[str, Any]:
    """<unk> 0, <s> 1, 256 bytes from 2, then a b ▁ ab ▁a; with the legacy prefix of Llama 2."""
    pieces = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "b", "▁", "ab", "▁a"]
    return _document(
        {
            "vocab": {piece: id_ for id_, piece in enumerate(pieces)},
            "merges": [["a", "b"], ["▁", "a"]],
            "byte_fallback": True,
            "unk_token": "<unk>",
        },
        added_tokens=[entry(0, "<unk>"), entry(1, "<s>")],
        normalizer={"type": "Sequence", "normalizers": [PREPEND_MARK, SPACE_TO_MARK]},
        decoder={"type": "Sequence", "decoders": [*FROM_BYTES, STRIP_ONE]},
    )
