"""Count what the data sets of all suites contain, for their pages (``make pages``).

It writes ``contents.json``, from which docs/readme.py makes the pages' tables. A data set whose files are not on this
machine keeps its figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tsadbench import DataNotFoundError, LabelledDataset, Recording, UsageError
from tsadbench.api import SUITES, load_dataset
from tsadbench.base import mask_runs

FILE = Path(__file__).with_suffix(".json")


def counted(loaded: LabelledDataset) -> dict[str, Any]:
    """Return the figures of a data set."""
    data, labels = loaded.dataset, loaded.labels
    sessions = data.session_of

    def part(name: str, recordings: Iterable[Recording], *, labelled: bool = True) -> dict[str, Any]:
        chosen = list(recordings)
        masks = [labels.rows[one.id] for one in chosen] if labelled else []
        return {
            "name": name,
            "recordings": len(chosen),
            "sessions": len({sessions[one.id] for one in chosen}),
            "rows": sum(one.n_rows for one in chosen),
            "anomalous": sum(int(mask.sum()) for mask in masks),
            "events": sum(len(mask_runs(mask)) for mask in masks),
        }

    return {
        "licence": data.licence,
        "sensors": len(data.sensors),
        "train": part("training", data.train, labelled=False),
        "test": part("test", data.test),
        "splits": [
            part(split, (one for one in data.test if one.id in members))
            for split, members in data.splits.items()
            if split != "overall"
        ],
        "models": len({*data.entities.values()}) or 1,
        "events_with_causes": sum(map(len, labels.causes.values())),
        "couplings": 0 if data.prior is None else len(data.prior.edges),
    }


def main() -> None:
    """Write the figures of all data sets whose files are here."""
    contents = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    names = SUITES["all"].datasets
    for name in names:
        try:
            contents[name] = counted(load_dataset(name))
        except (DataNotFoundError, UsageError) as error:
            print(f"{name} is left as it is: {error}")
    ordered = {name: contents[name] for name in names if name in contents}
    FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
