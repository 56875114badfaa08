"""Muon, an optimizer for matrices: momentum whose singular values are all made about 1. Needs torch.

A few steps of Newton and Schulz do it without a decomposition (Jordan and others, 2024, who found that models need
markedly fewer tokens than with Adam). Embeddings and vectors are left to Adam.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the odd polynomial that pulls singular values towards 1


def orthogonalized(stack: Tensor, steps: int = 5) -> Tensor:
    """stack: (n, rows, cols). The singular values of each matrix come to about 0.7 to 1.2."""
    a, b, c = COEFFICIENTS
    wide = stack if stack.shape[1] <= stack.shape[2] else stack.mT
    x = wide / (wide.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide is stack else x.mT


class Muon(torch.optim.Optimizer):
    """For parameters that are matrices. lr: about the size of a step relative to a matrix of orthogonal rows."""

    def __init__(self, parameters: Iterable[Tensor], lr: float = 0.02, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = []
                for parameter in parameters:
                    state = self.state[parameter]
                    mean = state.setdefault("mean", torch.zeros_like(parameter))
                    mean.lerp_(parameter.grad, 1 - group["momentum"])
                    updates.append(parameter.grad.lerp(mean, group["momentum"]))
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(parameters, orthogonalized(torch.stack(updates)), strict=True):
                    parameter.add_(update, alpha=-scale)
