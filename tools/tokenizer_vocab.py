"""Vocabulary, merge rules and added tokens on their way into an .mlt file: from the spellings of other formats to ids
and bytes. Used by tokenizer_json.py and tokenizer_gguf.py."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

import mlt

BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
MOST_PIECES_WITHOUT_MERGES = 256  # more than the byte alphabet: the merge list was lost


class TokenizerError(ValueError):
    """A tokenizer that is broken or that .mlt cannot express; one line that names the part."""


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: each byte has a printable character, its own where it is one, else from U+0100 upwards."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(b): b for b in own} | {chr(0x100 + i): b for i, b in enumerate(others)}


BYTE_OF_CHARACTER = _byte_of_character()


# ---------------------------------------------------------------- pieces


def byte_level_bytes(vocab: dict[str, int], added: Collection[int], ignore_merges: bool) -> dict[int, bytes]:
    """Kind 2: the bytes of every piece by id, without those of `added` ids.

    A piece with a character outside GPT-2's alphabet can never be reached by merges and decodes to itself. It is kept
    where it cannot be taken for another piece or for a whole word, and refused elsewhere.
    """
    data: dict[int, bytes] = {}
    strange: dict[str, int] = {}
    for piece, id_ in vocab.items():
        if id_ in added:
            continue
        if all(character in BYTE_OF_CHARACTER for character in piece):
            data[id_] = bytes([BYTE_OF_CHARACTER[character] for character in piece])
        else:
            strange[piece] = id_
    first_of_bytes = {data[id_]: id_ for id_ in sorted(data, reverse=True)}
    for piece, id_ in strange.items():
        data[id_] = piece.encode()
        twin = first_of_bytes.get(data[id_])
        reachable = ignore_merges or len(data[id_]) == 1 if twin is None else twin > id_
        if reachable:
            raise TokenizerError(f"model.vocab: piece {piece!r} (id {id_}) is not spelled in the byte alphabet")
    return data


def sentencepiece_bytes(
    vocab: dict[str, int], added: Collection[int], model: dict[str, Any]
) -> tuple[dict[int, bytes], dict[int, int]]:
    """Kind 1: bytes and attributes of every piece by id, without those of `added` ids."""
    data: dict[int, bytes] = {}
    attrs: dict[int, int] = {}
    bytes_seen = set()
    for piece, id_ in vocab.items():
        byte = BYTE_PIECE.fullmatch(piece)
        if id_ in added:
            if byte:
                raise TokenizerError(f"added token {piece!r} is a byte piece too: cannot be expressed")
            continue
        if byte:
            data[id_] = bytes([int(byte[1], 16)])
            attrs[id_] = mlt.ATTR_BYTE
            bytes_seen.add(data[id_])
        else:
            data[id_] = piece.encode()
    if not model.get("byte_fallback"):
        if bytes_seen:
            raise TokenizerError("model.byte_fallback is off although there are byte pieces: cannot be expressed")
        if model.get("unk_token") is not None:
            raise TokenizerError(f"model.unk_token {model['unk_token']!r} without byte_fallback cannot be expressed")
    elif len(bytes_seen) < 256 and model.get("unk_token") is not None:
        raise TokenizerError(
            f"model.unk_token {model['unk_token']!r} is in use, since {256 - len(bytes_seen)} byte pieces are missing: "
            "cannot be expressed"
        )
    return data, attrs


# ---------------------------------------------------------------- merge rules


def merge_rules(merges: Any, vocab: dict[str, int], notes: list[str]) -> np.ndarray:
    """(n, 3) ids of left, right and merged piece in rank order; both spellings of a rule are understood."""
    if not isinstance(merges, list):
        raise TokenizerError("model.merges is missing")
    pairs = [_pair(rule, rank) for rank, rule in enumerate(merges)]
    return merge_ids(pairs, vocab, notes)


def _pair(rule: Any, rank: int) -> tuple[str, str]:
    """ "a b" or ["a", "b"]."""
    parts = rule.split(" ") if isinstance(rule, str) else rule
    if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise TokenizerError(f"model.merges: rule {rank} is {rule!r}, not two pieces")
    return parts[0], parts[1]


def merge_ids(pairs: list[tuple[str, str]], vocab: dict[str, int], notes: list[str]) -> np.ndarray:
    """As merge_rules, of pairs. Of a pair that is listed twice the last counts, as in the tokenizers library."""
    if not pairs and len(vocab) > MOST_PIECES_WITHOUT_MERGES:
        raise TokenizerError(f"model.merges is empty although there are {len(vocab)} pieces")
    rules: dict[tuple[int, int], int] = {}
    for rank, (left, right) in enumerate(pairs):
        try:
            key, merged = (vocab[left], vocab[right]), vocab[left + right]
        except KeyError as error:
            raise TokenizerError(f"model.merges: rule {rank} needs {error.args[0]!r}, not in the vocabulary") from None
        rules.pop(key, None)
        rules[key] = merged
    if len(rules) < len(pairs):
        notes.append(f"{len(pairs) - len(rules)} merge rules are given twice: the later ones count")
    if not rules:
        return np.empty((0, 3), dtype="<u4")
    return np.array([(*key, merged) for key, merged in rules.items()], dtype="<u4")


# ---------------------------------------------------------------- added tokens


def added_tokens(
    document: dict[str, Any], vocab: dict[str, int], flags: int, kind: int, notes: list[str]
) -> dict[int, str]:
    """Added tokens, text by id. Raises TokenizerError for options and ids that cannot be expressed."""
    entries = document.get("added_tokens") or []
    texts: dict[int, str] = {}
    ids: dict[str, int] = {}
    next_id = len(vocab)
    for entry in entries:
        text, id_ = entry.get("content"), entry.get("id")
        if not isinstance(text, str) or type(id_) is not int:
            raise TokenizerError(f"added_tokens: {entry} lacks content or id")
        for option in ("single_word", "lstrip", "rstrip"):
            if entry.get(option):
                raise TokenizerError(f"added token {text!r} has {option}, which cannot be expressed")
        # The tokenizers library does not take the id of the file, but gives the piece's own or the next free one.
        given = ids.get(text, vocab.get(text, next_id))
        if id_ != given:
            raise TokenizerError(f"added token {text!r} has id {id_}, but the tokenizers library gives it {given}")
        next_id = max(next_id, id_ + 1)
        texts[id_], ids[text] = text, id_
    normalized = {entry["content"] for entry in entries if entry.get("normalized")}
    _check_normalized(document, normalized, set(ids) - normalized, flags, kind, notes)
    if kind == mlt.KIND_BYTE_LEVEL:
        _note_misspelled(ids, notes)
    return texts


def _check_normalized(
    document: dict[str, Any], normalized: set[str], literal: set[str], flags: int, kind: int, notes: list[str]
) -> None:
    """Added tokens with `normalized` are looked for in the normalized text, after the others; .mlt looks for all in the
    text as it is. Lets pass what comes to the same."""
    if not normalized:
        return
    for text in sorted(normalized):
        if kind == mlt.KIND_BYTE_LEVEL:
            same = not flags & mlt.FLAG_NFC or text.isascii()
        else:  # Metaspace works after added tokens were found; a normalizer that prepends gets between them
            metaspace = document.get("normalizer") is None
            same = metaspace or (bool(flags & mlt.FLAG_NO_PREFIX) and not set(text) & set(" ▁"))
        overlapping = next((other for other in sorted(literal) if _can_overlap(text, other)), None)
        if not same or overlapping is not None:
            why = f"and may overlap with {overlapping!r}" if overlapping is not None else "and the normalizer matters"
            raise TokenizerError(f"added token {text!r} has normalized, {why}: cannot be expressed")
    if kind == mlt.KIND_BYTE_LEVEL and flags & mlt.FLAG_NFC:
        notes.append("added tokens with normalized are found even where a combining mark follows them")


def _can_overlap(a: str, b: str) -> bool:
    """Whether some text holds both with a character in common."""
    if a in b or b in a:
        return True
    return any(a.endswith(b[:n]) or b.endswith(a[:n]) for n in range(1, min(len(a), len(b))))


def _note_misspelled(texts: Iterable[str], notes: list[str]) -> None:
    """The library's ByteLevel decoder reads added tokens in GPT-2's alphabet when it can."""
    for text in texts:
        if not text.isascii() and all(character in BYTE_OF_CHARACTER for character in text):
            shown = bytes([BYTE_OF_CHARACTER[c] for c in text]).decode("utf-8", "replace")
            notes.append(f"added token {text!r} decodes to itself; the tokenizers library gives {shown!r}")
