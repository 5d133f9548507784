"""Do detectors differ: paired tests over recordings, effect sizes, intervals, and when there are too few to tell."""

from tsadbench.significance.comparison import Comparison, Entrant
from tsadbench.significance.inference import Inference, infer
from tsadbench.significance.matrix import Matrix

__all__ = ["Comparison", "Entrant", "Inference", "Matrix", "infer"]
