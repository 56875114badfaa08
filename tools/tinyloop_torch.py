"""A TinyLoop model as a torch module: for training and as a reference. Needs torch.

Its parameters have the names and shapes of the file's tensors, so that `tinyloop.py export` writes a checkpoint

    torch.save({"config": model.config_dict(), "model": model.state_dict()}, path)

as it is. With `model.quantized = True` the forward pass sees weights as the file will hold them, rounded by the rule of
tinyloop_quant.py, and gradients pass through the rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import torch
from torch import Tensor, nn
from torch.nn import functional

from tinyloop_layout import NORM_EPS, ROPE_THETA, Header, check_header
from tinyloop_quant import fake_quantize


def rotate(x: Tensor) -> Tensor:
    """x: (batch, heads, positions, head_dim). Turns the pairs (2i, 2i + 1), each a complex number."""
    n, head_dim = x.shape[-2:]
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64, device=x.device) / head_dim
    angles = torch.arange(n, dtype=torch.float64, device=x.device)[:, None] * ROPE_THETA**-exponent
    turn = torch.complex(angles.cos().to(x.dtype), angles.sin().to(x.dtype))
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn).flatten(-2)


class Block(nn.Module):
    """x + attention(norm(x)), then + ffn(norm(x))."""

    def __init__(self, model: TinyLoop) -> None:
        super().__init__()
        h = model.header
        self._model = [model]  # in a list: not a submodule
        self.attn_norm = nn.Parameter(torch.ones(h.dim))
        self.ffn_norm = nn.Parameter(torch.ones(h.dim))
        for name in ("wq", "wk", "wv", "wo"):
            self.register_parameter(name, nn.Parameter(torch.empty(h.dim, h.dim)))
        self.w1 = nn.Parameter(torch.empty(h.ffn_dim, h.dim))
        self.w2 = nn.Parameter(torch.empty(h.dim, h.ffn_dim))
        self.w3 = nn.Parameter(torch.empty(h.ffn_dim, h.dim))

    def forward(self, x: Tensor, w: Mapping[str, Tensor]) -> Tensor:
        """w: the block's matrices as the pass is to see them."""
        dim, n_heads = x.shape[-1], self._model[0].header.n_heads
        y = functional.rms_norm(x, (dim,), self.attn_norm, NORM_EPS)
        q, k, v = (
            functional.linear(y, w[name]).unflatten(-1, (n_heads, -1)).transpose(1, 2) for name in ("wq", "wk", "wv")
        )
        mixed = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + functional.linear(mixed.transpose(1, 2).flatten(-2), w["wo"])
        y = functional.rms_norm(x, (dim,), self.ffn_norm, NORM_EPS)
        hidden = functional.silu(functional.linear(y, w["w1"])) * functional.linear(y, w["w3"])
        return x + functional.linear(hidden, w["w2"])

    def matrices(self) -> dict[str, Tensor]:
        model = self._model[0]
        return {name: model.as_stored(getattr(self, name)) for name in ("wq", "wk", "wv", "wo", "w1", "w2", "w3")}


class TinyLoop(nn.Module):
    """The model of a header. `quantized`: see weights as the file will hold them."""

    def __init__(self, header: Header, seed: int = 0) -> None:
        super().__init__()
        check_header(header)
        self.header = header
        self.quantized = False
        factor = header.embed_factor_dim or header.dim
        self.embed_weight = nn.Parameter(torch.empty(header.vocab_size, factor))
        self.head_weight = nn.Parameter(torch.empty(header.vocab_size, factor))
        if header.embed_factor_dim:
            self.embed_proj = nn.Parameter(torch.empty(header.dim, factor))
            self.head_proj = nn.Parameter(torch.empty(factor, header.dim))
        self.blocks = nn.ModuleList(Block(self) for _ in range(header.n_blocks))
        self.final_norm = nn.Parameter(torch.ones(header.dim))
        self._initialize(torch.Generator().manual_seed(seed))

    def _initialize(self, generator: torch.Generator) -> None:
        depth = self.header.n_pre_blocks + self.header.default_loops
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            scale = 1 if name == "embed_weight" else parameter.shape[1] ** -0.5
            if name.endswith((".wo", ".w2")):
                scale /= (2 * depth) ** 0.5  # what the residual stream gathers stays about as large as the embedding
            nn.init.normal_(parameter, std=scale, generator=generator)

    def config_dict(self) -> dict[str, int]:
        return asdict(self.header)

    def as_stored(self, matrix: Tensor) -> Tensor:
        """A quantized matrix as the file will hold it, if the pass is to see that."""
        return fake_quantize(matrix, self.header.bits, self.header.group_size) if self.quantized else matrix

    def factor_as_stored(self, matrix: Tensor) -> Tensor:
        """The same for the factors of embedding and head, which are float16."""
        if not self.quantized:
            return matrix
        return matrix + (matrix.detach().half().to(matrix.dtype) - matrix).detach()

    def forward(self, ids: Tensor, loops: int | None = None) -> Tensor:
        """ids: (batch, positions). Logits (batch, positions, vocab_size). loops: None for the header's default."""
        h = self.header
        store = self.factor_as_stored if h.embed_factor_dim else self.as_stored
        x = functional.embedding(ids, store(self.embed_weight))
        if h.embed_factor_dim:
            x = functional.linear(x, store(self.embed_proj))
        for index, block in enumerate(self.blocks):
            w = block.matrices()  # once for all loops
            times = 1 if index < h.n_pre_blocks else loops or h.default_loops
            for _ in range(times):
                x = block(x, w)
        x = functional.rms_norm(x, (h.dim,), self.final_norm, NORM_EPS)
        if h.embed_factor_dim:
            x = functional.linear(x, store(self.head_proj))
        return functional.linear(x, store(self.head_weight))


def from_weights(header: Header, weights: Mapping[str, object]) -> TinyLoop:
    """A module, in float64, with the weights of a file (tinyloop.Model.weights)."""
    model = TinyLoop(header).double()
    model.load_state_dict({name: torch.as_tensor(value, dtype=torch.float64) for name, value in weights.items()})
    return model
