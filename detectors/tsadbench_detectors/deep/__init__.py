"""What the detectors that train a network share: windows, training, a fast recurrent layer. Needs the extra "deep"."""
