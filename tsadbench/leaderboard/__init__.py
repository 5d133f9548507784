"""Ranked tables of trials: selecting, ranking, rendering, comparing with a baseline."""
