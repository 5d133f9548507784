"""Combines several statistics of a row, each converted to a tail probability on held-out normal rows."""

from tsadbench_detectors.multiview.detector import MultiView
from tsadbench_detectors.multiview.graph_detector import MultiViewGraph

__all__ = ["MultiView", "MultiViewGraph"]
