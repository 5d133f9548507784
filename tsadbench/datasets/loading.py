"""Finds the loaders of data sets by name, suite, or path of a card."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.errors import DataError, PluginError, UsageError, about
from tsadbench.registry import entries, locate_entry
from tsadbench.utils.parameters import parse_label, parse_value, require_known

if TYPE_CHECKING:
    from tsadbench.base.dataset import DataOptions, LabelledDataset, Loader

CARD_ENDING = ".toml"  # names with this ending are paths of cards


def load_dataset(name: str) -> Loader:
    """Return the loader of the data set of this name, ``NAME[key=value]``, or of the card at this path.

    Raises a UsageError if there is no such data set, a PluginError or a MissingExtraError as `locate` does.
    """
    if name.endswith(CARD_ENDING):
        return card_loader(Path(name))
    label = parse_label(name)
    loader: Loader = locate_entry("datasets", label.target).load("datasets")
    if not callable(loader):
        raise PluginError(f"data set {label.target!r}: expected a function that loads it, found {loader!r}")
    if not label.arguments:
        return loader
    signature, values = inspect.signature(loader, eval_str=True), {}
    known = {one.name: one for one in signature.parameters.values() if one.kind == one.KEYWORD_ONLY}
    require_known(label.arguments, known, f"data set {label.target!r} has no parameter")
    for key, text in label.arguments.items():
        values[key] = parse_value(key, known[key].annotation, text, f"data set {label.target!r}")
    return partial(loader, **values)


def loader(
    datasets: Iterable[str | Path | LabelledDataset] = (), directory: Path | None = None
) -> tuple[tuple[str, ...], Callable[[str], LabelledDataset]]:
    """Return the names of data sets (given as names, cards or data), and a cached function that loads one by name."""
    from tsadbench.base.dataset import DataOptions, LabelledDataset

    with about("dataset"):
        loaded = [load_dataset(str(one))(DataOptions()) if str(one).endswith(CARD_ENDING) else one for one in datasets]
    known = {one.dataset.name: one for one in loaded if isinstance(one, LabelledDataset)}
    names = tuple(one.dataset.name if isinstance(one, LabelledDataset) else str(one) for one in loaded)

    @cache
    def load(name: str) -> LabelledDataset:
        return known[name] if name in known else load_dataset(name)(DataOptions(directory, allow_changed=True))

    return names, load


def card_loader(path: Path) -> Loader:
    """Return the loader of the card at a path. The loader raises a UsageError if the card is unsuitable."""

    def load(options: DataOptions) -> LabelledDataset:
        from tsadbench.datasets.reader import load_card

        if path.suffix != CARD_ENDING or path.is_dir():
            raise UsageError(f"{path}: expected a card, a file that ends in {CARD_ENDING}; tsadbench data new FOLDER")
        if options.directory is not None:
            raise UsageError(f"it is for named data sets; the files of {path} are next to the card", field="data")
        loaded = load_card(path)
        if (name := loaded.dataset.name) in {entry.name for entry in entries("datasets")}:
            raise UsageError(f"{path}: the name {name!r} belongs to a registered data set; choose another")
        return loaded

    return load


def check_labels(data: LabelledDataset) -> None:
    """Raise a DataError unless all test rows or none are labelled, and causes refer to test rows and sensors."""
    dataset, labels, where = data.dataset, data.labels, f"data set {data.dataset.name!r}:"
    expected = {recording.id: recording.n_rows for recording in dataset.test}
    found = {name: len(rows) for name, rows in labels.rows.items()}
    if found and [*expected.items()] != [*found.items()]:
        wrong = next((name for name in (*expected, *found) if expected.get(name) != found.get(name)), None)
        if wrong is None:
            raise DataError(f"{where} the labels are not in the order of the test recordings")
        raise DataError(f"{where} {wrong!r} has {expected.get(wrong, 'no')} rows, but {found.get(wrong, 'no')} labels")
    if dict(labels.splits) != dict(dataset.splits):
        raise DataError(f"{where} its splits and those of its labels differ")
    for name, cause in ((name, cause) for name, causes in labels.causes.items() for cause in causes):
        inside = 0 <= cause.start < cause.stop <= expected.get(name, 0)
        if not inside or not cause.sensors or not set(cause.sensors) <= set(dataset.sensors):
            raise DataError(f"{where} {cause} of {name!r}: expected rows of a test recording and its sensors")


@dataclass(frozen=True, slots=True)
class Suite:
    """Data sets that are run under one name and ranked together."""

    name: str
    version: int  # raise it when a data set joins or leaves, since ranks of two versions are not comparable
    datasets: Sequence[str]  # names of registered data sets, in the order of tables
    splits: Mapping[str, str] = field(default_factory=dict)  # data set -> ranked split, if not "overall"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


_LISTED = tomllib.loads(Path(__file__).with_name("suites.toml").read_text(encoding="utf-8"))
SUITES: Mapping[str, Suite] = {name: Suite(name, **one) for name, one in _LISTED.items()}


def suite_named(name: str) -> Suite:
    """Return the suite of this name; a UsageError if there is none."""
    require_known([name], SUITES, "there is no suite")
    return SUITES[name]
