"""From a Hugging Face tokenizer.json to the contents of an .mlt file.

The two kinds of tokenizer that .mlt knows are recognized by what they do, never by a model's name. What the format
cannot say exactly is refused with the name of the part (TokenizerError); what is left out without harm is noted.

    convert_json      the whole document
    tokenizer_parts   normalizer, pre_tokenizer, decoder and post_processor, each checked against what the format means
    tokenizer_vocab   vocabulary, merge rules and added tokens
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mlt
from tokenizer_parts import byte_level_flags, flatten, sentencepiece_flags, template_bos
from tokenizer_vocab import TokenizerError, added_tokens, byte_level_bytes, merge_rules, sentencepiece_bytes

# BPE options that change ids and have no place in the format, with the values that do nothing.
IDLE_MODEL_OPTIONS = {
    "dropout": (None, 0, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}


@dataclass
class SideFacts:
    """What stands outside tokenizer.json; None: not said. Tokens are given by their text."""

    bos: str | None = None
    eos: str | None = None
    add_bos: bool | None = None
    no_bos: bool = False  # there is none, whatever the files say
    no_eos: bool = False


@dataclass
class Conversion:
    """The result, and what a reader of the report should know about it."""

    tokenizer: mlt.Tokenizer
    notes: list[str] = field(default_factory=list)


def convert_json(document: dict[str, Any], side: SideFacts | None = None) -> Conversion:
    """Raises TokenizerError, one line, for a document that is broken or that .mlt cannot express."""
    side = side or SideFacts()
    notes: list[str] = []
    model = _bpe_model(document)
    vocab: dict[str, int] = model["vocab"]
    kind, flags = _kind_and_flags(document, model)
    added = added_tokens(document, vocab, flags, kind, notes)
    merges = merge_rules(model.get("merges"), vocab, notes)
    if kind == mlt.KIND_BYTE_LEVEL:
        data = byte_level_bytes(vocab, set(added), bool(flags & mlt.FLAG_IGNORE_MERGES))
        attrs = {}
    else:
        data, attrs = sentencepiece_bytes(vocab, set(added), model)
    for id_, content in added.items():
        data[id_] = content.encode()
        attrs[id_] = mlt.ATTR_ADDED
    tokens = _in_order(data, attrs, notes)
    tokenizer = mlt.Tokenizer(kind, tokens, merges, flags=flags)
    _set_bos_and_eos(tokenizer, document, side, vocab | {text: id_ for id_, text in added.items()}, notes)
    for name in ("truncation", "padding"):
        if document.get(name):
            notes.append(f"{name} is left out: texts are never cut or filled up")
    return Conversion(tokenizer, notes)


def _bpe_model(document: dict[str, Any]) -> dict[str, Any]:
    """The model section, if it is a BPE whose options the format can express."""
    model = document.get("model")
    if not isinstance(model, dict):
        raise TokenizerError("not a tokenizer.json: it has no model section")
    name = model.get("type") or ("BPE" if "merges" in model else "without a type")
    if name != "BPE":
        raise TokenizerError(f"model {name}: only BPE can be expressed")
    for option, idle in IDLE_MODEL_OPTIONS.items():
        if model.get(option) not in idle:
            raise TokenizerError(f"model.{option} {model[option]!r} cannot be expressed")
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or not vocab:
        raise TokenizerError("model.vocab is missing or empty")
    bad = next((k for k, v in vocab.items() if type(v) is not int or not 0 <= v < mlt.MAX_VOCAB), None)
    if bad is not None:
        raise TokenizerError(f"model.vocab: the id of {bad!r} is {vocab[bad]!r}, not a number below {mlt.MAX_VOCAB}")
    if len(set(vocab.values())) < len(vocab):
        raise TokenizerError("model.vocab: an id belongs to several pieces")
    return model


def _kind_and_flags(document: dict[str, Any], model: dict[str, Any]) -> tuple[int, int]:
    steps = flatten(document.get("pre_tokenizer"), "pretokenizers")
    if any(step.get("type") == "ByteLevel" for step in steps):
        if model.get("byte_fallback"):
            raise TokenizerError("model.byte_fallback with a ByteLevel pre_tokenizer cannot be expressed")
        flags = byte_level_flags(document)
        return mlt.KIND_BYTE_LEVEL, flags | (mlt.FLAG_IGNORE_MERGES if model.get("ignore_merges") else 0)
    if model.get("ignore_merges"):
        raise TokenizerError("model.ignore_merges without a ByteLevel pre_tokenizer cannot be expressed")
    return mlt.KIND_SENTENCEPIECE, sentencepiece_flags(document)


def _in_order(data: dict[int, bytes], attrs: dict[int, int], notes: list[str]) -> list[mlt.Token]:
    """Tokens by id; an id that no token has becomes an empty token, which never matches and decodes to nothing."""
    count = max(data) + 1
    if holes := count - len(data):
        notes.append(f"{holes} ids below {count} have no token: empty tokens stand in their places")
    nothing = mlt.Token(b"")
    return [mlt.Token(data[id_], attrs.get(id_, 0)) if id_ in data else nothing for id_ in range(count)]


def _set_bos_and_eos(
    tokenizer: mlt.Tokenizer, document: dict[str, Any], side: SideFacts, ids: dict[str, int], notes: list[str]
) -> None:
    """bos: what the post_processor prepends, else the named token. Prepended if the settings say so, else if the
    post_processor does."""

    def id_of(name: str, text: str) -> int:
        if text not in ids:
            raise TokenizerError(f"{name} {text!r} is not in the vocabulary")
        return ids[text]

    template = template_bos(document.get("post_processor"))
    if template is not None and not 0 <= template < len(tokenizer.tokens):
        raise TokenizerError(f"post_processor prepends id {template}, which the vocabulary lacks")
    if side.bos is not None:
        tokenizer.bos = id_of("bos_token", side.bos)
        if template not in (None, tokenizer.bos):
            raise TokenizerError(f"post_processor prepends {template}, but bos_token {side.bos!r} is {tokenizer.bos}")
    elif template is not None and not side.no_bos:
        tokenizer.bos = template
    if side.eos is not None:
        tokenizer.eos = id_of("eos_token", side.eos)
    elif not side.no_eos:
        notes.append("no eos_token is known (no tokenizer_config.json beside it?): give it with --eos")
    wanted = template is not None if side.add_bos is None else side.add_bos
    if side.add_bos is not None and side.add_bos != (template is not None):
        does = "prepends BOS" if template is not None else "prepends nothing"
        notes.append(f"add_bos_token {side.add_bos} decides, although the post_processor {does}")
    if wanted and tokenizer.bos < 0:
        if not side.no_bos:
            raise TokenizerError("add_bos_token is true, but no bos_token is named")
        wanted = False
    if wanted:
        tokenizer.flags |= mlt.FLAG_BOS
