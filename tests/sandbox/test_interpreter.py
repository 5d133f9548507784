"""A detector's own interpreter: it needs numpy alone, is sealed, and its versions are those that count."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.interpreters import OLD_NUMPY, empty_environment, script, with_old_numpy
from tsadbench import Recording, UsageError
from tsadbench.errors import PluginError
from tsadbench.execution.plan import contender_from_label
from tsadbench.execution.run_store import Store
from tsadbench.registry import locate
from tsadbench.sandbox import Box, BoxFailure, Construction, seal_status
from tsadbench.sandbox.describing import configure, describe, parse
from tsadbench.sandbox.interpreter.environment import environment_of
from tsadbench.sandbox.launch import PlainLauncher

# What it does cannot be told from the outside, and need not be.
DISTANCE = """
import numpy as np
from tsadbench import Detector, Traits
{more}

class Distance(Detector):
    '''Distance to the training mean.

    Parameters
    ----------
    power
        Of the differences.
    limit
        The largest score.
    '''

    traits = Traits(family="statistics", memory=0)

    def __init__(self, *, power: float = 2.0, limit: int | None = None) -> None:
        self.power = power
        self.limit = limit

    def _check(self, sensors):
        self._require(self.power > 0, "power", "positive")

    def _fit(self, recordings):
        rows = np.concatenate([recording.values for recording in recordings])
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9

    def _score(self, recording):
        scores = (np.abs((recording.values - self.mean_) / self.scale_) ** self.power).sum(axis=1)
        return scores if self.limit is None else np.minimum(scores, self.limit)
"""
# It cannot be imported where the tests run.
NEEDS_OLD = DISTANCE.format(more='assert int(np.__version__.partition(".")[0]) < 2, np.__version__')


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """An interpreter with an old numpy."""
    if sys.version_info >= (3, 13):
        pytest.skip(f"numpy {OLD_NUMPY} has no wheel for this Python")
    return with_old_numpy(tmp_path_factory.mktemp("environments") / "legacy")


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """A folder with the same detector for an old numpy and for any."""
    (tmp_path / "old.py").write_text(NEEDS_OLD)
    (tmp_path / "any.py").write_text(DISTANCE.format(more=""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def construction(name: str, python: Path, **texts: str) -> Construction:
    return Construction.named(locate(name), {**texts, "python": str(python)})


def ours(name: str, **texts: str) -> Construction:
    return Construction(locate(name), texts)


def recordings() -> tuple[Recording, Recording]:
    values = np.random.default_rng(0).normal(size=(200, 2))
    return Recording("a", values[:150], ("x", "y"), None), Recording("b", values[150:], ("x", "y"), None)


def scores_of(box: Box) -> np.ndarray:
    train, test = recordings()
    box.fit((train,))
    return box.score(test)


def run(tsadbench, *detectors: str, out: str = "runs", **options: str):
    named = [text for detector in detectors for text in ("-d", detector)]
    more = [text for name, value in options.items() for text in (f"--{name}", value)]
    return tsadbench("run", *named, "--dataset", "pumploop", "--no-floors", "--seeds", "1", "--out", out, *more)


def test_the_command_line_runs_a_detector_in_its_own_interpreter_sealed_and_records_it(tsadbench, files, python):
    named = f"old.py:Distance[python={python},power=3]"
    sealed = seal_status().seal == "sealed"
    options = ["--require-seal"] if sealed else []
    done = tsadbench(
        "run", "-d", named, "-d", "any.py:Distance[power=3]", "--dataset", "pumploop", "--no-floors", "--seeds", "1",
        "--out", "runs", *options,
    )  # fmt: skip
    assert done.code == 0, done.err
    store = Store.open(Path("runs"))
    records = {record.detector: record for record in store.records()}
    old, new = records["old.py:Distance"], records["any.py:Distance"]
    assert old.label == "old.py:Distance[power=3.0,python=legacy]"
    assert old.label in done.out
    assert old.seal == ("sealed" if sealed else "guarded")
    assert old.parameters == new.parameters == {"power": 3.0, "limit": None}

    versions = old.manifest["versions"]
    assert versions["numpy"] == OLD_NUMPY
    assert versions["pandas"] is None
    assert new.manifest["versions"]["numpy"] == np.__version__
    kept = old.manifest["interpreter"]
    assert kept == {
        "path": str(python),
        "name": "legacy",
        "python": versions["python"],
        "distributions": {"numpy": OLD_NUMPY},
    }
    assert "interpreter" not in new.manifest

    ours, theirs = (store.scores(record.trial) for record in (new, old))
    assert sorted(ours) == sorted(theirs)
    for name in ours:
        np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-9)

    # Another path of the same environment is the same trial, and a store from elsewhere does not choose what is run.
    Path("elsewhere").mkdir()
    Path("elsewhere/legacy").symlink_to(python.parents[1])
    again = run(tsadbench, "old.py:Distance[python=elsewhere/legacy/bin/python,power=3]")
    assert again.code == 0
    assert len(Store.open(Path("runs")).trials()) == 2
    verified = tsadbench("verify", "runs")
    assert verified.code == 0
    redone = tsadbench("verify", "runs", "--redo", "2", "--trust-code")
    assert redone.code == 0
    assert "2 equal to the bit" in redone.out + redone.err


def test_its_description_is_that_of_the_same_code_here(files, python):
    there, here = construction("any.py:Distance", python, power="3", limit="7"), ours("any.py:Distance", power="3")
    told, expected = describe(there.source), describe(here.source)
    compared = {field.name for field in dataclasses.fields(expected)} - {"files", "modules"}
    assert {name: getattr(told, name) for name in compared} == {name: getattr(expected, name) for name in compared}
    assert parse(there, told) == {"power": 3.0, "limit": 7}
    assert configure(there, told, sensors=("x", "y")).changed == {"limit": "7", "power": "3.0"}


def test_its_parameters_are_checked_there(files, python):
    told = describe(construction("any.py:Distance", python).source)
    for texts, message in [({"powers": "1"}, "did you mean 'power'"), ({"power": "many"}, "expected float")]:
        with pytest.raises(UsageError, match=message):
            parse(construction("any.py:Distance", python, **texts), told)
    with pytest.raises(UsageError, match=r"power must be positive, found -1\.0"):
        configure(construction("any.py:Distance", python, power="-1"), told, sensors=("x", "y"))


def test_no_library_of_ours_is_seen_there(files, python):
    more = """
import importlib.util
for name in ("sklearn", "pandas", "scipy", "pydantic", "typer"):
    assert importlib.util.find_spec(name) is None, name
try:
    import sklearn.base
except ImportError:
    pass
else:
    raise AssertionError("scikit-learn")
"""
    Path("bare.py").write_text(DISTANCE.format(more=more))
    with Box(construction("bare.py:Distance", python), threads=1) as box:
        assert np.isfinite(scores_of(box)).all()


def test_it_uses_as_many_threads_as_it_may(files, python):
    counted = DISTANCE.format(more="from threadpoolctl import threadpool_info").replace(
        "np.minimum(scores, self.limit)",
        "np.full(len(scores), float(max(pool['num_threads'] for pool in threadpool_info())))",
    )
    Path("counted.py").write_text(counted)
    for threads in (1, 2):
        with Box(construction("counted.py:Distance", python, limit="1"), threads=threads) as box:
            assert set(scores_of(box)) == {threads}


def test_the_kernel_seals_it(files, python):
    if sys.platform != "linux" or seal_status().seal != "sealed":
        pytest.skip("this machine seals no box")
    secret = files / "labels.csv"
    secret.write_text("1")
    for attempt in (f"open({str(secret)!r})", f"__import__('os').listdir({str(files)!r})"):
        Path("curious.py").write_text(NEEDS_OLD.replace("        rows =", f"        {attempt}\n        rows ="))
        with Box(construction("curious.py:Distance", python), threads=1) as box:
            assert box.seal == "sealed"
            with pytest.raises(BoxFailure, match=r"PermissionError|FileNotFoundError"):
                scores_of(box)


def test_where_nothing_can_be_forked_it_is_started_for_each_box(files, python):
    launcher = PlainLauncher(environment_of(str(python)))
    with Box(construction("old.py:Distance", python), threads=1, launcher=launcher) as box:
        found = scores_of(box)
    with Box(ours("any.py:Distance"), threads=1) as box:
        np.testing.assert_allclose(found, scores_of(box), rtol=1e-9)


def test_an_importable_module_is_lent_to_it(files, python, monkeypatch):
    package = files / "path/lent_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "distance.py").write_text(NEEDS_OLD)
    monkeypatch.syspath_prepend(files / "path")
    with Box(construction("lent_package.distance:Distance", python), threads=1) as box:
        assert np.isfinite(scores_of(box)).all()


def test_a_library_that_it_lacks_is_named_with_the_interpreter(files, python):
    with pytest.raises(PluginError, match=rf"detector 't2' in {python} .* cannot be loaded.*No module named 'scipy'"):
        describe(construction("t2", python).source)


def test_a_path_in_a_configuration_is_relative_to_it(tsadbench, files, python):
    folder = files / "settings"
    folder.mkdir()
    (folder / "legacy").symlink_to(python.parents[1])
    (folder / "run.toml").write_text(
        'detectors = ["../old.py:Distance"]\ndatasets = ["pumploop"]\nfloors = false\n'
        '[set]\n"../old.py:Distance.python" = "legacy/bin/python"\n'
    )
    done = tsadbench("run", "--config", "settings/run.toml", "--format", "csv")
    assert done.code == 0, done.err
    (record,) = Store.open(Path("runs")).records()
    assert record.label.endswith("old.py:Distance[python=legacy]")
    assert record.manifest["interpreter"]["path"] == str(folder / "legacy/bin/python")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("nowhere/python", r"found no file .*/nowhere/python"),
        ("folder", r"found a folder; name the interpreter in it, .*/folder/bin/python"),
        ("any.py", r"found a file that cannot be run"),
        ("folder/bin/python", r"found a program that does not answer like one \(I am no Python\)"),
        ("ancient", r"expected Python 3.10 or newer, found 3.6.15"),
        (
            "empty/bin/python",
            r"numpy cannot be imported there \(it is not installed\); it needs numpy, and nothing",
        ),
    ],
)
def test_an_interpreter_that_will_not_do_is_refused_in_one_line(tsadbench, files, named, message):
    (files / "folder/bin").mkdir(parents=True)
    script(files / "folder/bin/python", "#!/bin/sh\necho 'I am no Python' >&2; exit 3\n")
    script(files / "ancient", """#!/bin/sh\necho '{"version": "3.6.15"}'\n""")
    if named.startswith("empty"):
        empty_environment(files / "empty")
    done = run(tsadbench, f"any.py:Distance[python={named}]")
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    with pytest.raises(UsageError, match=message):
        environment_of.__wrapped__(construction("any.py:Distance", Path(named)).source.python)
    assert not Path("runs").exists()


def test_what_cannot_be_had_in_another_interpreter_is_refused_in_one_line(tsadbench, files, python):
    detector = f"any.py:Distance[python={python}]"
    (files / "other/legacy").parent.mkdir()
    (files / "other/legacy").symlink_to(python.parents[1])
    for arguments, message in [
        (("run", "-d", detector, "--dataset", "pumploop", "--cluster", "local:1"), "leave --cluster out"),
        (("fit", "-d", detector, "--dataset", "pumploop", "--out", "it.model"), "leave python= out"),
        (("check", detector), f"{python} -m pip install pooch pydantic scipy"),
        (
            ("run", "-d", detector, "-d", "any.py:Distance[python=other/legacy/bin/python]", "--dataset", "pumploop"),
            "names two interpreters",
        ),
    ]:
        done = tsadbench(*arguments)
        assert done.code == 2, arguments
        assert len(done.err.strip().splitlines()) == 1
        assert message in done.err
    assert not Path("runs").exists()


def test_a_stored_label_starts_no_interpreter(files, small_data, tmp_path):
    script(tmp_path / "evil", f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    with pytest.raises(UsageError, match="ran in an interpreter of its own"):
        contender_from_label(f"any.py:Distance[python={tmp_path / 'evil'}]", small_data.dataset)
    assert not (tmp_path / "started").exists()


def test_a_constructor_cannot_take_the_name(tsadbench, files):
    Path("taken.py").write_text(DISTANCE.format(more="").replace("power", "python"))
    done = run(tsadbench, "taken.py:Distance")
    assert done.code == 2
    assert "its constructor takes 'python', which names the interpreter" in done.err
