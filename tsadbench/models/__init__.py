"""Fitted detectors in files: fitting one, keeping it, and scoring new rows with it, whole files or row by row."""

from tsadbench.models.fitting import fit_model
from tsadbench.models.model import Answers, Model, load_model
from tsadbench.models.stream import Stream

__all__ = ["Answers", "Model", "Stream", "fit_model", "load_model"]
