"""Shared by detectors that train a network: windows, training, a fast recurrent layer. Needs the extra "deep"."""
