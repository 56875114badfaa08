"""A model as another program wrote it: a Hugging Face folder or a GGUF file, behind one face.

    checkpoint = open_checkpoint(path)
    planned = checkpoint.plan()                                  what the .mlb file will hold, and from where
    weights = checkpoint.read(planned.sources["tok_emb"].tensor) float32, or Quantized blocks of GGUF

plan() has looked at every tensor's name and shape before the first weight is read: whatever is missing, of another
shape or not understood ends there.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gguf_map
from checkpoint_errors import CheckpointError, listing
from gguf_blocks import read_weights
from gguf_reader import GgufModel, GgufTensor, open_gguf
from hf_map import Source, canonical_name, header_from_config, model_type, plan
from hf_settings import Settings, UnsupportedModel
from mlb_layout import Q8_0, Header
from mlb_rules import OK, validate
from quant import Quantized
from safetensors_reader import SafeTensor, open_safetensors, parse_json

Stored = SafeTensor | GgufTensor
Tied = tuple[bool, str | None]  # whether the output matrix is the embedding, and a remark about it

MAX_LAYERS = 65536  # the format's
_COMPARED_AT_ONCE = 1 << 24  # bytes


@contextlib.contextmanager
def _settings_of(path: Path) -> Iterator[None]:
    """Settings come from a file and may be of any type and value: what they break is the file's fault."""
    try:
        yield
    except (CheckpointError, UnsupportedModel):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: a setting of the model is unfit: {error}") from None


@dataclass
class Planned:
    header: Header
    layer_flags: bytes | None
    sources: dict[str, Source]  # by array name, in file order


class Checkpoint(ABC):
    """What both kinds have. `tensors` go by the names that sources use; `notes` gathers what its user should know."""

    form: str  # what it is, for people
    classifier: str  # the tensor of the output matrix
    embedding: str

    def __init__(self, path: Path, config: dict[str, Any], tensors: Mapping[str, Stored]) -> None:
        self.path = path
        self.config = config
        self.tensors = tensors
        self.notes: list[str] = []

    @abstractmethod
    def _sources(self, header: Header, layer_flags: bytes | None) -> dict[str, Source]:
        """By array name, in file order."""

    @abstractmethod
    def _tied(self) -> Tied: ...

    @abstractmethod
    def read(self, name: str) -> np.ndarray | Quantized:
        """The weights of a tensor, wholly in memory."""

    def _spare(self) -> set[str]:
        """Tensors that need not be read although they are understood."""
        return set()

    def type_of(self, name: str) -> str:
        """How a tensor is stored, by the file's own word for it."""
        type_ = self.tensors[name].type
        return type_ if isinstance(type_, str) else type_.name

    def plan(self, *, max_seq: int | None = None, allow_unread: bool = False) -> Planned:
        """What the file will hold, its matrices as Q8_0; the caller may replace wtype, q8_mask and scale_f16.

        max_seq: longest context, the model's own by default. allow_unread: a note instead of an error about tensors
        that nothing reads. Raises CheckpointError, UnsupportedModel.
        """
        with _settings_of(self.path):
            tied, remark = self._tied()
            header, layer_flags = self._header(max_seq, tied)
        if remark:
            self.notes.append(remark)
        sources = self._sources(header, layer_flags)
        self._check(sources, tied, allow_unread)
        return Planned(header, layer_flags, sources)

    def _header(self, max_seq: int | None, tied: bool) -> tuple[Header, bytes | None]:
        layers = Settings(self.config).integer("num_hidden_layers")
        if layers > MAX_LAYERS:
            raise CheckpointError(f"num_hidden_layers is {layers}, at most {MAX_LAYERS} are allowed")
        header, layer_flags = header_from_config(self.config, wtype=Q8_0, max_seq=max_seq, tied=tied)
        status, message = validate(header, layer_flags, None)
        if status != OK:
            raise CheckpointError(message)
        return header, layer_flags

    def _check(self, sources: Mapping[str, Source], tied: bool, allow_unread: bool) -> None:
        wanted = {source.tensor: source for source in sources.values()}
        if missing := [name for name in wanted if name not in self.tensors]:
            raise CheckpointError(f"{self.path}: missing tensor {listing(missing)}")
        for name, source in wanted.items():
            shape = self.tensors[name].shape
            if shape != source.shape:
                raise CheckpointError(f"{self.path}: {name} has the shape {shape}, the config implies {source.shape}")
        unread = sorted(set(self.tensors) - set(wanted) - self._spare() - ({self.classifier} if tied else set()))
        if unread and not allow_unread:
            raise CheckpointError(f"{self.path}: nothing reads {listing(unread)}; --allow-unread converts without")
        if unread:
            self.notes.append(f"not read: {listing(unread, 12)}")


# ---------------------------------------------------------------- Hugging Face


class HuggingFaceCheckpoint(Checkpoint):
    """A folder with config.json and safetensors."""

    form = "Hugging Face folder"
    classifier = "lm_head.weight"
    embedding = "model.embed_tokens.weight"

    def _sources(self, header: Header, layer_flags: bytes | None) -> dict[str, Source]:
        hidden_dim = Settings(self.config).integer("intermediate_size")
        return plan(header, layer_flags, model_type(self.config), hidden_dim=hidden_dim)

    def _tied(self) -> Tied:
        """As transformers decides, except that it would start an output matrix that is nowhere at random."""
        settings = Settings(self.config)
        stored = self.classifier in self.tensors
        if settings.get("tie_word_embeddings"):
            if stored and self.embedding in self.tensors and not self._equal(self.classifier, self.embedding):
                return (
                    False,
                    f"tie_word_embeddings is true, but {self.classifier} differs from the embedding: both kept",
                )
            return True, None
        if stored:
            return False, None
        if "tie_word_embeddings" in settings.config:
            raise CheckpointError(f"{self.path}: missing tensor {self.classifier}, and tie_word_embeddings is false")
        return True, f"no {self.classifier}, and nothing is said about it: the embedding is taken"

    def _equal(self, a: str, b: str) -> bool:
        first, second = self.tensors[a], self.tensors[b]
        if (first.shape, first.type) != (second.shape, second.type):
            return False
        x, y = first.stored(), second.stored()
        at_once = _COMPARED_AT_ONCE
        return all(np.array_equal(x[i : i + at_once], y[i : i + at_once]) for i in range(0, len(x), at_once))

    def read(self, name: str) -> np.ndarray:
        return self.tensors[name].read()


# ---------------------------------------------------------------- GGUF


class GgufCheckpoint(Checkpoint):
    """A GGUF file, or several that are one model."""

    form = "GGUF file"
    classifier = gguf_map.CLASSIFIER
    embedding = gguf_map.EMBEDDING

    def __init__(self, model: GgufModel) -> None:
        with _settings_of(model.path):
            config = gguf_map.config_of(model)
        super().__init__(model.path, config, model.tensors)
        self.model = model
        name, _ = gguf_map.architecture_of(model.metadata)
        own_keys = {key for key in model.metadata.values if key.startswith(f"{name}.")}
        if unread := sorted(own_keys - model.metadata.read):
            self.notes.append(f"keys that were not looked at: {listing(unread, 12)}")

    def _sources(self, header: Header, layer_flags: bytes | None) -> dict[str, Source]:
        return gguf_map.gguf_plan(header, layer_flags, self.model, self.config)

    def _tied(self) -> Tied:
        return self.config["tie_word_embeddings"], None

    def _spare(self) -> set[str]:
        """Factors that the header expresses, and layers past the last that guess several tokens ahead."""
        name, _ = gguf_map.architecture_of(self.model.metadata)
        first = self.config["num_hidden_layers"]
        ahead = range(first, first + self.model.metadata.integer(f"{name}.nextn_predict_layers", 0))
        prefixes = tuple(f"blk.{number}." for number in ahead)
        return {t for t in self.tensors if t == gguf_map.ROPE_FACTORS or (prefixes and t.startswith(prefixes))}

    def read(self, name: str) -> np.ndarray | Quantized:
        return read_weights(self.tensors[name])


# ---------------------------------------------------------------- opening


def open_checkpoint(path: Path) -> Checkpoint:
    """Raises CheckpointError, UnsupportedModel, OSError."""
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    if path.is_dir() and (path / "config.json").is_file():
        return _open_folder(path)
    if path.is_dir():
        path = _only_gguf(path)
    if path.suffix != ".gguf":
        raise CheckpointError(f"{path}: neither a folder with config.json nor a .gguf file")
    return GgufCheckpoint(open_gguf(path))


def _open_folder(path: Path) -> HuggingFaceCheckpoint:
    config = parse_json((path / "config.json").read_bytes(), path / "config.json")
    if not isinstance(config, dict):
        raise CheckpointError(f"{path / 'config.json'}: no JSON object")
    model_type(config)  # an unknown family is refused before gigabytes are looked at
    tensors: dict[str, SafeTensor] = {}
    for name, tensor in open_safetensors(path).items():
        canonical = canonical_name(name)
        if canonical in tensors:
            raise CheckpointError(f"{path}: {name} and {tensors[canonical].name} are the same tensor")
        if canonical is not None:
            tensors[canonical] = tensor
    return HuggingFaceCheckpoint(path, config, tensors)


def _only_gguf(folder: Path) -> Path:
    """The one model of a folder: a single file, or the first of a split one."""
    files = sorted(folder.glob("*.gguf"))
    firsts = [file for file in files if "-of-" not in file.name or "-00001-of-" in file.name]
    if len(firsts) != 1:
        found = f"{len(firsts)} GGUF models" if firsts else "no config.json and no first .gguf file"
        raise CheckpointError(f"{folder}: {found}; name the file")
    return firsts[0]
