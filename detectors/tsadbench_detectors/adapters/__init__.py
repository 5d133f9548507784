"""Detectors of other libraries under our contract: a class for each of theirs, made when it is asked for."""
