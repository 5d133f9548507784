"""What readers must know to interpret a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tsadbench.analysis.audit.overlap import recordings_sharing_rows
from tsadbench.analysis.significance.inference import Inference
from tsadbench.analysis.significance.pairs import LEAST_FOR_BCA
from tsadbench.analysis.significance.per_recording import takes_no_part
from tsadbench.base.dataset import Dataset
from tsadbench.base.protocol import Metric, Protocol
from tsadbench.datasets.sessions import STEPS
from tsadbench.leaderboard.marks import GUARDED, UNCALIBRATED, UNFORGETTING, marks_of, mixed_seals, origin_of
from tsadbench.leaderboard.notes import notes_on
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.shipped import DECIMALS
from tsadbench.utils.grouping import grouped

# Named beforehand, for all data sets and protocols: whoever tests every metric finds a difference in one of them.
PRIMARY = "auprc"


def on_detectors(rows: Sequence[Row]) -> Iterator[str]:
    """Say which failed, leak, leave rows without a score, did not pass the replay audit whole, or are alone guarded."""
    mixed = mixed_seals(rows)
    yield from (takes_no_part(row) for row in rows if not row.ok)
    for row in rows:
        if row.leaky:
            yield f"{row.label} is leaky, only to compare: it uses the {row.leaky}."
        if row.coverage is not None and not row.complete:
            yield (
                f"{row.label} left {1 - row.coverage:.2%} of the evaluated rows of split {row.split} without a score: "
                "they count as the worst case."
            )
        marks = marks_of(row, mixed=mixed)
        yield from (f"{row.label}: {marks[one]}." for one in (UNFORGETTING, UNCALIBRATED, GUARDED) if one in marks)


def on_stored(rows: Sequence[Row]) -> Iterator[str]:
    """Say which rows were made earlier, and how exact their values are."""
    for origin, alike in grouped([row for row in rows if row.stored], origin_of).items():
        names = ", ".join(row.label for row in alike)
        yield f"{names}: stored, made earlier with {origin}; values of all rows are rounded to {DECIMALS} decimals."


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


def on_left_out(left_out: Mapping[str, str]) -> Iterator[str]:
    """Say which recordings are left out, and why."""
    for reason, count in Counter(left_out.values()).items():
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        yield f"{count} of the split's recordings left out ({names}): {reason}."


def on_sessions(dataset: Dataset, sessions: Mapping[str, Sequence[str]], *, independent: bool) -> Iterator[str]:
    """Say where the sessions come from, which recordings they join, and which of them are not independent."""
    names = {member: session for session, members in sessions.items() for member in members}
    counted = [recording for recording in dataset.test if recording.id in names]
    if independent or dataset.sessions:
        # Machines of different entities may repeat a row and share nothing.
        sharing = [
            f"{pair.first} and {pair.second}"
            for of_entity in grouped(counted, lambda one: dataset.entities.get(one.id)).values()
            for pair in recordings_sharing_rows((), of_entity, {})
            if names[pair.first] != names[pair.second]
        ]
        if independent:
            yield "Each recording is taken for a session of its own (--independent): p-values and intervals flatter."
        if sharing:
            yield f"Not independent, because they share rows: {', '.join(sharing)}. P-values and intervals flatter."
        return
    together = "; ".join(" + ".join(members) for members in sessions.values() if len(members) > 1)
    if together:
        yield (
            f"The data set declares no sessions. Recordings that share rows or follow each other within {STEPS} "
            f"sampling steps count as one: {together}."
        )
    else:
        yield (
            "The data set declares no sessions: each recording counts as one. If they are not independent, p-values "
            "and intervals flatter."
        )
    if any(recording.time is None for recording in dataset.test):
        yield (
            "Recordings have no time, so rows were compared by values alone: a system at rest repeats them honestly. "
            "If that joins what is independent, declare the sessions, or say so (--independent)."
        )


def on_fits(dataset: Dataset, protocol: Protocol, name: str) -> Iterator[str]:
    """Say whether recordings have a fit, or a scored series, in common; `name` is the protocol's in tables."""
    n_rows = {recording.id: recording.n_rows for recording in dataset.test}
    episodes = list(protocol.episodes(dataset))
    if any(place.start for episode in episodes for place in protocol.places(episode, n_rows)):
        yield (
            f"Protocol {name} joins the recordings into one series: windows cross their borders, so the first rows of "
            "each are scored with rows of another. They are less independent than this comparison assumes."
        )
    if len(episodes) > 1 and {episode.id for episode in episodes} == dataset.by_entity.keys():
        yield (
            "Each entity has a model of its own, which scored its sessions. Means here are over sessions, so an entity "
            "counts as often as it has some; those of tables are over entities."
        )
    if len(episodes) == 1 and len(n_rows) > 1:
        yield (
            "One fit per seed scored all recordings: they show how a difference varies with what is tested, not with "
            "what is trained on."
        )


def on_units(inference: Inference) -> Iterator[str]:
    """Say whether units are too few for the better interval."""
    if inference.tested and len(inference.units) < LEAST_FOR_BCA:
        yield f"Fewer than {LEAST_FOR_BCA} sessions: the intervals are percentile ones, and likely too short."


def on_trials(rows: Sequence[Row]) -> Iterator[str]:
    """Say what a leaderboard of these trials says of their data, versions and threads."""
    yield from map(str, notes_on([record for row in rows for record in row.records]))
