"""A normalising flow of planar maps."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class PlanarFlow(nn.Module):
    """A chain of planar maps ``z + u tanh(w'z + b)``, each invertible (Rezende and Mohamed, ICML 2015).

    Parameters
    ----------
    latent_size, flows
        Numbers of variables and of maps.
    """

    def __init__(self, latent_size: int, flows: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(0.1 * torch.randn(flows, latent_size))
        self.weight = nn.Parameter(torch.randn(flows, latent_size) / math.sqrt(latent_size))
        self.bias = nn.Parameter(torch.zeros(flows))

    def forward(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(z) and the logarithm of its Jacobian's determinant, [...], for z [..., latent_size]."""
        # w'u above -1 makes each map invertible (the paper's appendix A.1).
        along = (self.direction * self.weight).sum(dim=1, keepdim=True)
        lacking = functional.softplus(along) - 1.0 - along
        directions = self.direction + lacking * self.weight / self.weight.square().sum(dim=1, keepdim=True)
        flat, bends = latents.reshape(-1, latents.shape[-1]), []
        for u, w, b in zip(directions, self.weight, self.bias, strict=True):
            bends.append(torch.addmv(b, flat, w).tanh())
            flat = torch.addr(flat, bends[-1], u)
        inner = (directions * self.weight).sum(dim=1, keepdim=True)
        log_determinants = torch.log1p(inner * (1.0 - torch.stack(bends).square()))
        return flat.view(latents.shape), log_determinants.sum(dim=0).view(latents.shape[:-1])
