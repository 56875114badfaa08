"""Reads a Hugging Face config.json: a setting by name, over the defaults of its family, refused when unfit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hf_families import FAMILIES, WITH_TEXT_CONFIG, Family


class UnsupportedModel(ValueError):
    """The format, or this tool, cannot express the model. The message names the setting and its value."""


def model_type(config: Mapping[str, Any]) -> str:
    """The family of a config; refuses those that no table describes."""
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        raise UnsupportedModel(f"model_type {name!r}: supported are {', '.join(sorted(FAMILIES))}")
    return name


class Settings:
    """A config.json over its family's defaults. A setting that is null there is None, not the default."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.model_type = model_type(config)
        self.family: Family = FAMILIES[self.model_type]
        self.config = _text_config(config)

    def get(self, name: str) -> Any:
        return self.config.get(name, self.family.defaults.get(name))

    def integer(self, name: str, at_least: int = 1) -> int:
        return whole(self.get(name), name, at_least)

    def number(self, name: str) -> float:
        return positive(self.get(name), name)


def whole(value: Any, name: str, at_least: int = 1) -> int:
    """A value from a config as a whole number, or UnsupportedModel."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise UnsupportedModel(f"{name} is {value!r}, not a whole number of at least {at_least}")
    return value


def positive(value: Any, name: str) -> float:
    """A value from a config as a finite number above 0, or UnsupportedModel."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:
        raise UnsupportedModel(f"{name} is {value!r}, not a positive number")
    return float(value)


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's settings. Whether its output is tied is said outside of "text_config"."""
    if config["model_type"] not in WITH_TEXT_CONFIG or "text_config" not in config:
        return config
    outside = ("tie_word_embeddings", "quantization_config")
    return {**config["text_config"], **{name: config[name] for name in outside if name in config}}
