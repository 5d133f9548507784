"""What to cite for a table: its data sets, its detectors and this bench, as BibTeX."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tsadbench import datasets as shipped
from tsadbench._version import __version__
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import TsadbenchError
from tsadbench.registry import entries as registered
from tsadbench.results.admission import known_detector
from tsadbench.utils.bibtex import Entry, bibliography, of_dataset, of_detector, of_program
from tsadbench.utils.docstrings import sections
from tsadbench.utils.parameters import parse_label

_SHIPPED = Path(shipped.__file__).parent


def citations(datasets: Iterable[str], labels: Iterable[str], *, trust_code: bool = False) -> tuple[str, list[str]]:
    """Return a BibTeX file, and the names for which nothing is known.

    Parameters
    ----------
    datasets
        Names.
    labels
        Of detectors.
    trust_code
        Whether to import detectors that are not registered here.
    """
    own = {entry.name for entry in registered("detectors") if entry.package == "tsadbench"}
    entries: list[Entry] = []
    unknown: list[str] = []
    for name in dict.fromkeys(datasets):
        if citation := citation_of(name):
            entries.append(of_dataset(name, citation))
        else:
            unknown.append(name)
    for name in dict.fromkeys(parse_label(label).target for label in labels):
        detector = known_detector(name, trust_code=trust_code)
        if detector is None or not (name in own or detector.traits.paper or "References" in sections(detector.doc)):
            unknown.append(name)
        else:
            entries.append(of_detector(name, detector.traits.paper, detector.doc))
    return bibliography([*entries, of_program(__version__)]), unknown


def citation_of(dataset: str) -> str:
    """Return a data set's citation, without its files if it ships; empty if it has none or cannot be loaded."""
    for card in (_SHIPPED / f"{dataset}.toml", _SHIPPED / "cards" / f"{dataset}.toml"):
        if card.is_file():
            return str(tomllib.loads(card.read_text(encoding="utf-8")).get("citation", ""))
    try:
        loader = load_dataset(dataset)
        module = sys.modules.get(getattr(loader, "__module__", ""))
        return str(getattr(module, "CITATION", "")) or loader(DataOptions()).dataset.citation
    except TsadbenchError:
        return ""
