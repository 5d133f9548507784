"""The device on which a network computes."""

from __future__ import annotations

import platform

import torch

from tsadbench import UsageError


def find_device(name: str) -> torch.device:
    """Return the device "cpu", "cuda", "cuda:1", ..., or for "auto" a GPU if there is one, else the CPU.

    Raises a UsageError if this machine has no such device.
    """
    here = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    if name == "auto":
        return torch.device("cuda" if len(here) > 1 else "cpu")
    if name not in here and not (name == "cuda" and len(here) > 1):
        raise UsageError(
            f"device must be 'auto' or one of this machine's ({platform.node()}), {here}, found {name!r}; "
            f"choose one of these"
        )
    return torch.device(name)
