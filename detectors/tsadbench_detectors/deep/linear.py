"""Matrix products by oneDNN, for networks that write out their own gradient."""

from __future__ import annotations

import torch
from torch import Tensor


def linear(inputs: Tensor, weight: Tensor) -> Tensor:
    """Return ``inputs @ weight.t()``, as `torch.nn.functional.linear` does; without a gradient of its own.

    PyTorch multiplies float32 matrices on a CPU by MKL, which leaves half of the vector units of AMD's processors
    unused. oneDNN, by which PyTorch convolves, uses them on any processor.

    Parameters
    ----------
    inputs, weight
        [n, k] and [m, k]. Either may be the transposed view of a contiguous tensor.
    """
    if _HAS_ONEDNN and inputs.device.type == "cpu" and inputs.dtype == torch.float32:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, None, "none", [], "")
        return product
    return torch.mm(inputs, weight.t())


# The operator that torch.compile uses instead of a linear layer; PyTorch for macOS lacks it.
_HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")
