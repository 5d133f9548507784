"""Normal distributions with a diagonal covariance, for networks that give mean and logarithm of the variance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The variance of a standardised sensor may fall to exp(-6): a network that is more certain about a sensor that hardly
# moves would make the loss diverge.
LARGEST_LOG_VARIANCE = 6.0


def clamped(log_variance: Tensor) -> Tensor:
    """Return logarithms of variances, none below -6 or above 6."""
    return log_variance.clamp(-LARGEST_LOG_VARIANCE, LARGEST_LOG_VARIANCE)


def surprise(values: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return ``-log N(values; mean, exp(log_variance))``, element by element."""
    doubled = torch.addcmul(log_variance, (values - mean).square(), (-log_variance).exp())
    return 0.5 * doubled + 0.5 * math.log(2 * math.pi)


def drawn(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Return the draws that standard normal ``noise`` gives, with gradients by both parameters."""
    return torch.addcmul(mean, (0.5 * log_variance).exp(), noise)


def fixed_noise(seed: int, *shape: int) -> Tensor:
    """Return standard normal numbers that depend only on the seed, on the CPU."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
