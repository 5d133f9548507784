"""Which sensors a card keeps: those that every file has, and those that vary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tsadbench.base.dataset import Cause, LabelledDataset
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.cards.sections import Columns
from tsadbench.datasets.reading.header import matching
from tsadbench.errors import DataError
from tsadbench.utils.parameters import nearest
from tsadbench.utils.text import first_of

SHOWN = 20
# What columns with labels are called.
LABEL = re.compile(
    r"anomal|label|lable|attack|fault|outlier|defect|failure|^(class|target|y|status|event)$", re.IGNORECASE
)
# A similar name is searched for among so many at most: that takes long.
_SEARCHED_NAMES = 1000


def sensors_of(headers: Sequence[Sequence[str]], times: Sequence[str], columns: Columns) -> tuple[list[str], list[str]]:
    """Return a data set's sensors, and those that are left out because some files lack them."""
    in_some = _sensors_in(list(dict.fromkeys(name for header in headers for name in header)), times, columns)
    in_all = set(headers[0]).intersection(*headers[1:])
    optional = set(matching(in_some, columns.optional)) - in_all
    # A sensor that the card names is one even if the first file lacks it, which is then told.
    elsewhere = set(in_some).difference(headers[0])
    named = [name for name in columns.sensors if name in elsewhere]
    kept = [name for name in _sensors_in([*headers[0], *named], times, columns) if name not in optional]
    return kept, [name for name in in_some if name in optional]


def unmatched(headers: Sequence[Sequence[str]], columns: Columns) -> Iterator[tuple[str, str]]:
    """Yield each key of the card that has a pattern of sensors which fits no column of any file, and what to say."""
    names = dict.fromkeys(name for header in headers for name in header)
    for key, patterns in (("sensors", columns.sensors), ("optional", columns.optional)):
        for pattern in patterns:
            if not matching(names, [pattern]):
                near = nearest(pattern, tuple(names)) if len(names) <= _SEARCHED_NAMES else f" among {len(names)}"
                yield key, f"columns.{key}: no column is called {pattern!r}{near}"


def called_like_labels(sensors: Sequence[str], columns: Columns) -> list[str]:
    """Return the sensors that are called like labels and that the card does not name one by one."""
    return [name for name in sensors if LABEL.search(name) and name not in columns.sensors]


def _sensors_in(header: Sequence[str], times: Sequence[str], columns: Columns) -> list[str]:
    used = {*times, columns.label, *matching(header, columns.ignore)}
    return matching((name for name in header if name and name not in used), columns.sensors)


def without_constant(data: LabelledDataset) -> LabelledDataset:
    """Return a data set without the sensors that are constant over all training rows; a note names them.

    Its prior and its causes name the other sensors only. A DataError if all sensors are constant.
    """
    dataset, labels = data
    low = np.min([recording.values.min(axis=0) for recording in dataset.train], axis=0)
    high = np.max([recording.values.max(axis=0) for recording in dataset.train], axis=0)
    kept = np.flatnonzero(low < high)
    if len(kept) == len(low):
        return data
    if len(kept) == 0:
        raise DataError(
            f"data set {dataset.name!r}: all {len(low)} sensors are constant over the training rows; choose other "
            'training rows, or set columns.constant = "keep"'
        )
    sensors = tuple(dataset.sensors[place] for place in kept)
    constant = [name for name in dataset.sensors if name not in sensors]

    def reduced(recording: Recording) -> Recording:
        values = np.take(recording.values, kept, axis=1)
        values.flags.writeable = False  # so that the recording does not copy them
        return replace(recording, values=values, sensors=sensors)

    reduced_dataset = replace(
        dataset,
        train=tuple(map(reduced, dataset.train)),
        test=tuple(map(reduced, dataset.test)),
        prior=None if dataset.prior is None else without(dataset.prior, constant),
        notes=(
            *dataset.notes,
            f"sensors that are constant over all training rows are left out: {first_of(constant, SHOWN)}",
        ),
        layout=replace(dataset.layout, unused=(*dataset.layout.unused, *constant)),
    )
    causes = {
        id_: tuple(
            Cause(cause.start, cause.stop, found)
            for cause in events
            if (found := tuple(name for name in cause.sensors if name in sensors))
        )
        for id_, events in labels.causes.items()
    }
    return LabelledDataset(
        reduced_dataset, replace(labels, causes={id_: events for id_, events in causes.items() if events})
    )


def without(prior: Prior, sensors: Sequence[str]) -> Prior | None:
    """Return a prior without its couplings of these sensors; None if there is no other."""
    edges = tuple(edge for edge in prior.edges if not {edge.source, edge.target}.intersection(sensors))
    kept = tuple(sensor for sensor in prior.sensors if sensor.name not in sensors)
    return replace(prior, edges=edges, sensors=kept) if edges else None
