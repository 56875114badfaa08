"""The model package: a folder, or an address, that holds all that is needed to run a model.

    model.mlb       weights (or model.tinyloop)
    tokenizer.mlt   tokenizer, if the model has one that the format can express
    model.json      what is in the folder, and what the weights do not say:

    {
      "format": "krafla-model", "version": 1,
      "name": "SmolLM2 135M Instruct", "architecture": "llama",
      "files": {"model": {"name": "model.mlb", "size": 87424512, "sha256": "…"}, "tokenizer": {…}},
      "weights": {"type": "q4_0", "q8": ["tok_emb"], "scales": "f16"},
      "contextSize": 8192,
      "tokens": {"bos": {"id": 1, "text": "<|im_start|>"}, "eos": {"id": 2, "text": "<|im_end|>"}},
      "stopTokens": [{"id": 2, "text": "<|im_end|>"}],
      "chatTemplate": "{% for message in messages %}…",
      "sampling": {"temperature": 0.2, "topP": 0.9},
      "license": "apache-2.0", "source": "…"
    }

A model.tinyloop has "architecture": "tinyloop", "weights": {"type": "int4", "groupSize": 32} and "loops": 4, the number
that is run if the caller says nothing.

Names of files are relative to model.json and have no folder in them. "tokens" holds bos, eos, unk and pad as far as
they are known; chat templates (Jinja) may speak of their texts. Generation ends before any of "stopTokens". "sampling"
has the options of the JS API with the values that the model's authors recommend. Whatever is not known is left out; a
reader ignores keys that it does not know, and refuses another format or a higher version.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checkpoint_errors import CheckpointError
from conversion import CLASSES, WTYPES
from mlb import Header
from mlt import Tokenizer
from model_facts import SPECIAL, Facts
from tinyloop_layout import MAX_SEQ
from tinyloop_layout import Header as LoopHeader

FORMAT, VERSION = "krafla-model", 1
MODEL, TOKENIZER, DESCRIPTION = "model.mlb", "tokenizer.mlt", "model.json"
LOOP_MODEL = "model.tinyloop"

# Tokens that end an assistant's turn in the templates of the families. Checkpoints often forget to name them.
TURN_ENDS = ("<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "</s>")


def describe(
    folder: Path, architecture: str, header: Header, tokenizer: Tokenizer | None, facts: Facts
) -> dict[str, Any]:
    """The contents of model.json for the files that are in the folder. Raises CheckpointError, OSError."""
    own = {"architecture": architecture, "weights": _weights(header), "contextSize": header.max_seq}
    return _document(folder / MODEL, own, header.vocab, tokenizer, facts)


def describe_loop(folder: Path, header: LoopHeader, tokenizer: Tokenizer | None, facts: Facts) -> dict[str, Any]:
    """The same for a folder with a .tinyloop file. Raises CheckpointError, OSError."""
    weights = {"type": f"int{header.bits}", "groupSize": header.group_size}
    own = {"architecture": "tinyloop", "weights": weights, "contextSize": MAX_SEQ, "loops": header.default_loops}
    return _document(folder / LOOP_MODEL, own, header.vocab_size, tokenizer, facts)


def _document(
    model: Path, own: dict[str, Any], vocab: int, tokenizer: Tokenizer | None, facts: Facts
) -> dict[str, Any]:
    files = {"model": _file(model)}
    if tokenizer:
        files["tokenizer"] = _file(model.with_name(TOKENIZER))
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": facts.name,
        "architecture": own["architecture"],
        "files": files,
        **own,
        "tokens": _special_tokens(facts, tokenizer),
        "stopTokens": [_token(id_, tokenizer) for id_ in stop_ids(facts, tokenizer, vocab)],
        "chatTemplate": facts.chat_template,
        "sampling": facts.sampling,
        "license": facts.license,
        "source": facts.source,
    }
    return {key: value for key, value in document.items() if value not in (None, {}, [])}


def _file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest.hexdigest()}


def _weights(header: Header) -> dict[str, Any]:
    name = next(name for name, wtype in WTYPES.items() if wtype == header.wtype)
    stored_as_q8 = [matrices for matrices, mask in CLASSES.items() if header.q8_mask & mask]
    return {
        "type": name,
        **({"q8": stored_as_q8} if stored_as_q8 else {}),
        "scales": "f16" if header.scale_f16 else "f32",
    }


# ---------------------------------------------------------------- tokens


def _ids_by_text(tokenizer: Tokenizer | None) -> dict[str, int]:
    tokens = tokenizer.tokens if tokenizer else []
    return {
        token.data.decode("utf-8", "replace"): id_ for id_, token in reversed(list(enumerate(tokens))) if token.added
    }


def _token(id_: int, tokenizer: Tokenizer | None) -> dict[str, Any]:
    if tokenizer is None or id_ >= len(tokenizer.tokens):
        return {"id": id_}
    return {"id": id_, "text": tokenizer.tokens[id_].data.decode("utf-8", "replace")}


def _special_tokens(facts: Facts, tokenizer: Tokenizer | None) -> dict[str, dict[str, Any]]:
    """The .mlt's own word counts for BOS and EOS; then ids, then texts."""
    by_text = _ids_by_text(tokenizer)
    tokens: dict[str, dict[str, Any]] = {}
    for name in SPECIAL:
        own = getattr(tokenizer, name, -1)
        text = facts.special_texts.get(name)
        id_ = own if own >= 0 else facts.special_ids.get(name, by_text.get(text) if text else None)
        if id_ is not None:
            tokens[name] = _token(id_, tokenizer)
        elif text is not None:
            tokens[name] = {"text": text}
    return tokens


def stop_ids(facts: Facts, tokenizer: Tokenizer | None, vocab: int) -> list[int]:
    """What ends generation: the ids that the authors name, the tokenizer's EOS, and the turn ends of the template."""
    ids = list(facts.stop_ids)
    if tokenizer and tokenizer.eos >= 0:
        ids.append(tokenizer.eos)
    by_text = _ids_by_text(tokenizer)
    ids += [by_text[text] for text in TURN_ENDS if text in by_text and text in (facts.chat_template or "")]
    for id_ in ids:
        if id_ >= vocab:
            raise CheckpointError(f"stop token {id_} is not below the {vocab} rows of the embedding")
    return list(dict.fromkeys(ids))


def check_tokenizer(tokenizer: Tokenizer, vocab: int) -> None:
    """A tokenizer may have fewer tokens than the model has rows, since rows are padded, but not more."""
    if len(tokenizer.tokens) > vocab:
        raise CheckpointError(
            f"the tokenizer has {len(tokenizer.tokens)} tokens, the embedding {vocab} rows: they are not of one model"
        )


# ---------------------------------------------------------------- the folder


@contextlib.contextmanager
def new_package(out: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes the name `out` if the body succeeds and is gone if it does not.

    `out` may not be there or be empty. replace: or hold a package already, whose files are then replaced, model.json
    last; other files there are left alone. Raises CheckpointError, OSError.
    """
    occupied = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if occupied and not (replace and (out / DESCRIPTION).is_file()):
        advice = "--force replaces the package in it" if (out / DESCRIPTION).is_file() else "name a new one"
        raise CheckpointError(f"{out} exists and is not an empty folder; {advice}")
    if not out.absolute().parent.is_dir():
        raise CheckpointError(f"{out.absolute().parent}: no such folder")
    temporary = out.absolute().with_name(f".{out.absolute().name}.{os.getpid()}.tmp")
    temporary.mkdir()
    try:
        yield temporary
        if occupied:
            for name in (MODEL, LOOP_MODEL, TOKENIZER, DESCRIPTION):
                if (temporary / name).exists():
                    (temporary / name).replace(out / name)
                else:
                    (out / name).unlink(missing_ok=True)
        else:
            temporary.replace(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_description(folder: Path, document: dict[str, Any]) -> None:
    """model.json, as people like to read it."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
