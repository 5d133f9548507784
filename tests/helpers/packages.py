"""Packages as pip would install them."""

from __future__ import annotations

from pathlib import Path

from tsadbench import registry


def write_package(folder: Path, name: str, entry_points: str, module: str) -> None:
    """Write a package of one module with its metadata, as pip installs it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    (folder / f"{name}.py").write_text(module)
    registry._group.cache_clear()
