"""Former modules of tsadbench and where their contents are: importing one fails with a line that says so."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# By new package: former modules and packages directly below tsadbench, "old" or "old>new". A former package is named
# without its modules, since Python imports the package first.
_MOVED = {
    "": "explain>analysis.explanation.explain graphs>analysis.sensor_graph prose>analysis.explanation.narrative",
    "analysis": "audit diagnostics significance",
    "base": "dataset detector family>detector_library prior protocol recording row_layout>file_format "
    "scores>score_checks space>search_space",
    "cli": "doctor new>scaffold",
    "datasets": "cards",
    "execution": "cluster>dask_backend config engine>runner manifest>provenance plan plans>plan record store>run_store "
    "trial",
    "leaderboard": "latex regress>regression render>terminal rows>ranking selection",
    "reporting": "plot>figures report>html",
    "results": "stored>shipped verify>verification",
    "studies": "reproduction",
    "utils": "arrays files>atomic_files importing>import_lookup parameters problems>issues progress "
    "segments>mask_runs sources>code_fingerprint threads toml_file>toml",
}  # fmt: skip
_PACKAGES = {"box": "sandbox", "checks": "testing", "models": "serving"}


def new_name(module: str) -> str | None:
    """Return where a former module below tsadbench, given without that prefix, has moved; None if there was none."""
    for package, moves in _MOVED.items():
        for move in moves.split():
            old, _, new = move.partition(">")
            if old == module:
                return ".".join(part for part in ("tsadbench", package, new or old) if part)
    return f"tsadbench.{_PACKAGES[module]}" if module in _PACKAGES else None


class MovedModules:
    """An import finder for the end of ``sys.meta_path``: it finds nothing, and explains what has moved."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG004 - the interface of finders
        target: ModuleType | None = None,  # noqa: ARG004
    ) -> ModuleSpec | None:
        """Raise a ModuleNotFoundError that names the new module if ``name`` is a former one."""
        package, _, module = name.partition(".")
        new = new_name(module) if package == "tsadbench" else None
        if new is not None:
            # Without `name=`, which would let `from tsadbench import detector` replace the message by its own.
            raise ModuleNotFoundError(f"{name} has moved to {new}; plugins import from tsadbench and tsadbench.base")
        return None
