"""Tuning without labels: parameters chosen by what training recordings alone can tell."""
