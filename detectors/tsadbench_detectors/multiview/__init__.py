"""A row seen in several ways, each on the scale of how rarely unseen normal rows look like that."""

from tsadbench_detectors.multiview.detector import MultiView
from tsadbench_detectors.multiview.graph_detector import MultiViewGraph

__all__ = ["MultiView", "MultiViewGraph"]
