from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.loopback import Server, serving, write_catalogue, write_skab


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the published SKAB by a small fake, with an empty cache; return the fake's folder."""
    folder = write_skab(tmp_path / "published")
    write_catalogue(tmp_path / "catalogue", folder)
    monkeypatch.setattr("tsadbench.datasets.shipped.CATALOGUE", tmp_path / "catalogue")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda project: tmp_path / "cache" / project)
    for variable in ("TSADBENCH_DATA", "TSADBENCH_SKAB_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)  # between two attempts
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def cache(published: Path, tmp_path: Path) -> Path:
    """Return where the cache's SKAB belongs; nothing is there yet."""
    return tmp_path / "cache" / "tsadbench" / "skab"


@pytest.fixture
def server(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve the small SKAB, and download files from this server."""
    with serving(published) as server:
        monkeypatch.setenv("TSADBENCH_SKAB_URL", server.url)
        yield server
