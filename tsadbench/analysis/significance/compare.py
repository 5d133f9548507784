"""`tsadbench.compare`: from Python what ``tsadbench compare`` does on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.analysis.significance import caveats
from tsadbench.analysis.significance.comparison import Comparison
from tsadbench.analysis.significance.inference import infer
from tsadbench.analysis.significance.matrix import find_clusters
from tsadbench.analysis.significance.pairs import ROPE
from tsadbench.analysis.significance.per_recording import judge
from tsadbench.analysis.significance.selection import select
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError

# What a split of all test recordings is called.
OVERALL = "overall"


def compare(
    runs: str | Path,
    detectors: Sequence[str],
    *,
    metric: str = caveats.PRIMARY,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    split: str | None = None,
    rope: float = ROPE,
    independent: bool = False,
    data: str | Path | None = None,
) -> Comparison:
    """Compare stored detectors over recordings: tests, effect sizes, intervals; no detector runs.

    The recording is the unit of inference: each detector's metric is averaged over its seeds within a recording.
    Recordings that share rows are one cluster, and count once, by their mean.

    Parameters
    ----------
    runs
        A run store.
    detectors
        Labels of two or more, as tables show them.
    metric
        The one to test; the primary one is "auprc", for all data sets.
    dataset
        Name of the data set, the path of its card, or the data themselves; needed where the store holds several, or
        one that is not registered.
    protocol
        As tables show it; needed where the store holds several.
    split
        Whose recordings count; None: all.
    rope
        Region of practical equivalence: differences of at most this much are ties.
    independent
        Take every recording as independent, whatever rows it shares with others.
    data
        Folder with the data sets' files; None searches as the documentation says.

    Returns
    -------
    Comparison
        With ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``; a notebook shows it as tables.

    Raises
    ------
    UsageError
        If a name is wrong or missing, fewer than two detectors can be compared, or the metric is defined nowhere.
    DataError, StoreError
        If the data are not those of the trials, or a trial cannot be read.
    MissingExtraError
        If there are more than two detectors and statsmodels is not installed.

    Examples
    --------
    >>> compared = tsadbench.compare("runs", ["dprgm", "t2-q"])  # doctest: +SKIP
    >>> compared.inference.conclusions  # doctest: +SKIP
    """
    if not 0.0 <= rope < 1.0:
        raise UsageError(f"the region of practical equivalence must be at least 0 and below 1, found {rope}")
    directory = None if data is None else Path(data)
    selection = select(Path(runs), detectors, dataset=dataset, protocol=protocol, directory=directory)
    tested = selection.metric(metric)
    members = selection.members(split)
    judged = judge(selection)
    everything = judged.matrix(tested.name, members)
    kept = [one for one, defined in zip(members, everything.defined, strict=True) if defined]
    left_out = {one: judged.why_undefined(one) for one in members if one not in kept}
    if not kept:
        raise UsageError(
            f"{tested.name} is undefined on every recording of split {split or OVERALL!r} "
            f"({members[0]}: {left_out[members[0]]})"
        )
    sharing = find_clusters([one for one in selection.data.dataset.test if one.id in kept])
    clusters = tuple((one,) for one in kept) if independent else sharing
    recordings = everything.only(kept)
    found = infer(recordings, clusters, better=tested.better or "higher", rope=rope)
    return Comparison(
        dataset=selection.first.dataset,
        protocol=selection.first.protocol,
        split=split or OVERALL,
        metric=tested,
        rope=rope,
        recordings=recordings,
        clusters=clusters,
        left_out=left_out,
        entrants=tuple(
            judged.entrant(label, records, list(selection.metrics), clusters)
            for label, records in selection.records.items()
        ),
        inference=found,
        titles={name: f"{one.title}{'*' if one.oracle else ''}" for name, one in selection.metrics.items()},
        notes=(
            *caveats.on_detectors(selection),
            *caveats.on_metric(tested),
            *caveats.on_recordings(selection, left_out, sharing, independent=independent),
            *caveats.on_fits(selection),
            *caveats.on_units(found),
            *caveats.on_trials(selection),
        ),
    )
