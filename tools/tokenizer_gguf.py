"""From the metadata of a GGUF file to the contents of an .mlt file.

GGUF names the pre-tokenizer instead of describing it, and gives scores where tokenizer.json gives merge rules. Names
that are not known to mean one of the format's patterns are refused. What comes out is meant to be, byte for byte, what
the same model's tokenizer.json gives; ids that only fill the vocabulary up ("[PAD...]") are left out at the end and
are empty tokens elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mlt
from checkpoint_errors import CheckpointError
from gguf_reader import Metadata, open_gguf
from tokenizer_json import Conversion, SideFacts
from tokenizer_vocab import BYTE_PIECE, TokenizerError, byte_level_bytes, merge_ids

# tokenizer.ggml.pre -> flags of the family's own tokenizer.json (llama.cpp leaves NFC out; the models were trained
# with it).
_QWEN2 = mlt.FLAG_NFC | mlt.FLAG_ONE_DIGIT
_LLAMA3 = mlt.FLAG_IGNORE_MERGES
PRE_TOKENIZERS = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "qwen35": _QWEN2 | mlt.FLAG_MARKS,
    "gpt-2": mlt.FLAG_GPT2,
    "smollm": mlt.FLAG_GPT2 | mlt.FLAG_SPLIT_DIGITS,
}
BOS_BY_DEFAULT = ("llama-bpe", "llama3", "llama-v3")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # tokenizer.ggml.token_type
ADDED_TYPES = (UNKNOWN, CONTROL, USER_DEFINED)


@dataclass
class TokenizerFields:
    """The tokenizer.ggml.* fields; lists have one entry for each id."""

    model: str
    pre: str | None
    architecture: str
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    merges: list[str] | None
    bos: int | None
    eos: int | None
    add_bos: bool | None
    add_space_prefix: bool


def convert_gguf(path: Path, side: SideFacts | None = None) -> Conversion:
    """Raises TokenizerError for metadata that is broken or that .mlt cannot express, OSError for the disk."""
    try:
        metadata = open_gguf(path).metadata
    except CheckpointError as error:
        raise TokenizerError(str(error).removeprefix(f"{path}: ")) from None
    return convert_fields(read_metadata(metadata), side or SideFacts())


def read_metadata(metadata: Metadata) -> TokenizerFields:
    """The fields of an opened file, each of the type that it must have."""
    ggml = "tokenizer.ggml."
    try:
        if not metadata.texts(ggml + "tokens", []):
            raise TokenizerError("the file has no tokenizer.ggml.tokens")
        for name in ("remove_extra_whitespaces", "add_eos_token"):
            if metadata.flag(ggml + name, False):
                raise TokenizerError(f"{ggml}{name} cannot be expressed")
        if ggml + "precompiled_charsmap" in metadata:
            raise TokenizerError(f"{ggml}precompiled_charsmap cannot be expressed")
        tokens = _decoded(ggml + "tokens", metadata.texts(ggml + "tokens"))
        types = metadata.integers(ggml + "token_type", None)
        scores = metadata.numbers(ggml + "scores", None)
        merges = metadata.texts(ggml + "merges", None)
        return TokenizerFields(
            model=metadata.text(ggml + "model", "missing"),
            pre=metadata.text(ggml + "pre", None),
            architecture=metadata.text("general.architecture", ""),
            tokens=tokens,
            types=[NORMAL] * len(tokens) if types is None else types.tolist(),
            scores=None if scores is None else scores.tolist(),
            merges=None if merges is None else _decoded(ggml + "merges", merges),
            bos=metadata.integer(ggml + "bos_token_id", None),
            eos=metadata.integer(ggml + "eos_token_id", None),
            add_bos=metadata.flag(ggml + "add_bos_token", None),
            add_space_prefix=metadata.flag(ggml + "add_space_prefix", True),
        )
    except CheckpointError as error:
        raise TokenizerError(str(error).removeprefix(f"{metadata.path}: ")) from None


def _decoded(key: str, texts: list[bytes]) -> list[str]:
    for number, text in enumerate(texts):
        try:
            text.decode()
        except UnicodeDecodeError:
            raise TokenizerError(f"{key}: entry {number} is not UTF-8") from None
    return [text.decode() for text in texts]


def convert_fields(data: TokenizerFields, side: SideFacts) -> Conversion:
    """As convert_gguf, from fields that have been read."""
    for name, values in (("token_type", data.types), ("scores", data.scores)):
        if values is not None and len(values) != len(data.tokens):
            raise TokenizerError(f"tokenizer.ggml.{name} has {len(values)} entries for {len(data.tokens)} tokens")
    notes: list[str] = []
    if data.model == "gpt2":
        tokenizer = _byte_level(data, notes)
        add_bos = data.pre in BOS_BY_DEFAULT
    elif data.model == "llama":
        tokenizer = _sentencepiece(data, notes)
        add_bos = True
    else:
        raise TokenizerError(f"tokenizer.ggml.model {data.model!r}: only gpt2 and llama can be expressed")
    texts = {token.data.decode("utf-8", "replace"): id_ for id_, token in enumerate(tokenizer.tokens) if token.added}
    tokenizer.bos = _special_id("bos", side.bos, data.bos, side.no_bos, texts, len(tokenizer.tokens))
    tokenizer.eos = _special_id("eos", side.eos, data.eos, side.no_eos, texts, len(tokenizer.tokens))
    if data.add_bos is not None:
        add_bos = data.add_bos
    if side.add_bos is not None:
        add_bos = side.add_bos
    if add_bos and tokenizer.bos >= 0:
        tokenizer.flags |= mlt.FLAG_BOS
    return Conversion(tokenizer, notes)


def _special_id(name: str, text: str | None, id_: int | None, none: bool, texts: dict[str, int], n_vocab: int) -> int:
    """The id of BOS or EOS: that of a text that was asked for, else the file's."""
    if text is not None:
        if text not in texts:
            raise TokenizerError(f"{name} token {text!r} is not an added token")
        return texts[text]
    if none or id_ is None:
        return -1
    if not 0 <= id_ < n_vocab:
        raise TokenizerError(f"tokenizer.ggml.{name}_token_id {id_} is not below {n_vocab}")
    return id_


# ---------------------------------------------------------------- the two kinds


def _byte_level(data: TokenizerFields, notes: list[str]) -> mlt.Tokenizer:
    if data.pre not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise TokenizerError(f"tokenizer.ggml.pre {data.pre!r} is not known; known are {known}")
    if data.merges is None:
        raise TokenizerError("the file has no tokenizer.ggml.merges")
    flags = PRE_TOKENIZERS[data.pre]
    vocab = _vocabulary(data.tokens, data.types)
    added = {id_ for id_, type_ in enumerate(data.types) if type_ in ADDED_TYPES}
    bytes_ = byte_level_bytes(vocab, added, bool(flags & mlt.FLAG_IGNORE_MERGES))
    bytes_.update((id_, data.tokens[id_].encode()) for id_ in added)
    pairs = []
    for rank, rule in enumerate(data.merges):
        left, _, right = rule.partition(" ")
        if not left or not right or " " in right:
            raise TokenizerError(f"tokenizer.ggml.merges: rule {rank} is {rule!r}, not two pieces")
        pairs.append((left, right))
    merges = merge_ids(pairs, vocab, notes)
    tokens = _tokens_by_id(bytes_, dict.fromkeys(added, mlt.ATTR_ADDED))
    return mlt.Tokenizer(mlt.KIND_BYTE_LEVEL, tokens, merges, flags=flags)


def _vocabulary(tokens: list[str], types: list[int]) -> dict[str, int]:
    """Ids by piece. A piece that is there twice is refused."""
    vocab: dict[str, int] = {}
    for id_, (piece, type_) in enumerate(zip(tokens, types, strict=True)):
        if type_ == UNUSED:
            continue
        if piece in vocab:
            raise TokenizerError(f"tokenizer.ggml.tokens: {piece!r} is both {vocab[piece]} and {id_}")
        vocab[piece] = id_
    return vocab


def _tokens_by_id(data: dict[int, bytes], attrs: dict[int, int]) -> list[mlt.Token]:
    return [mlt.Token(data.get(id_, b""), attrs.get(id_, 0)) for id_ in range(max(data) + 1)]


def _sentencepiece(data: TokenizerFields, notes: list[str]) -> mlt.Tokenizer:
    if data.scores is None:
        raise TokenizerError("the file has no tokenizer.ggml.scores")
    # Runs of spaces are spelled as spaces here and as ▁ in tokenizer.json.
    pieces = [
        piece.replace(" ", "▁") if type_ == USER_DEFINED and not piece.strip(" ") else piece
        for piece, type_ in zip(data.tokens, data.types, strict=True)
    ]
    vocab = _vocabulary(pieces, data.types)
    bytes_: dict[int, bytes] = {}
    attrs: dict[int, int] = {}
    for piece, id_ in vocab.items():
        bytes_[id_] = piece.encode()
        if data.types[id_] in ADDED_TYPES:
            attrs[id_] = mlt.ATTR_ADDED
        elif data.types[id_] == BYTE:
            byte = BYTE_PIECE.fullmatch(piece)
            if not byte:
                raise TokenizerError(f"tokenizer.ggml.tokens: byte token {id_} is spelled {piece!r}")
            bytes_[id_], attrs[id_] = bytes([int(byte[1], 16)]), mlt.ATTR_BYTE
    if (count := sum(attr == mlt.ATTR_BYTE for attr in attrs.values())) < 256:
        raise TokenizerError(f"{count} of 256 byte tokens: unknown characters cannot be expressed")
    whole = {piece for piece, id_ in vocab.items() if data.types[id_] in (UNKNOWN, CONTROL, BYTE)}
    gemma = data.architecture.startswith("gemma")
    scores = {piece: data.scores[id_] for piece, id_ in vocab.items()}
    if gemma:  # GGUF writers replace the scores of these pieces, which were 0
        scores.update((piece, 0.0) for piece, id_ in vocab.items() if data.types[id_] == USER_DEFINED)
    merges = merge_ids(merges_from_scores(vocab, scores, whole, longer_first=gemma), vocab, notes)
    flags = 0 if data.add_space_prefix else mlt.FLAG_NO_PREFIX
    return mlt.Tokenizer(mlt.KIND_SENTENCEPIECE, _tokens_by_id(bytes_, attrs), merges, flags=flags)


def merges_from_scores(
    vocab: dict[str, int], scores: dict[str, float], whole: set[str], *, longer_first: bool
) -> list[tuple[str, str]]:
    """Every way to put a piece together from two others, the best score of the result first.

    whole: pieces that neither are put together nor take part.
    longer_first: the order among equal scores, for which Hugging Face's converters have two habits. True (Gemma): by
        longer left, then longer right part, then the ids of result and parts. False (Llama): by the ids of the parts.
    """
    rules: list[tuple[tuple[float, ...], str, str]] = []
    for piece, id_ in vocab.items():
        if piece in whole:
            continue
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in whole or right in whole or left not in vocab or right not in vocab:
                continue
            among_equals = (-len(left), -len(right), id_) if longer_first else ()
            rules.append(((-scores[piece], *among_equals, vocab[left], vocab[right]), left, right))
    rules.sort(key=lambda rule: rule[0])
    return [(left, right) for _, left, right in rules]
