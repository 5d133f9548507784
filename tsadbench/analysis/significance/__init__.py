"""Do detectors differ: paired tests over recordings, effect sizes, intervals, and when there are too few to tell."""

from tsadbench.analysis.significance.comparison import Comparison, Entrant
from tsadbench.analysis.significance.inference import Inference, infer
from tsadbench.analysis.significance.matrix import Matrix

__all__ = ["Comparison", "Entrant", "Inference", "Matrix", "infer"]
