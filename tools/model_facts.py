"""What a package says about a model beside its weights: name, licence, chat template, stop tokens, default sampling.

Read from the files around a Hugging Face checkpoint or from GGUF metadata; nothing here is needed to run the model, so
what is absent stays None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checkpoint_errors import CheckpointError
from gguf_reader import Metadata
from safetensors_reader import parse_json

SPECIAL = ("bos", "eos", "unk", "pad")  # templates may speak of bos_token and so on


@dataclass
class Facts:
    """Everything is as its author said it; token texts are None where only ids are known."""

    name: str | None = None
    license: str | None = None
    source: str | None = None
    chat_template: str | None = None
    special_ids: dict[str, int] = field(default_factory=dict)  # by the names of SPECIAL
    special_texts: dict[str, str] = field(default_factory=dict)
    stop_ids: list[int] = field(default_factory=list)
    sampling: dict[str, float] = field(default_factory=dict)  # by the names of the JS API's options


# ---------------------------------------------------------------- Hugging Face

# Of generation_config.json: the API's name, and what a value must be to mean anything.
_SAMPLING = {
    "temperature": ("temperature", lambda value: value >= 0),
    "top_k": ("topK", lambda value: value >= 0 and value == int(value)),
    "top_p": ("topP", lambda value: 0 < value <= 1),
    "min_p": ("minP", lambda value: 0 <= value <= 1),
    "repetition_penalty": ("repetitionPenalty", lambda value: value > 0),
}


def facts_from_folder(folder: Path, config: Mapping[str, Any]) -> Facts:
    """Raises CheckpointError for a file that is no JSON or of another form than it should have, OSError."""
    generation = _json(folder / "generation_config.json")
    tokenizer = _json(folder / "tokenizer_config.json")
    facts = Facts(name=folder.resolve().name, license=_license(folder / "README.md"))
    facts.chat_template = _chat_template(folder, tokenizer)
    for name in SPECIAL:
        token = tokenizer.get(f"{name}_token")
        text = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(text, str):
            facts.special_texts[name] = text
    stop = generation.get("eos_token_id", config.get("eos_token_id"))
    facts.stop_ids = _ids(folder, stop if isinstance(stop, list) else [stop])
    if generation.get("do_sample") is not False:
        facts.sampling = _sampling(generation, _SAMPLING)
    return facts


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    document = parse_json(path.read_bytes(), path)
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: no JSON object")
    return document


def _ids(folder: Path, values: list[Any]) -> list[int]:
    ids = [value for value in values if value is not None]
    for value in ids:
        if type(value) is not int or value < 0:
            raise CheckpointError(f"{folder}: eos_token_id {value!r} is no token id")
    return ids


def _chat_template(folder: Path, tokenizer: Mapping[str, Any]) -> str | None:
    """From its own file, as newer checkpoints have it, or the tokenizer's settings; of several the default one."""
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    template = tokenizer.get("chat_template", _json(folder / "chat_template.json").get("chat_template"))
    if isinstance(template, list):
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, Mapping)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _license(readme: Path) -> str | None:
    """The licence that a model card names in its front matter, between lines of three dashes."""
    if not readme.is_file():
        return None
    text = readme.read_text(encoding="utf-8", errors="replace")
    front = re.match(r"---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    named = dict(re.findall(r"^(license(?:_name)?):[ \t]*[\"']?([\w.+-]+)", front[1], re.MULTILINE)) if front else {}
    return named.get("license_name") or named.get("license")


def _sampling(given: Mapping[str, Any], known: Mapping[str, tuple[str, Any]]) -> dict[str, float]:
    """The settings that are there and make sense."""
    result: dict[str, float] = {}
    for name, (ours, sensible) in known.items():
        value = given.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if number and sensible(value):
            result[ours] = int(value) if ours == "topK" else value
    return result


# ---------------------------------------------------------------- GGUF

_GGUF_SAMPLING = {
    "temp": _SAMPLING["temperature"],
    "top_k": _SAMPLING["top_k"],
    "top_p": _SAMPLING["top_p"],
    "min_p": _SAMPLING["min_p"],
    "penalty_repeat": _SAMPLING["repetition_penalty"],
}
_GGUF_IDS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
_STOP_IDS = ("eos", "eot", "eom")
_SOURCES = ("general.source.repo_url", "general.source.url", "general.repo_url", "general.url")


def facts_from_gguf(metadata: Metadata) -> Facts:
    """Raises CheckpointError for a key of the wrong type."""
    facts = Facts(
        name=metadata.text("general.name", metadata.path.stem),
        license=metadata.text("general.license.name", None) or metadata.text("general.license", None),
        source=next((url for key in _SOURCES if (url := metadata.text(key, None))), None),
        chat_template=metadata.text("tokenizer.chat_template", None),
    )
    for ours, theirs in _GGUF_IDS.items():
        id_ = metadata.integer(f"tokenizer.ggml.{theirs}_token_id", None)
        if id_ is not None:
            facts.special_ids[ours] = id_
    stop = [metadata.integer(f"tokenizer.ggml.{name}_token_id", None) for name in _STOP_IDS]
    facts.stop_ids = [id_ for id_ in stop if id_ is not None]
    given = {name: metadata.number(f"general.sampling.{name}", None) for name in _GGUF_SAMPLING}
    facts.sampling = _sampling(given, _GGUF_SAMPLING)
    return facts
