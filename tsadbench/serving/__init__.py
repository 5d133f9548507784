"""Model files: fit a detector, keep it in a file, and score new rows with it, whole files or row by row."""

from tsadbench.serving.fitting import fit_model
from tsadbench.serving.model import Model, ScoredRows, load_model
from tsadbench.serving.stream import Stream

__all__ = ["Model", "ScoredRows", "Stream", "fit_model", "load_model"]
