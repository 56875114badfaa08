"""A Llama as a torch module, small enough to be trained on a CPU. Needs torch and safetensors (build/venv-hf).

Parameters have the names and shapes of a Hugging Face checkpoint: `save_checkpoint` writes a folder that transformers
opens as LlamaForCausalLM and tools/convert.py converts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from tiny_start import begin_by_copying


@dataclass(frozen=True)
class LlamaShape:
    """Dimensions by their names in config.json."""

    hidden_size: int = 128
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    intermediate_size: int = 448
    vocab_size: int = 1536
    max_position_embeddings: int = 512
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


class Attention(nn.Module):
    """Causal self-attention with grouped queries and RoPE over the two halves of a head."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.shape = shape
        dim, kv_dim = shape.hidden_size, shape.num_key_value_heads * shape.head_dim
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(dim, kv_dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        heads = (-1, self.shape.head_dim)
        q, k, v = (p(x).unflatten(-1, heads).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = (t * cosine + torch.cat((-t[..., heads[1] // 2 :], t[..., : heads[1] // 2]), -1) * sine for t in (q, k))
        group = self.shape.num_attention_heads // self.shape.num_key_value_heads
        k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = FeedForward(shape)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)


class TinyLlama(nn.Module):
    """The model; its classifier is the embedding."""

    def __init__(self, shape: LlamaShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if "embed" in name:
                nn.init.normal_(parameter, std=0.02, generator=generator)
            elif "down_proj" in name:
                nn.init.zeros_(parameter)  # a layer begins by adding nothing
            elif parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.5 * parameter.shape[1] ** -0.5, generator=generator)
        for layer in self.model.layers:
            attention = layer.self_attn
            begin_by_copying(attention.v_proj.weight, attention.o_proj.weight, shape.head_dim, generator)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (batch, positions). Logits (batch, positions, vocab_size)."""
        head_dim = self.shape.head_dim
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
        angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * self.shape.rope_theta**-exponent
        cosine, sine = (f(torch.cat((angles, angles), -1)).float() for f in (torch.cos, torch.sin))
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cosine, sine)
        return functional.linear(self.model.norm(x), self.model.embed_tokens.weight)


def save_checkpoint(model: TinyLlama, folder: Path, sampling: dict[str, float]) -> None:
    """model.safetensors, config.json and generation_config.json; the tokenizer's files are not written here."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = asdict(model.shape) | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"bos_token_id": 0, "eos_token_id": 1, "do_sample": True} | sampling
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
