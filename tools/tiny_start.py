"""How the weights of small models begin, so that they learn early to repeat what a story has said. Needs torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tinyloop_torch import TinyLoop


@torch.no_grad()
def begin_by_copying(v: Tensor, o: Tensor, head_dim: int, generator: torch.Generator) -> None:
    """Makes the output of attention a part of what it looks at, projected on a random subspace. v: (kv_dim, dim), o:
    (dim, q_dim), the projections of values and of the output, which are overwritten.

    What a story says again, above all its names, is thus a little likelier from the first step, and where to look can
    be learned at once. From random projections a small model finds that out last.
    """
    kv_dim, dim = v.shape
    directions = torch.linalg.qr(torch.randn(dim, dim, generator=generator))[0]
    group = o.shape[1] // kv_dim
    for head in range(kv_dim // head_dim):
        part = directions[head * head_dim : (head + 1) * head_dim]
        v[head * head_dim : (head + 1) * head_dim] = part
        for query_head in range(head * group, (head + 1) * group):
            o[:, query_head * head_dim : (query_head + 1) * head_dim] = part.T / group


@torch.no_grad()
def begin_loop(model: TinyLoop, seed: int) -> None:
    """The same for a TinyLoop model with a factored embedding, whose head begins as the embedding transposed."""
    header = model.header
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if name.endswith(".w2"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.5 * parameter.shape[1] ** -0.5, generator=generator)
    nn.init.normal_(model.embed_weight, std=0.03, generator=generator)
    model.head_weight.copy_(model.embed_weight)
    directions = torch.linalg.qr(torch.randn(header.dim, header.dim, generator=generator))[0]
    model.embed_proj.copy_(directions[:, : header.embed_factor_dim])
    model.head_proj.copy_(model.embed_proj.T)
    for block in model.blocks:
        begin_by_copying(block.wv, block.wo, header.head_dim, generator)
