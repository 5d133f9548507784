"""Detectors of other libraries under the contract of this one: a class for each of theirs, made when it is asked for."""
