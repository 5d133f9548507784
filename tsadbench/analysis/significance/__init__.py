"""Do detectors differ: paired tests over sessions, effect sizes, intervals, and when there are too few to tell."""

from tsadbench.analysis.significance.compare import Comparison
from tsadbench.analysis.significance.inference import Inference, infer

__all__ = ["Comparison", "Inference", "infer"]
