"""Boxes describe detectors as an import would, and no code of detectors runs outside."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.detectors import load_detector
from tests.helpers.packages import write_package
from tests.helpers.tiny import Distance
from tsadbench import Detector, PluginError, UsageError
from tsadbench.errors import MissingExtraError
from tsadbench.registry import locate
from tsadbench.sandbox import Construction, Description, ask, asking, describe
from tsadbench.sandbox.construction import source_of
from tsadbench.sandbox.description import described
from tsadbench.utils.files import cache_folder
from tsadbench.utils.parameters import as_json, parameters_of
from tsadbench.utils.source_digest import source_of as sources

PLAIN = """
import numpy as np
from tsadbench import Detector

class Mine(Detector):
    '''Mine.

    Parameters
    ----------
    power
        An exponent.
    '''

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return np.abs(recording.values).max(axis=1)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """The cache folder of descriptions, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder() / "detectors"


@pytest.fixture
def file(tmp_path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(PLAIN)
    return file


@pytest.mark.parametrize("name", ["multiview", "dprgm", "max-z", "pyod:KNN"])
def test_a_box_describes_a_detector_as_an_import_does(name):
    cls, told = load_detector(name), describe(name)
    assert told.sources == sources(cls)
    assert told.traits == cls.traits
    assert told.search_space.keys() == cls.search_space().keys()
    assert list(map(repr, told.search_space.values())) == list(map(repr, cls.search_space().values()))
    assert told.defaults == {one.name: as_json(one.default) for one in parameters_of(cls)}
    assert told.offers_contributions == cls.offers_contributions()
    assert told.offers_held_out_loss == cls.offers_held_out_loss()
    written = [{name: str(value) for name, value in one.items()} for one in cls.floor_variants()]
    assert list(told.floor_variants) == written
    assert (told.libraries, told.note) == (getattr(cls, "libraries", ()), getattr(cls, "note", ""))


def test_a_construction_is_described_with_its_parameters():
    construction = Construction(locate("max-z"), {"mean": "10"})
    told = describe(construction, sensors=("a", "b"))
    assert (told.changed, told.values["mean"], told.declared.memory) == ({"mean": "10"}, 10, 9)
    of_class = describe("max-z")
    assert of_class.traits == of_class.declared == told.traits
    with pytest.raises(UsageError, match="-1"):
        describe(replace(construction, texts={"mean": "-1"}), sensors=("a", "b"))


def test_a_box_serves_several_questions_only_within_asking(file):
    source = locate(f"{file}:Mine")
    assert ask(source, os.umask, int, 0o7) == ask(source, os.umask, int, 0o7) != 0o7
    with asking():
        ask(source, os.umask, int, 0o7)
        with asking():
            assert ask(source, os.umask, int, 0o7) == 0o7
        assert ask(source, os.umask, int, 0o7) == 0o7


class TestAnswersAreRemembered:
    def test_until_the_code_changes(self, file, cache):
        first = describe(f"{file}:Mine")
        kept = sorted(cache.iterdir())
        assert len(kept) == 1
        assert describe(f"{file}:Mine") == first
        kept[0].write_text(kept[0].read_text().replace("An exponent.", "A power."))
        assert describe(f"{file}:Mine").doc.endswith("A power.")
        file.write_text(PLAIN.replace("max(axis=1)", "min(axis=1)"))
        assert describe(f"{file}:Mine").sources.modules["mine.py"] != first.sources.modules["mine.py"]

    def test_a_package_under_the_same_name_in_another_folder_is_another(self, tmp_path, monkeypatch):
        hashes = []
        for folder, text in (("one", PLAIN), ("two", PLAIN.replace("max(axis=1)", "min(axis=1)"))):
            write_package(tmp_path / folder, "mine_pkg", "[tsadbench.detectors]\nmine = mine_pkg:Mine\n", text)
            with monkeypatch.context() as patch:
                patch.syspath_prepend(tmp_path / folder)
                hashes.append(describe("mine").sources.digest)
        assert hashes[0] != hashes[1]

    def test_a_damaged_one_is_ignored(self, file, cache):
        first = describe(f"{file}:Mine")
        (kept,) = cache.iterdir()
        kept.write_bytes(b'[{"/": [1, 2]}, "{}"]')
        assert describe(f"{file}:Mine") == first


class TestHostilePlugins:
    """What a module does when it is imported stays in its box."""

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("import tsadbench.sandbox.child as child; child.to_json = lambda _, **__: b'{\"doc\": 3}'", "class_name"),
            (
                "import os\nfor fd in range(3, 99):\n try: os.write(fd, b'x' * 99)\n except OSError: pass",
                "channel",
            ),
        ],
    )  # fmt: skip
    def test_the_error_is_one_line(self, file, code, message):
        file.write_text(f"{PLAIN}\n{code}\n")
        with pytest.raises(PluginError, match=message) as caught:
            describe(f"{file}:Mine")
        assert len(str(caught.value).splitlines()) == 1

    def test_an_endless_import_is_ended(self, file):
        file.write_text("while True: pass\n")
        source = locate(f"{file}:Mine")
        with pytest.raises(PluginError, match=r"0\.5 s"):
            ask(source, described, Description, source, None, None, False, seconds=0.5)

    def test_one_owner_cannot_change_the_description_of_another(self, file):
        file.write_text(
            "import tsadbench.sandbox.description as description\n"
            f"description.source_of = lambda cls: description.Sources({{'forged': ''}}, (), ())\n{PLAIN}"
        )
        with asking():
            assert describe(f"{file}:Mine").sources.modules.keys() == {"forged"}  # it may lie about itself
            assert describe("max-z").sources == sources(load_detector("max-z"))

    def test_a_missing_extra_and_wrong_usage_keep_their_kinds(self, file):
        file.write_text("from tsadbench.base import extra\nwith extra('mine', 'deep'): import no_such_package\n")
        with pytest.raises(MissingExtraError, match=r"tsadbench\[deep\]"):
            describe(f"{file}:Mine")
        file.write_text(PLAIN)
        with pytest.raises(UsageError, match="Mime"):
            describe(f"{file}:Mime")
        with pytest.raises(UsageError, match="power"):
            describe(Construction(locate(f"{file}:Mine"), {"power": "x"}))

    def test_its_texts_are_made_printable(self, file):
        file.write_text("raise RuntimeError('\\x1b]0;owned\\x07')\n")
        with pytest.raises(PluginError, match=r"\\x1b") as caught:
            describe(f"{file}:Mine")
        assert str(caught.value).isprintable()
        file.write_text(PLAIN.replace("An exponent.", "Of \u202eno use."), encoding="utf-8")
        assert describe(f"{file}:Mine").parameters[0].meaning == r"Of \u202eno use."


def test_a_class_of_the_caller_is_described_in_place_and_refused_if_it_cannot_be_pickled():
    lock = threading.Lock()

    class Local(Detector):
        """Made in a function."""

        def _fit(self, recordings):
            pass

        def _score(self, recording):
            return np.zeros(recording.n_rows)

    class Locked(Local):
        def _fit(self, recordings):
            lock.acquire()

    assert source_of(Distance).imported
    assert describe(source_of(Local)).doc == "Made in a function."
    with pytest.raises(UsageError, match="Locked"):
        source_of(Locked)
