"""Batch normalisation that accepts batches of a single row."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` that uses its running moments for a single row in training, which has no variance.

    Parameters
    ----------
    num_features
        Width of a row.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - PyTorch's name
        """Return the rows [n_rows, num_features] normalised."""
        if self.training and len(input) == 1:
            return nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
            )
        return torch.as_tensor(super().forward(input))
