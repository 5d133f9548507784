"""Gradients of activations by their inputs, from their outputs: PyTorch's own operators, which write into a tensor."""

from __future__ import annotations

import torch

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input
