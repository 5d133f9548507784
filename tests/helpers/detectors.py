"""The class of a detector, in this process."""

from __future__ import annotations

from tsadbench.base.detector import Detector
from tsadbench.registry import locate


def load_detector(target: str) -> type[Detector]:
    return locate(target).load()
