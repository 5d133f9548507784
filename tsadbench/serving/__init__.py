"""Model files: fit a detector, store it in a file, and score new rows with it, whole files or row by row."""

from tsadbench.serving.fitting import fit_model
from tsadbench.serving.model import Model, load_model
from tsadbench.serving.scoring import Stream, score_rows

__all__ = ["Model", "Stream", "fit_model", "load_model", "score_rows"]
