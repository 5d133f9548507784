"""Detectors of a run store beside rows of a leaderboard that ships with the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import by_label, ranked_rows
from tsadbench.leaderboard.selection import Selection, records_of_one, select
from tsadbench.leaderboard.shipped import stored_records
from tsadbench.utils.parameters import nearest, normal_label


def beside_shipped(
    runs: str | Path | Store,
    against: str,
    *,
    dataset: str | LabelledDataset | None,
    detectors: Sequence[str],
    data: str | Path | None = None,
) -> Selection:
    """Choose detectors of a run store and rows of a leaderboard that ships; of a label that both have, the store's.

    A UsageError as `select` does, or if no leaderboard ships, or none of the detectors is in the store.
    """
    store = runs if isinstance(runs, Store) else Store.open(Path(runs))
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(directory=None if data is None else Path(data), allow_changed=True))
    name = dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset
    own = records_of_one(store, dataset=name, protocol=against)
    shipped = by_label(stored_records(own[0].dataset, against))
    stored = {record.label for record in own}
    labels = tuple(dict.fromkeys(normal_label(one, {*stored, *shipped}) for one in detectors))
    in_store = [label for label in labels if label in stored]
    for label in labels:
        if label not in in_store and label not in shipped:
            known = tuple(dict.fromkeys([*(record.label for record in own), *shipped]))
            raise UsageError(
                f"neither {store.path} nor the leaderboard has a detector {label!r}{nearest(label, known)}"
            )
    if not in_store:
        raise UsageError(f"none of {', '.join(labels)} is in {store.path}: name one of your own as well")
    selection = select(store, dataset=dataset, protocol=against, detectors=in_store, data=data, with_failed=True)
    chosen = [record for label in labels if label not in in_store for record in shipped[label]]
    beside = ranked_rows(chosen, selection.split, {record.trial for record in chosen})
    rows = {row.label: row for row in (*beside, *selection.rows)}
    return replace(
        selection,
        rows=tuple(rows[label] for label in labels if label in rows),
    )
