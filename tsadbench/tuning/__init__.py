"""Tuning without labels: chooses parameters by training recordings alone."""
