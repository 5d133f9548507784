"""Where the leaderboards lie that ship with tsadbench."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# A wheel holds the leaderboards inside the package, where setup.py puts them; a checkout has them beside it.
_INSTALLED = _PACKAGE / "shipped"
LEADERBOARDS = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "leaderboards"
