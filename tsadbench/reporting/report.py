"""A run store as one HTML page that needs no network: tables, differences, seeds, speed, curves, every recording."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from tsadbench._version import __version__
from tsadbench.analysis.significance.compare import compare
from tsadbench.analysis.significance.rank import rank
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import MissingExtraError, TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.selection import all_records, select
from tsadbench.reporting.tables import ENVIRONMENT, finding, frame_of, html_table, ranked
from tsadbench.results.judging import judge_outdated
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.extras import extra
from tsadbench.utils.files import write_file
from tsadbench.utils.parameters import nearest, normal_label
from tsadbench.utils.progress import progress

# Detectors whose curves and recordings a page shows by default: as many as a figure has colours.
BEST = 12
# Detectors that are compared if nobody names any: of more pairs some differ by chance.
_COMPARED = 5
# Data sets and protocols with figures, rows of a table, trials whose manifest a page lists, numbers in its recordings.
_BOARDS, _ROWS, _TRIALS, _NUMBERS = 8, 400, 300, 1_200_000


def write_report(
    store: Store,
    load: Callable[[str], LabelledDataset],
    folder: Path,
    *,
    labels: Sequence[str] = (),
    best: int | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Path:
    """Write ``index.html`` into a folder, and return the file.

    Parameters
    ----------
    store
        The trials to report on.
    load
        Returns the data set of a name; if it raises a TsadbenchError, the page shows the reason instead of curves and
        recordings.
    folder
        Created if it is missing.
    labels
        The detectors whose curves and recordings the page holds; by default the best ones and the best floor.
    best
        How many detectors that are, 12 by default; 0 takes all.
    tell
        Receives a line about what is left out.

    Raises
    ------
    UsageError
        If the store holds no trial, or none of a label, or the file cannot be written.
    MissingExtraError
        If matplotlib or plotly is not installed.
    """
    with extra("a report", "report"):
        from plotly.offline import get_plotlyjs
    records, _ = judge_outdated(all_records(store), store, load)
    known = dict.fromkeys(record.label for record in records)
    named = [normal_label(one, known) for one in labels]
    for label in named:
        if label not in known:
            raise UsageError(f"the store has no detector {label!r}{nearest(label, known)}")
    frame = frame_of(Leaderboard.from_records(records, checked_in=store.path))
    tables = list(frame.groupby(["dataset", "rules"], sort=False))
    if len(tables) > _BOARDS:
        tell(f"{len(tables)} data sets and protocols: the first {_BOARDS} have figures")
    boards = []
    for place, ((dataset, rules), rows) in enumerate(tables):
        progress(place, len(tables), f"{dataset}, {rules}")
        of_board = [record for record in records if (record.dataset, record.rules) == (dataset, rules)]
        board = _Board(store, rows, of_board, f"b{place}")
        boards.append(board.content(load, named, BEST if best is None else best, figures=place < _BOARDS))
    text = ENVIRONMENT.get_template("report.html.j2").render(
        title=store.path.name,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        n_trials=len(records),
        boards=boards,
        broken=list(store.broken.items())[:_TRIALS],
        ranks=_ranks(store, n_datasets=frame["dataset"].nunique()),
        # Base64 and JSON hold no character that ends a script.
        plotly=Markup(_packed(get_plotlyjs())),
        scripts=Markup("\n".join(_source(name) for name in ("tables.js", "report.js"))),
        styles=Markup("\n".join(_source(name) for name in ("tables.css", "report.css"))),
    )
    return write_file(folder / "index.html", text)


class _Board:
    """One data set and protocol of a report."""

    def __init__(self, store: Store, rows: pd.DataFrame, records: Sequence[Record], key: str) -> None:
        self.store, self.rows, self.records, self.key = store, rows, records, key
        self.first = records[0]
        self.split = str(rows["split"].iloc[0])
        self.main = ranked(rows[rows["split"] == self.split])

    def content(
        self, load: Callable[[str], LabelledDataset], named: Sequence[str], best: int, *, figures: bool
    ) -> dict[str, object]:
        """Return what the template shows of it."""
        splits = list(self.rows.groupby("split", sort=False))
        tables = [
            (split, finding(rows), html_table(ranked(rows).head(_ROWS), f"{self.first.dataset}, {split}"), len(rows))
            for split, rows in splits
        ]
        content: dict[str, object] = {
            "key": self.key,
            "dataset": self.first.dataset,
            "rules": self.first.rules,
            "tables": tables,
            "most_rows": _ROWS,
            "trials": [_manifest(record) for record in self.records[:_TRIALS]],
            "n_trials": len(self.records),
        }
        chosen = self.chosen(named, best)
        if not figures or not chosen:
            return content
        content["figures"] = self.table_figures(chosen)
        try:
            data = load(self.first.dataset)
            here = select(
                self.store, dataset=data, protocol=self.first.protocol, detectors=chosen, split=self.known(data)
            )
            results = here.results(data)
        except MissingExtraError:
            raise
        except TsadbenchError as error:
            return {**content, "missing": str(error)}
        compared = self.compared(data, named or [*chosen[:_COMPARED], *chosen[-1:]])
        return {
            **content,
            "about": data.dataset.description.strip().partition("\n\n")[0][:600],
            "compared": compared,
            "curves": self.curves(results),
            "shown": list(dict.fromkeys(result.record.label for result in results)),
            "recordings": Markup(_packed(self.recordings(results))),
            "names": list(results[0].recordings),
        }

    def chosen(self, named: Sequence[str], best: int) -> list[str]:
        """Return the detectors whose curves are shown: those named, else the best ones and the best floor."""
        ok = self.main[self.main["status"] == "ok"]
        if named:
            return [label for label in named if label in set(ok["detector"])]
        detectors, floors = ok[~ok["floor"]]["detector"], ok[ok["floor"]]["detector"]
        return [*(detectors.head(best) if best else detectors), *(floors.head(1) if best else floors)]

    def known(self, data: LabelledDataset) -> str | None:
        """Return the first split as the data set knows it, or None."""
        return self.split if self.split in data.dataset.splits else None

    def table_figures(self, chosen: Sequence[str]) -> list[tuple[str, Markup]]:
        """Return seeds and speed."""
        from tsadbench.reporting import figures

        ranks = {label: place for place, label in enumerate(self.main["detector"])}
        trials = figures.trial_frame(sorted(self.records, key=lambda record: ranks[record.label]), self.split)
        metric = "auprc" if "auprc" in trials else str(trials.columns[6])
        shown = trials[trials["detector"].isin(chosen) | trials["floor"]]
        drawn = []
        with _panel(self.key, "seeds", 4.8, 0.9 + 0.19 * shown["detector"].nunique()) as (ax, svg):
            figures.seeds(shown, ax, metric)
        drawn.append(("Seed by seed: a dot a seed, a bar their mean; the best floor is dashed", svg[0]))
        for cost in ("fit_seconds", "rows_per_second"):
            with _panel(self.key, cost, 4.8, 3.4) as (ax, svg):
                figures.speed(trials, ax, metric, cost)
            drawn.append(
                ("What quality costs: no row beats those on the solid line in both; dotted: detectors", svg[0])
            )
        return drawn

    def compared(self, data: LabelledDataset, labels: Sequence[str]) -> dict[str, object]:
        """Return what ``tsadbench compare`` says of some detectors, with its figure."""
        from tsadbench.reporting.figures.significance import comparison_figure

        labels = list(dict.fromkeys(labels))[:BEST]
        if len(labels) < 2:
            return {"missing": "Two detectors or more can be compared."}
        try:
            found = compare(
                self.store, labels, dataset=data, protocol=self.first.protocol, split=self.known(data)
            )  # fmt: skip
            with _panel(self.key, "differences", 6.4, 1.3 + 0.24 * len(labels)) as (ax, svg):
                comparison_figure(found, ax)
                if ax.get_legend_handles_labels()[0]:
                    ax.figure.legend(loc="outside lower left", ncols=4)
        except MissingExtraError:
            raise
        except TsadbenchError as error:
            return {"missing": str(error)}
        return {"svg": svg[0], "sentences": found.conclusions, "notes": found.notes}

    def curves(self, results: Sequence[TrialResult]) -> list[tuple[str, Markup]]:
        """Return ROC and precision-recall curves, and the thresholds; a reason where a split has no curve."""
        from tsadbench.reporting import figures

        drawn = []
        for title, draw in (("ROC", figures.roc), ("Precision and recall", figures.precision_recall)):
            try:
                with _panel(self.key, title[:3], 6.2, 3.6) as (ax, svg):
                    draw(results, ax, self.split).set_title("")
                drawn.append((title, svg[0]))
            except UsageError as error:
                drawn.append((str(error), Markup("")))
        return drawn

    def recordings(self, results: Sequence[TrialResult]) -> str:
        """Return each recording's interactive figure as JSON, by its place."""
        from tsadbench.reporting.figures.interactive import interactive

        firsts = {result.record.label: result for result in reversed(results)}
        firsts = dict(reversed(firsts.items()))
        names = list(results[0].recordings)
        n_series = len(names) * (results[0].data.dataset.test[0].n_sensors + 2 * len(firsts))
        n_points = min(max(_NUMBERS // n_series, 100), 4000)
        shown = [
            interactive({label: one.recordings[name] for label, one in firsts.items()}, n_points).to_json()
            for name in names
        ]
        return f"[{','.join(shown)}]"


@contextmanager
def _panel(key: str, name: str, width: float, height: float) -> Iterator[tuple[object, list[Markup]]]:
    """Give the axes of a new figure, and a list that holds its SVG when the block ends."""
    from matplotlib.figure import Figure

    from tsadbench.reporting.figures.style import inline_svg, style

    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        svg: list[Markup] = []
        yield figure.add_subplot(), svg
        svg.append(Markup(inline_svg(figure, f"{key}-{name}")))


def _ranks(store: Store, *, n_datasets: int) -> tuple[str, Markup] | None:
    """Return the mean ranks over the data sets of a store, with a title; None of a single one."""
    from tsadbench.reporting.figures import mean_ranks

    if n_datasets < 2:
        return None
    try:
        (found, *_) = rank([store]).over_all
    except (TsadbenchError, ValueError):
        return None
    frame = found.to_frame().head(60)
    with _panel("ranks", "r", 6.4, 1.0 + 0.19 * len(frame)) as (ax, svg):
        mean_ranks(frame, ax)
    return found.title, svg[0]


def _manifest(record: Record) -> dict[str, object]:
    """Return what repeats a trial, as the page lists it."""
    facts = {"parameters": dict(record.parameters), "seal": record.seal_reason or record.seal, **record.manifest}
    reason = f"{record.status}: {record.reason}" if record.reason else record.status
    return {
        "name": f"{record.label}, seed {record.seed}: {reason}",
        "facts": json.dumps(facts, indent=1, ensure_ascii=False),
    }


def _packed(text: str) -> str:
    """Return a text as base64 of its gzip, which browsers unpack."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _source(name: str) -> str:
    loader = ENVIRONMENT.loader
    assert loader is not None
    return loader.get_source(ENVIRONMENT, name)[0]
