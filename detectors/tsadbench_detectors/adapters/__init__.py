"""Detectors of other libraries under our contract: a class for each of theirs, created on demand."""
