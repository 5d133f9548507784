"""Do detectors differ: paired tests over sessions, effect sizes, intervals, and when there are too few to tell."""

from tsadbench.analysis.significance.comparison import Comparison
from tsadbench.analysis.significance.inference import Inference, infer
from tsadbench.analysis.significance.per_recording import ComparedDetector

__all__ = ["ComparedDetector", "Comparison", "Inference", "infer"]
