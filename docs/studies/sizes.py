"""Default sizes of networks beside the published ones, by normal training rows: what docs/studies/sizes.md shows.

    python docs/studies/sizes.py            measure what is missing, then write the page from all records
    python docs/studies/sizes.py --write    write the page from the records alone

A network is fitted on training rows but a block that is held out, and measured on that block: by its own loss, and by
the AUPRC with which its scores find faults planted there, as `tsadbench tune` plants them. Test recordings are scored
too, for the record: nothing is chosen by them. Records lie beside this script, in sizes.jsonl; a record that is there
is not measured again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from study_files import Record, parser_of, read_records, write_page, write_records

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.plan import contender_from_label
from tsadbench.leaderboard.ranking import Summary
from tsadbench.registry import load_protocol
from tsadbench.tuning.faults import KINDS, Plant, with_faults
from tsadbench.tuning.folds import Fold, Reach, make_folds
from tsadbench.tuning.objective import auprc
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.markdown import table_lines

PAGE = Path(__file__).with_suffix(".md")
RECORDS = PAGE.with_suffix(".jsonl")


class Division(NamedTuple):
    """How a data set's training recordings are cut, and how often each kind of fault is planted.

    Parameters
    ----------
    blocks
        The last of so many blocks of each training recording is held out.
    reach
        The most rows that a score sees, with any of the data set's cases: all are evaluated on the same rows.
    draws
        How often each kind of fault is planted into the block, one per 200 rows.
    """

    blocks: int
    reach: Reach
    draws: int


DIVISIONS = {"skab": Division(5, Reach(101, 0), 2), "tep": Division(3, Reach(31, 0), 20)}
KIND_NAMES = tuple(kind.name for kind in KINDS)
TESTED = ("test AUROC", "test AUPRC")

# Ways of scoring that one fit offers.
SCORINGS: Mapping[str, tuple[str, ...]] = {
    "grelen": tuple(f"statistic={name}" for name in ("reference", "difference", "deviation"))
}
DEFAULT, PAPER = "size=default", "size=paper"


class Case(NamedTuple):
    """One fit.

    Parameters
    ----------
    dataset, detector
        Names.
    arguments
        As in a label, "size=paper".
    seed
        The fit's.
    """

    dataset: str
    detector: str
    arguments: str
    seed: int


# Networks that are dear to train are compared after as many steps at every size.
SEEDS = (0, 1)
CASES = [
    Case(dataset, name, arguments, seed)
    for seed in SEEDS
    for dataset, name, variants in (
        ("skab", "vanilla-ae", (DEFAULT, PAPER)),
        ("skab", "lstm-vae", (DEFAULT, PAPER)),
        ("skab", "mscred", (DEFAULT, "channels=32", PAPER)),
        ("tep", "vanilla-ae", (DEFAULT, PAPER)),
        ("tep", "lstm-vae", (DEFAULT, "hidden_size=32,latent_size=4", PAPER)),
        ("skab", "grelen", ("max_steps=300,size=default", "max_steps=300,size=paper")),
        ("skab", "mtad-gat", ("max_steps=150,size=default", "max_steps=150,size=paper")),
    )
    for arguments in variants
]


def measured(case: Case, data: LabelledDataset) -> Iterator[Record]:
    """Yield a record for each way of scoring that a case's fit offers."""
    division = DIVISIONS[case.dataset]
    (episode,) = load_protocol("strict")().episodes(data.dataset)
    fold = make_folds(episode.train, division.blocks, division.reach)[-1]
    contender = contender_from_label(f"{case.detector}[{case.arguments}]", data.dataset).construction
    detector: Detector = contender.cls(**{**contender.arguments, "seed": case.seed})
    start = time.process_time()
    detector.fit(fold.train)
    seconds = time.process_time() - start
    loss = detector.held_out_loss(fold.held_out, fold.context)
    weights = sum(weight.numel() for weight in detector.network_.parameters())  # type: ignore[attr-defined]
    for scoring in SCORINGS.get(case.detector, ("",)):
        if scoring:
            key, value = scoring.split("=")
            detector.set_params(**{key: value})
        yield {
            "dataset": case.dataset,
            "detector": case.detector,
            "arguments": case.arguments,
            "scoring": scoring,
            "seed": case.seed,
            "weights": weights,
            "fit_seconds": round(seconds, 1),
            "training": dict(detector.training_facts()),
            "held_out_loss": loss,
            "planted": planted(detector, fold, division.draws),
            **tested(detector, data, division.reach.before),
        }


def planted(detector: Detector, fold: Fold, n_draws: int) -> dict[str, float]:
    """Return the AUPRC by kind of fault, the mean over draws."""
    plant = Plant.of(fold.train)
    found = {kind.name: list[float]() for kind in KINDS}
    for draw in range(n_draws):
        for number, kind in enumerate(KINDS):
            scores, rows = list[FloatArray](), list[FloatArray]()
            for i, recording in enumerate(fold.held_out):
                faulty = with_faults(recording, fold.context, kind, plant, np.random.default_rng([draw, number, i]))
                scores.append(detector.score(faulty.recording)[fold.context :])
                rows.append(faulty.rows[fold.context :])
            found[kind.name].append(auprc(np.concatenate(scores), np.concatenate(rows)))
    return {name: statistics.fmean(values) for name, values in found.items()}


def tested(detector: Detector, data: LabelledDataset, first: int) -> dict[str, float]:
    """Return AUROC and AUPRC of all test recordings' rows from ``first`` on."""
    scores = [detector.score(recording)[first:] for recording in data.dataset.test]
    labels = [data.labels.rows[recording.id][first:] for recording in data.dataset.test]
    pooled = np.concatenate(labels), np.concatenate(scores)
    return {"test_auroc": float(roc_auc_score(*pooled)), "test_auprc": float(average_precision_score(*pooled))}


def kept() -> list[Record]:
    """Return the records that there are."""
    return read_records(RECORDS)


def block(name: str) -> list[str]:
    """Return a table, Markdown lines: the records of a data set of this name, or the defaults beside the others."""
    return differences() if name == "differences" else measurements(name)


def differences() -> list[str]:
    """Return the table of what each default has beside each other width, over the seeds that both have."""
    header = ["data set", "detector", "default beside", "seeds", "held-out loss, ratio", "planted, difference"]
    records = {
        (*(one[key] for key in ("dataset", "detector", "arguments", "scoring")), one["seed"]): one for one in kept()
    }
    rows = []
    for dataset, detector, arguments in dict.fromkeys(case[:3] for case in CASES):
        if DEFAULT in arguments:
            default = arguments
            continue
        for scoring in SCORINGS.get(detector, ("",)):
            of_default, of_other = (
                {seed: records[*key, seed] for seed in SEEDS if (*key, seed) in records}
                for key in ((dataset, detector, default, scoring), (dataset, detector, arguments, scoring))
            )
            both = [(of_default[seed], of_other[seed]) for seed in SEEDS if seed in of_default and seed in of_other]
            ratios = [one["held_out_loss"] / other["held_out_loss"] for one, other in both]
            gaps = [_planted(one) - _planted(other) for one, other in both]
            if both:
                words = " ".join(f"`{word}`" for word in (arguments, scoring) if word)
                texts = (" ".join(f"{ratio:.2f}" for ratio in ratios), " ".join(f"{gap:+.4f}" for gap in gaps))
                rows.append([dataset, f"`{detector}`", words, str(len(both)), *texts])
    return table_lines(header, rows)


def _planted(record: Record) -> float:
    return statistics.fmean(record["planted"].values())


def measurements(dataset: str) -> list[str]:
    """Return the table of a data set's records."""
    header = ["detector", "with", "weights", "fit (CPU s)", "steps", "held-out loss", "planted", *KIND_NAMES, *TESTED]
    rows = [
        row
        for detector, arguments in dict.fromkeys(case[1:3] for case in CASES if case.dataset == dataset)
        for scoring in SCORINGS.get(detector, ("",))
        for row in _row(dataset, detector, arguments, scoring)
    ]
    return table_lines(header, rows)


def _row(dataset: str, *of: str) -> Iterator[list[str]]:
    """Yield the row of a detector with its arguments and a way of scoring, if there are records of it."""
    keys = ("detector", "arguments", "scoring")
    records = [one for one in kept() if one["dataset"] == dataset and tuple(one[key] for key in keys) == of]
    if not records:
        return
    planted = [[one["planted"][name] for one in records] for name in KIND_NAMES]
    detector, arguments, scoring = of
    yield [
        f"`{detector}`",
        " ".join(f"`{words}`" for words in (arguments, scoring) if words),
        f"{records[0]['weights']:,}",
        f"{statistics.fmean(one['fit_seconds'] for one in records):.0f}",
        " ".join(str(one["training"]["steps"]) for one in records),
        " ".join(f"{one['held_out_loss']:.4g}" for one in records),
        _over_seeds([_planted(one) for one in records]),
        *map(_over_seeds, planted),
        *(_over_seeds([one[name] for one in records]) for name in ("test_auroc", "test_auprc")),
    ]


def _over_seeds(values: Sequence[float]) -> str:
    return Summary(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None).text()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = parser_of(__doc__)
    parser.add_argument("--write", action="store_true", help="measure nothing")
    if not parser.parse_args(arguments).write:
        torch.set_num_threads(1)
        known = {(one["dataset"], one["detector"], one["arguments"], one["seed"]) for one in kept()}
        for case in CASES:
            if (case.dataset, case.detector, case.arguments, case.seed) not in known:
                write_records(RECORDS, [*kept(), *measured(case, load_dataset(case.dataset)(DataOptions()))])
    write_page(PAGE, block)


if __name__ == "__main__":
    main()
