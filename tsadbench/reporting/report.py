"""A run store as one HTML page that needs no network: tables, differences, seeds, speed, curves, every recording."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from tsadbench._version import __version__
from tsadbench.analysis.significance.compare import compare
from tsadbench.analysis.significance.rank import rank
from tsadbench.analysis.stored import all_records, select
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting import figures
from tsadbench.reporting.figures.significance import comparison_figure
from tsadbench.reporting.figures.style import panel
from tsadbench.reporting.tables import ENVIRONMENT, datatables, html_table
from tsadbench.results.judging import judge_outdated
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.extras import extra
from tsadbench.utils.files import write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import normal_label, require_known
from tsadbench.utils.progress import progress

# Number of detectors with curves and recordings by default: the number of colours in a figure.
BEST = 12
# Number of detectors compared by default: among more pairs, some differ by chance.
_COMPARED = 5
# Limits: data sets and protocols with figures, rows of a table, listed manifests, numbers in recordings.
_BOARDS, _ROWS, _TRIALS, _NUMBERS = 8, 400, 300, 1_200_000


def write_report(
    store: Store,
    load: Callable[[str], LabelledDataset],
    folder: Path,
    *,
    labels: Sequence[str] = (),
    best: int | None = None,
    datasets: Collection[str] = (),
) -> Path:
    """Write ``index.html`` into a folder, and return the file; parameters and errors as `tsadbench.Board.report`.

    ``load`` loads a data set by name. If it raises a TsadbenchError, the page shows the reason instead of curves
    and recordings. ``datasets`` limits the data sets.
    """
    with extra("a report", "report"):
        from plotly.offline import get_plotlyjs

        libraries = {"plotly": _packed(get_plotlyjs()), "datatables": _packed(datatables())}
    held = all_records(store)
    records, _ = judge_outdated([x for x in held if not datasets or x.dataset in datasets], store, load)
    known = dict.fromkeys(record.label for record in records)
    named = [normal_label(one, known) for one in labels]
    require_known(named, known, "the store has no detector")
    every = Leaderboard.of_store(store, records).alone()
    tables = grouped(every, lambda key: key[:2])
    boards = []
    for place, ((dataset, rules), keys) in enumerate(tables.items()):
        progress(place, len(tables), f"{dataset}, {rules}")
        splits = [every[key] for key in keys]
        of_board = [record for record in records if (record.dataset, record.rules) == (dataset, rules)]
        found = _tables(splits, of_board) | {"key": f"b{place}", "dataset": dataset, "rules": rules}
        chosen = _chosen(splits[0], named, BEST if best is None else best)
        if chosen and place < _BOARDS:
            found |= _figures(f"b{place}", splits[0], chosen)
            found |= _from_scores(f"b{place}", store, load, of_board[0], keys[0][2], chosen, named)
        boards.append(found)
    text = ENVIRONMENT.get_template("report.html.j2").render(
        title=store.path.name,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        n_trials=len(records),
        boards=boards,
        most_rows=_ROWS,
        broken=list(store.broken.items())[:_TRIALS],
        ranks=_ranks(store) if len(records) == len(held) and len({dataset for dataset, _ in tables}) > 1 else None,
        libraries=libraries,
    )
    return write_file(folder / "index.html", text)


def _chosen(board: Leaderboard, named: Sequence[str], best: int) -> list[str]:
    """Return the detectors with curves: those named, else the best detectors and the best floor."""
    own = board.frame[board.frame["ok"] & ~board.frame["stored"]]
    if named:
        return [label for label in named if label in set(own["detector"])]
    detectors, floors = own[~own["floor"]], own[own["floor"]]
    if best:
        detectors, floors = detectors.head(best), floors[floors["sound"]].head(1)
    return [*detectors["detector"], *floors["detector"]]


def _tables(splits: Sequence[Leaderboard], records: Sequence[Record]) -> dict[str, object]:
    """Return the tables of one data set and protocol, their notes, and the trials' provenance."""
    shown = [(board.frame["split"].iloc[0], board.shown()[0]) for board in splits]
    tables = [(split, table, html_table(table.only(range(min(len(table.frame), _ROWS))))) for split, table in shown]
    return {
        "tables": tables,
        "notes": list(dict.fromkeys(str(note) for board in splits for note in board.notes)),
        "trials": [_manifest(record) for record in records[:_TRIALS]],
        "n_trials": len(records),
    }


def _figures(key: str, board: Leaderboard, chosen: Sequence[str]) -> dict[str, object]:
    """Return the parts that need no scores: seeds and speed."""
    trials = figures.trial_frame(board)
    metric = "auprc" if "auprc" in trials else figures.metrics_of(trials)[0]
    shown = trials[trials["detector"].isin(chosen) | trials["floor"]]
    with panel(f"{key}-seeds", 4.8, 0.9 + 0.19 * shown["detector"].nunique()) as (ax, svg):
        figures.seeds(shown, ax, metric)
    drawn = [("Seed by seed: dots are seeds, bars their means; the best floor is dashed", svg[0])]
    for cost in ("fit_seconds", "rows_per_second"):
        with panel(f"{key}-{cost}", 4.8, 3.4) as (ax, svg):
            figures.speed(trials, ax, metric, cost)
        drawn.append(("Quality and cost: the Pareto front of all rows (solid) and of the detectors (dotted)", svg[0]))
    return {"figures": drawn}


def _from_scores(
    key: str,
    store: Store,
    load: Callable[[str], LabelledDataset],
    first: Record,
    split: str,
    chosen: Sequence[str],
    named: Sequence[str],
) -> dict[str, object]:
    """Return the parts that need scores and data (comparison, curves, recordings), or why they are missing."""
    try:
        data = load(first.dataset)
        of_data = split if split in data.dataset.splits else None
        here = select(store, dataset=data, protocol=first.protocol, detectors=chosen, split=of_data)
        results = here.results(data)
    except TsadbenchError as error:
        return {"missing": str(error)}
    shown = {result.record.label: result for result in reversed(results)}
    firsts = {label: shown[label] for label in chosen if label in shown}
    compared = named or [*chosen[:_COMPARED], *chosen[-1:]]
    return {
        "compared": _compared(key, store, data, first, of_data, list(dict.fromkeys(compared))[:BEST]),
        "curves": _curves(key, results, split),
        "shown": list(firsts),
        "names": list(results[0].recordings),
        "recordings": _packed(_recordings(list(firsts.values()))),
    }


def _compared(
    key: str, store: Store, data: LabelledDataset, first: Record, split: str | None, labels: Sequence[str]
) -> dict[str, object]:
    """Return the comparison of some detectors with its figure."""
    try:
        found = compare(store, labels, dataset=data, protocol=first.protocol, split=split)
        height = 1.5 + 0.24 * len(found.units if len(labels) == 2 else labels)
        with panel(f"{key}-differences", 5.2, height) as (ax, svg):
            comparison_figure(found, ax)
            if ax.get_legend_handles_labels()[0]:
                ax.figure.legend(loc="outside lower left", ncols=3)
    except TsadbenchError as error:
        return {"missing": str(error)}
    said = found.conclusions
    return {"svg": svg[0], "sentences": said, "notes": found.sentences[len(said) :]}


def _curves(key: str, results: Sequence[TrialResult], split: str) -> list[tuple[str, Markup]]:
    """Return ROC and precision-recall curves with their titles, or the reason why the split has none."""
    drawn = []
    for title, draw in (("ROC", figures.roc), ("Precision and recall", figures.precision_recall)):
        try:
            with panel(f"{key}-{title[:3]}", 4.2, 4.7 + 0.13 * len(results)) as (ax, svg):
                draw(results, ax, split).set_title("")
                ax.set_anchor("N")
                if (legend := ax.get_legend()) is not None:  # next to the curves, it is too small on a phone
                    legend.set_loc("upper left")
                    legend.set_bbox_to_anchor((0.0, -0.13))
            drawn.append((title, svg[0]))
        except UsageError as error:
            drawn.append((str(error), Markup("")))
    return drawn


def _recordings(results: Sequence[TrialResult]) -> str:
    """Return the interactive figure of each recording as JSON, in the order of the data set."""
    from tsadbench.reporting.figures.interactive import interactive

    names = list(results[0].recordings)
    n_series = len(names) * (results[0].data.dataset.test[0].n_sensors + 2 * len(results))
    n_points = min(max(_NUMBERS // n_series, 100), 4000)
    every = ({result.record.label: result.recordings[name] for result in results} for name in names)
    return f"[{','.join(interactive(one, n_points).to_json() for one in every)}]"


def _ranks(store: Store) -> tuple[str, Markup] | None:
    """Return a store's mean ranks over data sets, with a title; None unless two rows ran on several."""
    try:
        (found, *_) = rank([store.path]).over_all
    except (TsadbenchError, ValueError):
        return None
    frame = found.to_frame().dropna(subset="rank").head(60)
    with panel("ranks", 5.2, 1.0 + 0.19 * len(frame)) as (ax, svg):
        figures.mean_ranks(frame, ax)
    return found.frames[0].title, svg[0]


def _manifest(record: Record) -> tuple[str, str]:
    """Return a trial's name and provenance as JSON."""
    facts = {"parameters": dict(record.parameters), "seal": record.seal_reason or record.seal, **record.manifest}
    reason = f"{record.status}: {record.reason}" if record.reason else record.status
    return f"{record.label}, seed {record.seed}: {reason}", json.dumps(facts, indent=1, ensure_ascii=False)


def _packed(text: str) -> str:
    """Return a text as base64 of its gzip, which browsers unpack."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
