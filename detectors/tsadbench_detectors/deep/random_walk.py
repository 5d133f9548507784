"""The density of a random walk that is observed in noise: the simplest linear Gaussian state-space model."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from tsadbench.base import FloatArray


def prior_surprise(latents: Tensor) -> Tensor:
    """Return ``-log p(z)`` of latent variables' courses [n_steps, latent_size, n_windows]: random walks in noise.

    The walk starts from N(0, 1) and takes steps of N(0, 1); z is the walk plus noise of N(0, 1). A Kalman filter turns
    a course into its innovations, which are independent; their variances do not depend on the course, and the
    innovations are linear in it: one matrix serves all courses.
    """
    to_innovations, log_variances = (torch.from_numpy(values).to(latents) for values in _filter(len(latents)))
    innovations = torch.mm(to_innovations, latents.flatten(1)).view_as(latents)
    constant = 0.5 * (log_variances.sum() + len(latents) * math.log(2 * math.pi))
    return 0.5 * innovations.square().sum(dim=0) + constant


@cache
def _filter(n_steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the matrix [n_steps, n_steps] that gives the innovations in their deviations, and their log-variances."""
    # Columns: the filter's innovations of the n_steps unit vectors.
    mean, variance = np.zeros(n_steps), 1.0
    innovations, variances = [], []
    for course in np.eye(n_steps):
        innovations.append(course - mean)
        variances.append(variance + 1.0)
        gain = variance / variances[-1]
        mean = mean + gain * innovations[-1]
        variance = (1.0 - gain) * variance + 1.0
    return np.array(innovations) / np.sqrt(variances)[:, None], np.log(variances)
