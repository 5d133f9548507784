"""Rankings of a store's rows, in all their formats."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from tsadbench.analysis.significance.suite_ranks import SuiteRanking
from tsadbench.analysis.significance.tables import FLOOR
from tsadbench.base.protocol import Metric
from tsadbench.errors import UsageError
from tsadbench.leaderboard.formatting import csv_text, number, plain, plain_table
from tsadbench.leaderboard.marks import INCOMPLETE
from tsadbench.leaderboard.presentation import Table
from tsadbench.utils.parameters import nearest, normal_label

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One row of a ranking.

    Parameters
    ----------
    label, seeds, floor
        The detector; how many seeds it was run with; whether it is a floor.
    value
        Its metric, the mean over seeds.
    rank
        Among all rows, floors included: 1 is the best; equal values share their mean rank.
    coverage
        Smallest share of the evaluated rows that have a score.
    low, high, rank_low, rank_high
        The 90 % intervals of value and rank over the resamples; None without them.
    beats_floors
        In which share of the resamples it is better than the best floor of that resample; None for floors.
    """

    label: str
    seeds: int
    floor: bool
    value: float
    rank: float
    coverage: float
    low: float | None = None
    high: float | None = None
    rank_low: float | None = None
    rank_high: float | None = None
    beats_floors: float | None = None

    @property
    def cells(self) -> list[str]:
        """Rank, detector, seeds and value as text."""
        marks = f"{f' {FLOOR}' if self.floor else ''}{f' {INCOMPLETE}' if self.coverage < 1.0 else ''}"
        return [f"{self.rank:g}", f"{self.label}{marks}", str(self.seeds), number(self.value, 4)]

    @property
    def stable_cells(self) -> list[str]:
        """The same with intervals, and how often it beats the floors."""
        rank, label, seeds, value = self.cells
        return [
            rank,
            "-" if self.rank_low is None else f"{self.rank_low:g} to {self.rank_high:g}",
            label,
            seeds,
            value,
            "-" if self.low is None or self.high is None else f"{number(self.low, 4)} to {number(self.high, 4)}",
            "-" if self.beats_floors is None else f"{self.beats_floors:.0%}",
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The rows of one data set, protocol and split, by rank.

    Parameters
    ----------
    dataset, protocol, protocol_version, split, metric
        What they are ranked on, by which version of the rules they are judged, and by what they are ranked.
    places
        By rank.
    n_sessions, n_recordings
        How many sessions and recordings the split has; None if nothing is resampled.
    n_resamples
        In how many resamples the metric is defined; None if nothing is resampled.
    notes
        What readers must know.
    """

    dataset: str
    protocol: str
    protocol_version: int
    split: str
    metric: Metric
    places: tuple[Place, ...]
    n_sessions: int | None = None
    n_recordings: int | None = None
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Title, header and rows."""
        rules = f"{self.protocol} {self.protocol_version}"
        title = f"{self.metric.title} on {self.dataset}, split {self.split}, protocol {rules}"
        header = ["rank", "detector", "seeds", self.metric.title]
        if self.n_resamples is None:
            return title, header, [place.cells for place in self.places]
        title += f": {self.n_recordings} recordings, {self.n_sessions} sessions"
        header = [*header[:1], "90 % interval", *header[1:], "90 % interval", "beats the best floor"]
        return title, header, [place.stable_cells for place in self.places]

    def only(self, labels: Container[str]) -> Ranking:
        """Return the ranking with some rows; ranks stay those among all rows."""
        return replace(self, places=tuple(place for place in self.places if place.label in labels))


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rankings of a store's trials, one for each data set, protocol and split.

    Parameters
    ----------
    rankings
        In the order of the tables.
    resampled
        How many resamples were asked for; None if nothing was resampled.
    over_all
        Rankings over several data sets: one a suite, or one a protocol.
    """

    rankings: tuple[Ranking, ...]
    resampled: int | None = None
    over_all: tuple[SuiteRanking, ...] = ()

    def only(self, detectors: Sequence[str]) -> Ranks:
        """Return the rankings with some rows, by label; ranks stay those among all rows."""
        labels = [normal_label(one) for one in detectors]
        known = dict.fromkeys(place.label for ranking in self.rankings for place in ranking.places)
        known |= dict.fromkeys(standing.label for one in self.over_all for standing in one.standings)
        for label in labels:
            if label not in known:
                raise UsageError(f"there is no row {label!r}{nearest(label, known)}")
        return replace(
            self,
            rankings=tuple(ranking.only(labels) for ranking in self.rankings),
            over_all=tuple(ranking.only(labels) for ranking in self.over_all),
        )

    @property
    def legend(self) -> str:
        """What the columns mean."""
        shared = "Rank among all rows, floors (marked †) included; equal values share their mean rank."
        if any(place.coverage < 1.0 for ranking in self.rankings for place in ranking.places):
            shared += f" {INCOMPLETE} left rows without a score."
        if self.resampled is None:
            return shared
        return (
            f"{shared} Intervals: 5 % to 95 % over {self.resampled:,} resamples of the sessions, and of the recordings "
            "within each, seeds averaged. Beats the best floor: the share of the resamples in which the row is better "
            "than whichever floor is best in that resample."
        )

    def to_json(self) -> str:
        """Return all of it as one JSON object."""
        tables = [
            {
                **asdict(ranking),
                "metric": ranking.metric.name,
            }
            for ranking in self.rankings
        ]
        content = {"schema": SCHEMA, "resamples": self.resampled, "rankings": tables}
        over_all = [ranking.content() for ranking in self.over_all]
        return json.dumps({**content, **({"over_all": over_all} if over_all else {})}, indent=1) + "\n"

    def to_csv(self) -> str:
        """Return the rows of each data set as CSV, full precision, empty without resamples."""
        return csv_text(self.to_frame())

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per ranking and detector."""
        shared = ("dataset", "protocol", "protocol_version", "split")
        return pd.DataFrame.from_records(
            [
                {
                    **{name: getattr(ranking, name) for name in shared},
                    "metric": ranking.metric.name,
                    **asdict(place),
                }
                for ranking in self.rankings
                for place in ranking.places
            ]
        )

    def to_markdown(self) -> str:
        """Return the tables and their notes as Markdown."""
        parts = [ranking.to_markdown() for ranking in self.over_all]
        for ranking in self.rankings:
            title, header, rows = ranking.table
            table = plain_table(header, rows) if rows else []
            parts += [f"### {plain(title)}", "", *table, *(f"\n{plain(note)}" for note in ranking.notes), ""]
        return "\n".join([*parts, self.legend]) + "\n"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()
