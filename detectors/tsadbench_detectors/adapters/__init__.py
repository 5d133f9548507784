"""Detectors of other libraries: a class with our interface for each of theirs, created on demand."""
