"""`tsadbench compare` on stores that runs have written."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import tsadbench as package
from tests.helpers.page_tables import tables
from tests.helpers.plans import make_plan
from tests.helpers.tiny import Largest
from tests.leaderboard.test_latex import check
from tsadbench import Dataset, Detector, Labels, MissingExtraError, Recording, Traits, UsageError
from tsadbench.analysis.significance import ComparedDetector
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.presentation import Presentation

SENSORS = ("flow", "pressure")
N_ROWS = 120
QUIET = "quiet"


class Fragile(Detector):
    """The largest value of a row; with seed 1 it does not converge."""

    traits = Traits(stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, recordings):
        if self.seed == 1:
            raise RuntimeError("no convergence")

    def _score(self, recording):
        return recording.values.max(axis=1)


def plant() -> LabelledDataset:
    """Thirteen test recordings: r1 repeats 30 rows of r0, and one has no anomaly."""
    rng = np.random.default_rng(0)
    test, labels = [], {}
    for number in range(13):
        name = QUIET if number == 12 else f"r{number}"
        values = rng.normal(size=(N_ROWS, 2))
        anomalous = np.zeros(N_ROWS, dtype=bool)
        time = np.arange(N_ROWS) + 1000.0 * number
        if name != QUIET:
            anomalous[60:90] = True
            values[60:90] += rng.uniform(0.0, 3.0)
        if number == 1:
            values[:30], time[:30] = test[0].values[90:], test[0].time[90:]
        test.append(Recording(name, values, SENSORS, time=time))
        labels[name] = anomalous
    everything = tuple(labels)
    splits = {"overall": everything, "few": everything[:4], "quiet": (QUIET,)}
    train = (Recording("normal", rng.normal(size=(300, 2)), SENSORS, time=np.arange(300) - 1e6),)
    return LabelledDataset(Dataset("plant", train, tuple(test), splits), Labels(labels, splits))


PLANT = plant()
# The second is a floor that nobody has registered: plans take it as a class alone.
FIRST, SECOND = "tests.helpers.tiny:Distance", "tests.helpers.tiny:Largest"
SEEDED = "tests.helpers.tiny:Noisy"  # stochastic: a trial per seed
DETECTORS = [FIRST, SECOND, SEEDED]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with three detectors on the plant, `Noisy` with two seeds, and one detector of which a seed failed."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    plan = make_plan([FIRST, Largest, SEEDED, Fragile], dataset=PLANT, floors=False, seeds=2, timeout=120)
    run_plan(plan, Store.create(folder), jobs=2)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pumploop") / "runs"
    plan = make_plan([FIRST, Largest, "all-positive"], dataset="pumploop", floors=False, timeout=120)
    run_plan(plan, Store.create(folder), jobs=2)
    return folder


def compare(store: Path, *detectors: str, **options):
    return package.compare(store, detectors, dataset=PLANT, **options)


class TestNumbers:
    def test_they_come_from_stored_scores_seeds_averaged_within_a_recording(self, made):
        found = compare(made, SEEDED, FIRST)
        store = Store.open(made)
        expected = {}
        for label in (SEEDED, FIRST):
            of_seeds = [store.scores(record.trial) for record in store.records() if record.label == label]
            assert len(of_seeds) == (2 if label == SEEDED else 1)
            for names in [("r0", "r1"), *((name,) for name in PLANT.labels.rows if name != QUIET)]:
                anomalous = np.concatenate([PLANT.labels.rows[name][30:] for name in names])
                values = [
                    average_precision_score(anomalous, np.concatenate([one[f"test/all/{name}"][30:] for name in names]))
                    for one in of_seeds
                ]
                expected[names, label] = np.mean(values)
        assert tuple(found.recordings.index) == tuple(f"r{number}" for number in range(12))
        for unit, values in found.recordings.to_dict("index").items():
            assert values == pytest.approx({label: expected[(unit,), label] for label in (SEEDED, FIRST)})
        (pair,) = found.inference.pairs
        # The two that share rows are judged together, as a split is: their rows are pooled.
        sessions = [("r0", "r1"), *((f"r{number}",) for number in range(2, 12))]
        differences = [expected[names, SEEDED] - expected[names, FIRST] for names in sessions]
        assert pair.differences == pytest.approx(differences)
        assert pair.mean_difference == pytest.approx(np.mean(differences))
        assert pair.n_units == 11

    def test_recordings_that_share_rows_count_once_unless_told_otherwise(self, made):
        found = compare(made, SECOND, FIRST)
        assert found.sessions["r0 and 1 more"] == ("r0", "r1")
        assert len(found.sessions) == 11
        assert "12 recordings, 11 sessions" in found.title
        assert any("declares no sessions" in note and "count as one: r0 + r1" in note for note in found.notes)
        alone = compare(made, SECOND, FIRST, independent=True)
        assert len(alone.sessions) == 12
        assert any("Not independent, because they share rows: r0 and r1." in note for note in alone.notes)

    def test_recordings_of_one_class_are_left_out_and_counted(self, made):
        found = compare(made, SECOND, FIRST)
        assert found.left_out == {QUIET: "none of its evaluated rows is anomalous"}
        assert any(f"1 of the split's recordings left out ({QUIET})" in note for note in found.notes)

    def test_a_split_of_few_recordings_shows_nothing(self, made):
        found = compare(made, FIRST, SEEDED, split="few")
        assert tuple(found.recordings.index) == ("r0", "r1", "r2", "r3")
        assert not found.inference.conclusive
        assert found.inference.conclusions[0].startswith("Described, not tested: 3 sessions are too few")
        (pair,) = found.inference.pairs
        assert (pair.wilcoxon, pair.p_holm, pair.interval) == (None, None, None)
        text = found.to_markdown()
        assert f"| {FIRST} | {SEEDED} | " in text
        assert "| r0 and 1 more | 2 | " in text
        assert not any(word in text for word in ("p-value as small", "significant", "interval", "Wilcoxon"))
        assert list(found.to_frame()["p"]) == [None]
        content = json.loads(found.to_json())
        assert content["tested"] is False
        assert content["pairs"][0]["wilcoxon"] is None
        assert content["sessions"]["r2"] == {
            "recordings": ["r2"],
            "values": {FIRST: found.recordings[FIRST].iloc[2], SEEDED: found.recordings[SEEDED].iloc[2]},
        }

    def test_another_metric_says_that_it_is_not_the_primary_one(self, made):
        found = compare(made, FIRST, SEEDED, metric="bf_f1")
        assert found.metric.name == "bf_f1"
        assert any("named beforehand, is auprc" in note for note in found.notes)
        assert any("an upper bound" in note for note in found.notes)
        assert not any("beforehand" in note for note in compare(made, FIRST, SEEDED).notes)

    def test_the_other_metrics_describe(self, made):
        (contender, _) = compare(made, FIRST, SEEDED).contenders
        judged = compare(made, FIRST, SEEDED, metric="auroc").inference.units[FIRST].to_numpy()
        assert contender.metrics["auroc"] == pytest.approx(judged.mean())

    def test_rows_of_a_joined_series_are_said_to_be_so(self, tmp_path):
        run_plan(make_plan([FIRST, Largest], dataset=PLANT, protocol="published", floors=False), Store.create(tmp_path))
        notes = compare(tmp_path, FIRST, SECOND).notes
        assert any("windows cross their borders" in note for note in notes)
        assert any(note.startswith("One fit per seed scored all recordings") for note in notes)


class TestSessions:
    """A plant whose recordings are copies of each other, declared to be of one session or not."""

    @staticmethod
    def plant(n_sessions: int, copies: int = 1, *, timed: bool = True, declared: bool = False) -> LabelledDataset:
        """Return recordings of different faults, each of them so many times under other names."""
        rng = np.random.default_rng(1)
        train = Recording("normal", rng.normal(size=(300, 2)), SENSORS, np.arange(300.0) if timed else None)
        test, labels, sessions = [], {}, {"normal": "s0"}
        for number in range(n_sessions):
            anomalous = np.zeros(N_ROWS, dtype=bool)
            anomalous[60 : 80 + number] = True
            values = rng.normal(size=(N_ROWS, 2))
            values[anomalous] += rng.uniform(0.0, 3.0, size=2)
            for copy in range(copies):
                name = f"r{number}.{copy}"
                time = 1e6 * number + 1e4 * copy + np.arange(1.0, N_ROWS + 1)
                test.append(Recording(name, values, SENSORS, time if timed else None))
                labels[name] = anomalous.copy()
                sessions[name] = f"s{number}"
        splits = {"overall": tuple(labels)}
        dataset = Dataset("copies", (train,), tuple(test), splits, sessions=sessions if declared else {})
        return LabelledDataset(dataset, Labels(labels, splits))

    @staticmethod
    def compared(data: LabelledDataset, folder: Path, **options):
        run_plan(make_plan([FIRST, Largest], dataset=data, floors=False), Store.create(folder))
        return package.compare(folder, [FIRST, SECOND], dataset=data, **options)

    @pytest.mark.parametrize("metric", ["auprc", "prac_f1"])
    @pytest.mark.parametrize("options", [{}, {"timed": False}, {"declared": True}])
    def test_copies_of_recordings_give_no_smaller_p_value(self, tmp_path, options, metric):
        once = self.compared(self.plant(8, **options), tmp_path / "once", metric=metric)
        thrice = self.compared(self.plant(8, copies=3, **options), tmp_path / "thrice", metric=metric)
        assert (len(once.recordings), len(thrice.recordings)) == (8, 24)
        assert len(thrice.sessions) == 8
        (first,), (second,) = once.inference.pairs, thrice.inference.pairs
        assert second.wilcoxon == first.wilcoxon
        assert second.differences == pytest.approx(first.differences)
        assert second.interval.low == pytest.approx(first.interval.low)

    def test_twelve_sessions_are_tested_and_five_are_described(self, tmp_path):
        for n, tested in ((12, True), (5, False)):
            found = self.compared(self.plant(n, copies=2, declared=True), tmp_path / str(n))
            assert found.title.endswith(f"{2 * n} recordings, {n} sessions")
            assert found.inference.tested is tested
            (pair,) = found.inference.pairs
            assert (pair.wilcoxon is None) is not tested
            assert ("| p | smallest p | test |" in found.to_markdown()) is tested

    def test_declared_sessions_that_share_rows_are_said_to(self, tmp_path):
        data = self.plant(6, copies=2, timed=False, declared=True)
        wrong = {name: name for name in data.dataset.sessions}
        data = data._replace(dataset=replace(data.dataset, sessions=wrong))
        notes = self.compared(data, tmp_path / "wrong").notes
        assert any(
            note.startswith("Not independent, because they share rows: r0.0 and r0.1, r1.0 and") for note in notes
        )

    def test_nothing_is_said_of_sessions_that_are_declared_well(self, tmp_path):
        notes = self.compared(self.plant(6, copies=2, declared=True), tmp_path / "well").notes
        assert not any("session of its own" in note or "share rows" in note for note in notes)


class TestFailures:
    def test_a_detector_with_a_failed_seed_is_a_row_that_says_so(self, made):
        found = compare(made, FIRST, "tests.analysis.significance.test_compare:Fragile", SEEDED)
        bad = found.contenders[1]
        assert (bad.status, bad.seeds, bad.metrics) == ("error", (0, 1), {})
        assert bad.failed[0]["seed"] == 1
        assert tuple(found.recordings.columns) == (FIRST, SEEDED)
        assert "takes no part: error in 1 of 2 trials (seed 1: " in found.notes[0]
        assert "no convergence" in found.notes[0]
        assert "| error in 1 of 2 | - | - |" in found.to_markdown()

    def test_with_fewer_than_two_left_nothing_is_compared(self, made):
        with pytest.raises(UsageError, match=r"fewer than two detectors can be compared.*no convergence"):
            compare(made, FIRST, "tests.analysis.significance.test_compare:Fragile")


class TestWrongInputs:
    @pytest.mark.parametrize(
        ("detectors", "options", "message"),
        [
            ([FIRST], {}, f"expected two detectors or more to compare, found {FIRST}"),
            ([], {}, "found none"),
            ([FIRST, FIRST], {}, f"found '{FIRST}' twice"),
            ([FIRST, f"{FIRST}s"], {}, f"no detector '{FIRST}s' among these trials; did you mean '{FIRST}'"),
            ([FIRST, f"{SECOND}[window"], {}, r"expected NAME or NAME\[key=value"),
            ([FIRST, SECOND], {"metric": "aupr"}, "has no metric 'aupr'; did you mean 'auprc'"),
            ([FIRST, SECOND], {"metric": "flagged"}, "neither better high nor low"),
            ([FIRST, SECOND], {"split": "fev"}, "no split 'fev'; did you mean 'few'"),
            ([FIRST, SECOND], {"split": "quiet"}, "undefined on every recording .*none of its evaluated rows is anom"),
            ([FIRST, SECOND], {"protocol": "published"}, "no trial of the protocol 'published'"),
            ([FIRST, SECOND], {"rope": 1.5}, "at least 0 and below 1, found 1.5"),
        ],
    )
    def test_they_are_named(self, made, detectors, options, message):
        with pytest.raises(UsageError, match=message):
            compare(made, *detectors, **options)

    def test_keys_may_stand_in_any_order(self, made):
        with pytest.raises(UsageError, match=rf"no detector '{SECOND}\[a=1,b=2\]'"):
            compare(made, FIRST, f"{SECOND}[b=2, a=1]")

    def test_data_that_is_not_registered_must_be_given(self, made):
        with pytest.raises(UsageError, match=r"no data set 'plant'.*give its card"):
            package.compare(made, [FIRST, SECOND])

    def test_other_data_than_the_trials(self, made):
        changed = PLANT.dataset.test[0]
        other = Recording(changed.id, changed.values + 1.0, SENSORS, time=changed.time)
        dataset = replace(PLANT.dataset, test=(other, *PLANT.dataset.test[1:]))
        with pytest.raises(package.DataError, match="the data here are not those it was made with"):
            package.compare(made, [FIRST, SECOND], dataset=LabelledDataset(dataset, PLANT.labels))

    def test_an_empty_store_and_no_store(self, tmp_path, tsadbench):
        Store.create(tmp_path / "empty")
        for folder, message in (("empty", "holds no trials yet"), ("nowhere", "is not a run store")):
            found = tsadbench("compare", tmp_path / folder, "a", "b")
            assert found.code == 2
            assert message in " ".join(found.err.split())

    @pytest.mark.parametrize("key", ["dataset", "protocol"])
    def test_a_store_of_several_must_be_told_which(self, made, tmp_path, key):
        shutil.copytree(made, tmp_path / "runs")
        first = Store.open(made).records()[0]
        folder = tmp_path / "runs" / "another"
        folder.mkdir()
        (folder / "record.json").write_text(replace(first, **{key: "another"}, trial="another").to_json())
        with pytest.raises(UsageError, match=rf"several .*another.*: choose one by --{key}"):
            package.compare(tmp_path / "runs", [FIRST, SECOND], dataset=None if key == "dataset" else PLANT)
        chosen = {"protocol": "strict"} if key == "protocol" else {}
        assert compare(tmp_path / "runs", FIRST, SECOND, **chosen).dataset == "plant"

    def test_without_the_extra_two_are_compared_and_three_name_it(self, made, monkeypatch):
        monkeypatch.setitem(sys.modules, "statsmodels.stats.multitest", None)
        assert compare(made, FIRST, SECOND).inference.pairs
        with pytest.raises(MissingExtraError, match=r"pip install 'tsadbench\[stats\]'"):
            compare(made, FIRST, SECOND, SEEDED)


class TestFormats:
    def test_csv_has_a_row_a_pair(self, made):
        found = compare(made, FIRST, SECOND, SEEDED)
        rows = list(csv.DictReader(io.StringIO(found.to_csv())))
        assert [(row["first"], row["second"]) for row in rows] == [
            (FIRST, SECOND), (FIRST, SEEDED), (SECOND, SEEDED),
        ]  # fmt: skip
        assert float(rows[1]["p_holm"]) == found.inference.pairs[1].p_holm
        assert found.to_frame()["p"].tolist() == [pair.wilcoxon.p for pair in found.inference.pairs]

    def test_json_holds_everything(self, made):
        found = compare(made, FIRST, SECOND, SEEDED)
        content = json.loads(found.to_json())
        assert content["schema"] == 1
        assert content["detectors"][0]["mean_rank"] == found.inference.mean_ranks[FIRST]
        assert content["pairs"][0]["wilcoxon"]["p"] == found.inference.pairs[0].wilcoxon.p
        assert content["friedman"]["degrees"] == [2, 20]
        assert content["recordings"]["r5"][SECOND] == found.recordings[SECOND].iloc[5]
        assert content["clusters"][0] == ["r0", "r1"]
        assert content["left_out"] == {QUIET: "none of its evaluated rows is anomalous"}

    def test_two_detectors_draw_their_differences_and_three_their_ranks(self, made, tmp_path):
        from tsadbench.reporting.figures.significance import draw

        for detectors, said in (
            ((FIRST, SECOND), f"{FIRST} - {SECOND}"),
            ((FIRST, SECOND, SEEDED), "mean rank over 11 sessions"),
        ):
            for name in ("one.svg", "two.svg"):
                draw(compare(made, *detectors), tmp_path / name)
            text = (tmp_path / "one.svg").read_text()
            assert text == (tmp_path / "two.svg").read_text()
            assert said in text
            assert all(label in text for label in detectors)

    @pytest.mark.parametrize("n_detectors", [2, 3])
    def test_any_name_is_drawn_and_written_as_it_is(self, made, tmp_path, n_detectors):
        from tsadbench.analysis.significance import infer
        from tsadbench.reporting.figures.significance import draw

        nasty = ("$a_b$ {rank}", "<script>|x", "100% [k=v]\\frac")[:n_detectors]
        values = np.random.default_rng(0).uniform(size=(12, n_detectors))
        units = pd.DataFrame(values, [f"{number}_$x$" for number in range(12)], list(nasty))
        found = replace(
            compare(made, FIRST, SECOND),
            recordings=units,
            sessions={unit: (unit,) for unit in units.index},
            inference=infer(units),
            contenders=tuple(
                ComparedDetector(label=name, seeds=(0,), status="ok", failed=(), metrics={}) for name in nasty
            ),
            titles={"auprc": "AUPRC"},
        )
        draw(found, tmp_path / "names.svg")
        text = "".join(ElementTree.parse(tmp_path / "names.svg").getroot().itertext())
        assert all(name in text for name in nasty)
        assert "| &lt;script>\\|x | 1 |" in found.to_markdown()

    def test_too_few_sessions_for_ranks_are_drawn_one_by_one(self, made, tmp_path):
        from tsadbench.reporting.figures.significance import draw

        draw(compare(made, FIRST, SECOND, SEEDED, split="few"), tmp_path / "few.svg")
        text = "".join(ElementTree.parse(tmp_path / "few.svg").getroot().itertext())
        assert all(name in text for name in (FIRST, SECOND, SEEDED, "r0 and 1 more", "r2", "r3", "by session"))
        assert "mean rank" not in text
        with pytest.raises(UsageError, match=r"ends in \.svg, \.png, \.pdf"):
            draw(compare(made, FIRST, SECOND), tmp_path / "figure.txt")


class TestCommandLine:
    def test_a_table(self, runs, tsadbench):
        found = tsadbench("compare", runs, SECOND, FIRST)
        assert found.code == 0, found.err
        text = " ".join(found.out.split())
        assert "AUPRC on pumploop, split overall, protocol strict 2: 81 recordings, 9 sessions" in text
        assert "9 sessions can give a p-value as small as" in text
        assert "win/tie/loss" in text
        assert "One fit per seed" in text

    def test_markdown_with_holm_and_a_diagram(self, runs, tsadbench, tmp_path):
        found = tsadbench(
            "compare", runs, SECOND, FIRST, "all-positive", "--format", "markdown", "--figure", tmp_path / "ranks.png"
        )
        assert found.code == 0, found.err
        assert "| first | second | mean difference | 95 % interval |" in found.out
        assert "| p (Holm) |" in found.out
        assert "Friedman: no difference among the detectors is shown (Iman-Davenport F(2, 16) = " in found.out
        assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")

    def test_wrong_names_are_one_line_and_exit_code_2(self, runs, tsadbench):
        for arguments, message in (
            ((SECOND,), "expected two detectors or more"),
            ((SECOND, f"{FIRST}s"), f"did you mean '{FIRST}'"),
            ((SECOND, FIRST, "--figure", runs), "expected a name that ends in .svg"),
            ((SECOND, FIRST, "--dataset", "skab"), "no trial of the data set 'skab'"),
        ):
            found = tsadbench("compare", runs, *arguments)
            assert found.code == 2
            assert message in found.err
            assert "Traceback" not in found.err


@pytest.mark.skab
def test_skab_has_four_sessions_and_is_described(skab_directory, tmp_path, tsadbench, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    ran = tsadbench("run", "-d", "t2", "-d", "t2-q", "--no-floors", "--out", tmp_path / "runs")
    assert ran.code == 0, ran.err
    found = tsadbench("compare", tmp_path / "runs", "t2", "t2-q", "--format", "json")
    assert found.code == 0, found.err
    content = json.loads(found.out)
    assert [(name, len(one["recordings"])) for name, one in content["sessions"].items()] == [
        ("valve1", 16), ("valve2", 4), ("other/1-4", 4), ("other/5-14", 10),
    ]  # fmt: skip
    assert content["tested"] is content["conclusive"] is False
    (pair,) = content["pairs"]
    assert (pair["wilcoxon"], pair["p_holm"], pair["interval"]) == (None, None, None)
    assert pair["sessions_needed"] >= 6
    # A session's value is the table's, on the split that holds the same recordings.
    board = json.loads(tsadbench("leaderboard", tmp_path / "runs", "--format", "json").out)["rows"]
    rows = {(row["label"], row["split"]): row["metrics"]["auprc"]["mean"] for row in board}
    for split in ("valve1", "valve2"):
        for label in ("t2", "t2-q"):
            assert content["sessions"][split]["values"][label] == pytest.approx(rows[label, split])


class TestPresentation:
    NAMES = (f"{FIRST}=Ours & 100%", f"{SECOND}=[peer]")

    def test_names_stand_in_every_table_sentence_and_figure(self, made, tmp_path):
        from tsadbench.reporting.figures.significance import draw

        found = compare(made, FIRST, SECOND, SEEDED, presentation=Presentation.from_options(aliases=self.NAMES))
        plain = compare(made, FIRST, SECOND, SEEDED)
        detectors, differences = tables(found.to_markdown().replace("\\[", "["))
        assert [row["detector"] for row in detectors] == ["Ours & 100%", "[peer]", SEEDED]
        assert {differences[0]["first"], differences[0]["second"]} == {"Ours & 100%", "[peer]"}
        said = "\n".join(found.conclusions)
        assert FIRST not in said
        for name, label in (("Ours & 100%", FIRST), ("[peer]", SECOND)):
            said = said.replace(name, label)
        assert said == "\n".join(plain.conclusions)
        assert f"Names: Ours & 100% is {FIRST}; [peer] is {SECOND}." in found.notes
        draw(found.named, tmp_path / "names.svg")
        assert "Ours &amp; 100%" in (tmp_path / "names.svg").read_text()
        assert FIRST not in (tmp_path / "names.svg").read_text()

    def test_json_and_csv_keep_labels_beside_names(self, made):
        found = compare(made, FIRST, SEEDED, presentation=Presentation.from_options(aliases=self.NAMES[:1]))
        content = json.loads(found.to_json())
        assert [(one["label"], one.get("alias")) for one in content["detectors"]] == [
            (FIRST, "Ours & 100%"),
            (SEEDED, None),
        ]
        (row,) = csv.DictReader(io.StringIO(found.to_csv()))
        assert (row["first"], row["first_alias"], row["second_alias"]) == (FIRST, "Ours & 100%", "")

    def test_columns_and_order(self, made):
        options = Presentation.from_options(columns=["mcc,auroc"], detectors=[SECOND, FIRST], order="label")
        detectors, differences = tables(compare(made, SECOND, FIRST, presentation=options).to_markdown())
        assert list(detectors[0]) == ["detector", "MCC", "AUROC"]
        assert [row["detector"] for row in detectors] == [FIRST, SECOND]
        assert "rank-biserial" in differences[0]  # a table that has none of them is shown whole
        with pytest.raises(UsageError, match="there is no column 'mmc'; did you mean 'mcc'"):
            compare(made, FIRST, SECOND, presentation=Presentation.from_options(columns=["mmc"])).to_latex()

    @pytest.mark.parametrize("split", [None, "few"])
    def test_latex_is_sound_and_says_what_markdown_says(self, made, split):
        found = compare(
            made, FIRST, SECOND, SEEDED, split=split, presentation=Presentation.from_options(aliases=self.NAMES)
        )
        text = found.to_latex()
        check(text)
        assert text.count(r"\begin{tabular}") == len(found.tables())
        rows = [line for line in text.splitlines() if line.startswith((r"{Ours \& 100\%} &", r"\texttt{", "{[peer]}"))]
        assert len(rows) == sum(len(cells) for _, _, cells in found.tables())
        assert text.count("Names: ") == 1
        for _, _, cells in found.tables():
            for number in cells[0][2:]:
                shown = "--" if number == "-" else number.replace("-.", "$-$.").replace("%", r"\%")
                assert shown in text
