"""The hostile detectors are files that boxes get, not modules of tests: nothing may import them here."""

from __future__ import annotations

collect_ignore_glob = ["detectors/*", "preamble.py"]
