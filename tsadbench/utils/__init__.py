"""Small helpers that do not know detectors: arrays, files, text, TOML, progress."""
