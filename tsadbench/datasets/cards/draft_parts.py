"""The parts of a drafted card: which files train, and which test."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tsadbench.datasets.cards.look import Look
from tsadbench.datasets.cards.sorting import FEWEST_TEST_ROWS, Sorted, first_anomaly
from tsadbench.utils.toml import toml_value


def parts_of(found: Sorted) -> Iterable[str]:
    """Yield the lines of ``[train]`` and ``[test]``, or of ``[single]``."""
    if not found.single:
        for role, looks in (("train", found.train), ("test", found.test)):
            if looks:
                yield from _part(role, looks)
        return
    first = {look.file.name: first_anomaly(look, found.normal) for look in found.single}
    numbered = all(look.file.train_rows is not None for look in found.single)
    if numbered or min(first.values()) >= 2 * FEWEST_TEST_ROWS:
        yield "# No file seems to be for training alone: the first rows of each train, the others are tested."
        yield "[single]"
        yield f"files = {toml_value(_patterns(found.single))}"
        yield from _variables(found.single)
        if numbered:
            yield "train_rows = 'tr_(\\d+)'  # in the file's name"
        else:
            rows, reason = min(first.values()) // 2, "half of what lies before the first anomaly"
            yield f'train_rows = {rows}  # {reason}; or "before first event"'
        yield ""
        return
    # Some files have hardly a row before their first anomaly, so that no number of rows fits them all.
    begun = [look for look in found.single if first[look.file.name] > 0]
    tested = [look for look in found.single if look.table.n_rows - first[look.file.name] >= FEWEST_TEST_ROWS]
    yield "# No file seems to be for training alone: the rows before the first anomaly train, the others are tested."
    yield from _part("train", begun, 'rows = "before first event"')
    if tested:
        yield from _part("test", tested)


def splits_of(found: Sorted) -> Iterable[str]:
    """Yield the lines of ``[splits]``: the folders of test files, if there are several."""
    folders = list(dict.fromkeys(PurePosixPath(look.file.name).parent.as_posix() for look in found.test))
    names = [PurePosixPath(folder).name for folder in folders]
    if len(folders) < 2 or "." in folders or len(set(names)) < len(names) or "overall" in names:
        return
    yield ""
    yield "# Groups of test recordings that tables show apart."
    yield "[splits]"
    for folder, name in zip(folders, names, strict=True):
        yield f"{toml_value(name)} = {toml_value([glob.escape(folder) + '/*'])}"


def _part(role: str, looks: Sequence[Look], more: str = "") -> Iterable[str]:
    if role == "train":
        yield "# Normal rows only: a training file whose label says otherwise is refused."
    yield f"[{role}]"
    yield f"files = {toml_value(_patterns(looks))}"
    yield from _variables(looks)
    if more:
        yield more
    yield ""


def _variables(looks: Sequence[Look]) -> Iterable[str]:
    variables = list(dict.fromkeys(name for look in looks for name in look.variables))
    if variables:
        yield f"variables = {toml_value(variables)}  # the widest arrays"


def _patterns(looks: Sequence[Look]) -> list[str]:
    """Return patterns that match these files and no others, or the files themselves if a folder holds both kinds."""
    patterns: dict[str, None] = {}
    chosen = {look.file.name for look in looks}
    for look in looks:
        path = PurePosixPath(look.file.name)
        beside = {
            other.name
            for other in look.file.path.parent.iterdir()
            if other.suffix == path.suffix and not other.is_dir()
        }
        above = "" if str(path.parent) == "." else f"{path.parent.as_posix()}/"
        alone = {f"{above}{name}" for name in beside} <= chosen
        pattern = f"{glob.escape(above)}*{path.suffix}" if alone and len(beside) > 1 else glob.escape(look.file.name)
        patterns[pattern] = None
    return list(patterns)
