"""The hostile detectors are files for boxes, not modules of tests: pytest must not import them."""

from __future__ import annotations

collect_ignore_glob = ["detectors/*", "preamble.py"]
