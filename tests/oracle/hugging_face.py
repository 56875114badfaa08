"""Tiny random transformers models, run in float64, with the very weights that an .mlb file holds.

    model → plan().apply → write_model → file → read_model → restore() → model

so that both sides have the same dequantized weights, and what is left between them is arithmetic.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from hf_map import header_from_config, plan, restore
from mlb import Model, read_model, write_model
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from oracle.families import Case, Config


@contextlib.contextmanager
def lifted() -> Iterator[None]:
    """Within it, every float32 that transformers asks for by name is float64.

    A model in float64 still takes steps in float32: norms, RoPE tables, the softmax, the gated delta rule. All of
    them get the type from `torch.float32`, `torch.float` or `Tensor.float()`. Whether one was missed shows:
    test_reference.py holds the logits against an independent float64 computation, to 1e-9.
    """
    with (
        mock.patch.object(torch, "float32", torch.float64),
        mock.patch.object(torch, "float", torch.float64),
        mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
    ):
        yield


def config_of(case: Case) -> Config:
    """The config.json that transformers writes for a case."""
    options = {name: value for name, value in case.config.items() if name != "model_type"}
    return json.loads(AutoConfig.for_model(case.config["model_type"], **options).to_json_string(use_diff=False))


def random_model(config: Config, seed: int) -> PreTrainedModel:
    """A model in float64 whose weights are chosen by seed and tensor name, tied if the config says so."""
    name = config["model_type"]
    with lifted():
        hf_config = AutoConfig.for_model(name, **{k: v for k, v in config.items() if k != "model_type"})
        model = AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager", dtype=torch.float64)
    model.eval()
    zero_centred = name.startswith(("gemma", "qwen3_5"))
    with torch.no_grad():
        for tensor_name, tensor in model.state_dict().items():
            if tensor_name == "lm_head.weight" and config["tie_word_embeddings"]:
                continue
            values = _random_tensor(tensor_name, tuple(tensor.shape), seed, zero_centred)
            tensor.copy_(torch.from_numpy(values))
    return model


# Matrices, by the end of their name: the root mean square of an output for inputs of root mean square 1.
_GAINS = {
    "embed_tokens.weight": 2.0,
    "lm_head.weight": 3.0,
    "q_proj.weight": 1.3,
    "k_proj.weight": 1.3,
    "o_proj.weight": 0.8,
    "out_proj.weight": 0.8,
    "down_proj.weight": 1.2,
}
# Everything else: mean and spread. Norms are given as the factor that they apply.
_VECTORS = {
    "q_proj.bias": (0.0, 1.0),
    "k_proj.bias": (0.0, 1.0),
    "v_proj.bias": (0.0, 0.5),
    "q_norm.weight": (1.3, 0.3),
    "k_norm.weight": (1.3, 0.3),
    "norm.weight": (1.0, 0.3),
    "layernorm.weight": (1.0, 0.3),
    "dt_bias": (-1.0, 0.7),
    "A_log": (-1.0, 0.7),
    "conv1d.weight": (0.3, 0.5),
}


def _random_tensor(name: str, shape: tuple[int, ...], seed: int, zero_centred: bool) -> np.ndarray:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    values = rng.standard_normal(shape)
    vector = next((value for end, value in _VECTORS.items() if name.endswith(end)), None)
    if vector is None:
        gain = next((gain for end, gain in _GAINS.items() if name.endswith(end)), 1.0)
        return (gain * values / np.sqrt(shape[-1])).astype(np.float32).astype(np.float64)
    mean, spread = vector
    if zero_centred and "norm" in name and "linear_attn" not in name:
        mean -= 1.0
    return (mean + spread * values).astype(np.float32).astype(np.float64)


def write_mlb(model: PreTrainedModel, config: Config, case: Case, path: Path) -> Model:
    """Quantizes the weights of a model into an .mlb file, as a converter would, and opens it."""
    header, layer_flags = header_from_config(config, **case.storage)
    sources = plan(header, layer_flags, config["model_type"], hidden_dim=config["intermediate_size"])
    tensors = {name: tensor.numpy().astype(np.float32) for name, tensor in model.state_dict().items()}
    for name, source in sources.items():
        assert tensors[source.tensor].shape == source.shape, f"{name} from {source.tensor}"
    unread = set(tensors) - {source.tensor for source in sources.values()}
    assert unread <= ({"lm_head.weight"} if header.shared_classifier else set()), unread
    write_model(path, header, layer_flags, lambda spec: sources[spec.name].apply(tensors[sources[spec.name].tensor]))
    return read_model(path)


def load_mlb(model: PreTrainedModel, config: Config, mlb: Model) -> None:
    """Puts the dequantized weights of a file back into the model, in float64, with the file's rounded factors.

    A header holds float32 numbers; transformers computes the same ones in double. The difference is the file's to
    answer for, not the engine's, so the model takes the file's.
    """
    header = mlb.header
    sources = plan(header, mlb.layer_flags, config["model_type"], hidden_dim=config["intermediate_size"])
    arrays = {name: mlb.array(name).astype(np.float64) for name in sources}
    tensors = {name: torch.from_numpy(array) for name, array in restore(sources, arrays).items()}
    if header.shared_classifier:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    model.load_state_dict(tensors, strict=True)
    for module in model.modules():
        for name in ("eps", "variance_epsilon"):
            if hasattr(module, name):
                setattr(module, name, header.norm_eps)
        if hasattr(module, "scaling") and header.attn_scale:
            module.scaling = header.attn_scale
        for name in ("attention_scaling", "full_attention_attention_scaling"):
            if hasattr(module, name) and header.rope_attn_factor:
                setattr(module, name, header.rope_attn_factor)


def logits(model: PreTrainedModel, tokens: Sequence[int]) -> np.ndarray:
    """The logits at every position, (positions, vocab), float64."""
    with lifted(), torch.no_grad():
        result = model(torch.tensor([list(tokens)]), use_cache=False).logits[0]
    assert result.dtype == torch.float64, result.dtype
    return result.numpy()


def prompt(config: Config, length: int, seed: int) -> list[int]:
    """Random tokens."""
    return np.random.default_rng([seed, 1]).integers(0, config["vocab_size"], length).tolist()
