"""What a prior is worth: which graphs are run, for any detector with a prior, and what the page reads off trials."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.data import make_data
from tests.helpers.records import record
from tsadbench import UsageError
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.prior import Edge, Prior
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.pumploop import load
from tsadbench.execution.records_file import read_records
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.studies.prior_sensitivity import PriorSensitivity, measure, of_records, page, variants

DOCS = Path(__file__).parents[2] / "docs"

PERTURBED = [
    "the prior", "the prior, half of its edges left out", "the prior, half as many invented",
    "the prior, half turned round",
]  # fmt: skip


def test_what_a_prior_is_worth_is_read_off_the_trials():
    """A page of made-up trials, whose intervals and sentence are computed by hand."""
    data = load(DataOptions()).dataset
    graphs = variants(data)
    assert list(graphs) == [
        *PERTURBED, "as many edges, drawn", "no graph", "every pair, weighted by correlation",
        "every pair, unweighted",
    ]  # fmt: skip
    shifts = {0: 0.0, 1: -0.2, 2: 0.3}
    made = {}
    for number, name in enumerate(graphs):
        values = [0.5 + shifts.get(number, 0.0) + 0.01 * seed * (1 if number != 4 else -1) for seed in range(3)]
        made[name] = [record(name, seed=seed, auroc=value, auprc=value) for seed, value in enumerate(values)]
    text = page([PriorSensitivity(data, made)], "tsadbench prior sensitivity", "trials.jsonl")
    assert "[every trial's record](trials.jsonl)" in text
    assert "makes 14 such comparisons, so each has an interval of 99.64%" in text  # 1 - .05 / 14
    assert "DPR-GM under protocol `strict`" in text
    assert "\n## pumploop\n" in text
    # Mean .51 of .50, .51, .52; half-width t(.975, 2) x .01 / sqrt(3) = 4.3027 x .0057735.
    assert "| the prior | 3 | 0.5100 [0.4852, 0.5348] | 0.5100 [0.4852, 0.5348] |  |  |" in text
    assert "| the prior, half of its edges left out | 3 | 0.3100 [0.2852, 0.3348]" in text
    assert "-0.2000 [-0.2000, -0.2000]" in text
    assert "better than the prior: the prior, half as many invented." in text
    assert "worse: the prior, half of its edges left out." in text


@pytest.mark.processes
def test_any_detector_that_takes_a_prior_is_run_under_each_graph(tmp_path):
    data = make_data()
    prior = Prior((Edge("a", "b"), Edge("b", "c")), origin="by hand")
    data = LabelledDataset(replace(data.dataset, prior=prior), data.labels)
    detector = "tests.helpers.couplings:Couplings"
    found = measure(data, seeds=2, run=partial(run_plan, store=Store.create(tmp_path)), detector=detector)
    assert list(found.records) == PERTURBED
    labels = [{one.label for one in records} for records in found.records.values()]
    assert labels[0] == {"tests.helpers.couplings:Couplings[prior=small]"}
    assert all(len(of_graph) == 1 for of_graph in labels)
    assert len(set.union(*labels)) == 4
    assert all([one.status for one in records] == ["ok"] for records in found.records.values())  # it draws nothing
    text = page([found], "by hand", "trials.jsonl", detector)
    assert "`tests.helpers.couplings:Couplings` under protocol `strict`" in text
    for name, records in found.records.items():
        assert f"| {name} | 1 | {records[0].splits['overall'].metrics['auroc']:.4f} [" in text


def test_an_interval_against_the_prior_is_corrected_for_the_number_of_comparisons():
    """Differences .00, .01, .02 of one graph in two metrics: t(1 - .05 / 4, 2) = 6.2053, times .01 / sqrt(3)."""
    data = load(DataOptions()).dataset
    made = {
        "the prior": [record("a", seed=seed, auroc=0.5, auprc=0.5) for seed in range(3)],
        "no graph": [record("b", seed=seed, auroc=0.5 + 0.01 * seed, auprc=0.5 + 0.01 * seed) for seed in range(3)],
    }
    text = page([PriorSensitivity(data, made)], "by hand", "trials.jsonl")
    assert "| +0.0100 [-0.0258, +0.0458] | +0.0100 [-0.0258, +0.0458] |" in text
    assert "not to be told from it: no graph." in text


def test_fewer_graphs_are_run_if_they_are_named():
    data = load(DataOptions()).dataset
    assert list(variants(data, graphs=["none", "drop"])) == [
        "the prior", "the prior, half of its edges left out", "no graph",
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"expected a graph among \['drop', .*, found 'nome'"):
        variants(data, graphs=["nome"])


@pytest.mark.skab
def test_the_committed_page_is_what_its_records_say(skab_directory):
    """docs/prior-sensitivity.md, from docs/prior-sensitivity.jsonl alone."""
    text = (DOCS / "prior-sensitivity.md").read_text(encoding="utf-8")
    command = text.partition("Written by `")[2].partition("`")[0]
    records = read_records(DOCS / "prior-sensitivity.jsonl")
    assert {record.status for record in records} == {"ok"}
    names = dict.fromkeys(record.dataset for record in records)
    data = [load_dataset(name)(DataOptions(directory=skab_directory)) for name in names]
    assert {record.manifest["data_hash"] for record in records} == {one.dataset.content_hash for one in data}
    results = [of_records(one, records) for one in data]
    assert page(results, command, "prior-sensitivity.jsonl") == text


def test_without_a_prior_there_is_nothing_to_measure():
    with pytest.raises(UsageError, match="data set 'small' has no prior"):
        variants(make_data().dataset)
    with pytest.raises(UsageError, match="t2 takes no prior"):
        variants(load(DataOptions()).dataset, "t2")


def test_a_wrong_number_of_jobs_is_refused_before_anything_runs(tsadbench, tmp_path):
    done = tsadbench(
        "prior", "sensitivity", "--dataset", "pumploop", "--jobs", 0, "--out", tmp_path, "--write", tmp_path / "page.md"
    )  # fmt: skip
    assert done.code == 2
    assert "jobs: expected a number greater than or equal to 1, found 0" in done.err
