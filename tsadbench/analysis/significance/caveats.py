"""What has to be known to read a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tsadbench.analysis.significance.inference import Inference
from tsadbench.analysis.significance.matrix import Clusters
from tsadbench.analysis.significance.pairs import LEAST_FOR_BCA
from tsadbench.analysis.significance.selection import Selection
from tsadbench.base.protocol import Metric
from tsadbench.leaderboard.notes import notes_on
from tsadbench.results.trial_result import protocol_of

# Named beforehand, for all data sets and protocols: whoever tests every metric finds a difference in one of them.
PRIMARY = "auprc"


def on_detectors(selection: Selection) -> Iterator[str]:
    """Say which detectors failed, and which of them leak."""
    yield from selection.failures.values()
    for label, records in selection.records.items():
        if records[0].leaky:
            yield f"{label} is leaky, only to compare: it uses the {records[0].leaky}."


def on_metric(metric: Metric) -> Iterator[str]:
    """Say what the metric is not."""
    if metric.name != PRIMARY:
        yield (
            f"The primary metric, named beforehand, is {PRIMARY}: {metric.name} describes. Had it been chosen for what "
            f"it shows, its p-values would be worth nothing."
        )
    if metric.oracle:
        yield f"{metric.title} is chosen with the test labels: an upper bound, not a result."
    if metric.better == "lower":
        yield f"A lower {metric.title} is better: a negative difference speaks for the first detector."


def on_recordings(
    selection: Selection, left_out: Mapping[str, str], sharing: Clusters, *, independent: bool
) -> Iterator[str]:
    """Say which recordings are left out, and which are taken together."""
    for reason, count in Counter(left_out.values()).items():
        names = ", ".join(one for one, why in left_out.items() if why == reason)
        yield f"{count} of the split's recordings left out ({names}): {reason}."
    together = [" + ".join(members) for members in sharing if len(members) > 1]
    if not together:
        return
    if independent:
        yield f"Taken as independent though they share rows: {'; '.join(together)}. P-values and intervals flatter."
    else:
        yield f"Recordings that share rows count once, by their mean: {'; '.join(together)}."
    if any(recording.time is None for recording in selection.data.dataset.test):
        yield (
            "Recordings have no time, so rows were compared by values alone: a system at rest repeats them honestly. "
            "Where that joins what is independent, say so (--independent)."
        )


def on_fits(selection: Selection) -> Iterator[str]:
    """Say where recordings have a fit, or more, in common."""
    protocol = protocol_of(selection.first)
    n_rows = {recording.id: recording.n_rows for recording in selection.data.dataset.test}
    episodes = list(protocol.episodes(selection.data.dataset))
    if any(place.start for episode in episodes for place in protocol.places(episode, n_rows)):
        yield (
            f"Protocol {selection.first.protocol} joins the recordings into one series: windows cross their "
            f"borders, so the first rows of each are scored with rows of another. They are less independent than they "
            f"count here."
        )
    if len(episodes) == 1 and len(n_rows) > 1:
        yield (
            "One fit a seed scored all recordings: they tell how a difference varies over what is tested, not over "
            "what is trained on."
        )


def on_units(found: Inference) -> Iterator[str]:
    """Say where units are too few for the better interval."""
    n = len(found.units.units)
    if n == 1:
        yield "One independent unit has no interval."
    elif n < LEAST_FOR_BCA:
        yield f"Fewer than {LEAST_FOR_BCA} independent units: the intervals are percentile ones, and likely too short."


def on_trials(selection: Selection) -> Iterator[str]:
    """Return what a leaderboard of these trials says of their data, versions and threads."""
    yield from map(str, notes_on([record for records in selection.records.values() for record in records]))
