"""The fingerprint of a class's code changes with what the code does, and with nothing else."""

from __future__ import annotations

import importlib
import linecache
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from tsadbench import Recording
from tsadbench.registry import load_detector
from tsadbench.utils.code_fingerprint import (
    code_fingerprint,
    fingerprinted_files,
    imported_packages,
    module_fingerprint,
)

ROOT = Path(__file__).parent.parent.parent
PACKAGE = {
    "__init__.py": '"""An idea."""\n',
    "detector.py": '''
        """A detector."""
        from __future__ import annotations

        from typing import TYPE_CHECKING

        import numpy as np
        from numpy import mean

        from . import layers
        from .deep.network import Network as Net
        from tsadbench.base.detector import Detector

        if TYPE_CHECKING:
            from idea.unused import Unused

        LEVEL = 0.5


        def noted(cls):
            return cls


        class Mine(layers.Base, Detector):
            """Says nothing."""

            alpha: float = 0.1
            mode = "fast"

            def _fit(self, recordings):
                """Fit."""
                self.net = Net(LEVEL)
                if not recordings:
                    raise ValueError(f"no {self.mode} recordings")

            def _score(self, recording, scale=2.0):
                from idea.deep.units import scaled

                values = mean(recording.values) + np.median(recording.values)  # both
                return scaled(values, scale)
        ''',
    "layers.py": '''
        class Base:
            """A base."""

            depth = 3


        class Other:
            depth = 4
        ''',
    "deep/__init__.py": "",
    "deep/network.py": """
        from ..deep import units as u


        class Network:
            def __init__(self, level: float) -> None:
                self.level = u.scaled(level, 1.0)
        """,
    "deep/units.py": """
        import idea.deep.constants as constants


        def scaled(values, scale):
            return values * scale * constants.ONE


        def unused(values):
            return values
        """,
    "deep/constants.py": """
        ONE = 1.0
        TWO = 2.0
        """,
    "unused.py": """
        class Unused:
            pass
        """,
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("idea", "notion")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()


@pytest.fixture
def idea(tmp_path, monkeypatch):
    """A package ``idea`` of several modules."""
    write(tmp_path / "idea", PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "idea"
    forget()


def fingerprint(module: str = "idea.detector", name: str = "Mine") -> str:
    forget()
    return code_fingerprint(getattr(importlib.import_module(module), name))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


WORDS_AND_PLACES = [
    ("detector.py", '"""Says nothing."""', '"""Says something\n\n    at length."""'),
    ("detector.py", "  # both", "  # of these, both matter"),
    ("detector.py", "alpha: float", "alpha: int"),
    ("detector.py", 'f"no {self.mode} recordings"', 'f"expected {self.mode} recordings, found none"'),
    ("detector.py", "class Mine", "class Unrelated:\n    pass\n\n\nclass Mine"),
    ("layers.py", "depth = 4", "depth = 5"),
    ("deep/units.py", "    return values\n", "    return -values\n"),
    ("unused.py", "pass", "x = 1"),
]
CHANGES = [
    ("detector.py", "LEVEL = 0.5", "LEVEL = 0.25"),
    ("detector.py", "np.median", "np.max"),
    ("detector.py", "scale=2.0", "scale=3.0"),
    ("detector.py", "from numpy import mean", "from scipy.stats import gmean as mean"),
    ("detector.py", "class Mine(layers.Base", "@noted\nclass Mine(layers.Base"),
    ("detector.py", "raise ValueError", "raise KeyError"),
    ("detector.py", "LEVEL = 0.5", "LEVEL = 0.5\nnp.random.seed(0)"),
    ("layers.py", "depth = 3", "depth = 4"),
    ("deep/__init__.py", "", "import warnings\nwarnings.simplefilter('ignore')\n"),
    ("deep/units.py", "values * scale", "values / scale"),
    ("deep/constants.py", "ONE = 1.0", "ONE = 1.5"),
]


def test_classes_that_one_function_makes_are_told_apart_by_attributes_and_properties():
    def made(number):
        class Made:
            window = number

            @property
            def size(self):
                return 0

        return Made

    def closed(number):
        class Made:
            @property
            def size(self):
                return number

        return Made

    for make in (made, closed):
        assert code_fingerprint(make(5)) == code_fingerprint(make(5))
        assert code_fingerprint(make(5)) != code_fingerprint(make(9))


class TestOfWhatACodeDoes:
    @pytest.mark.parametrize(("file", "old", "new"), WORDS_AND_PLACES)
    def test_words_and_what_is_not_used_do_not_count(self, idea, file, old, new):
        before = fingerprint()
        change(idea / file, old, new)
        assert fingerprint() == before

    @pytest.mark.parametrize(("file", "old", "new"), CHANGES)
    def test_every_real_change_counts(self, idea, file, old, new):
        before = fingerprint()
        (idea / file).write_text(new) if not old else change(idea / file, old, new)
        assert fingerprint() != before

    def test_data_and_compiled_files_of_the_package_count_by_their_bytes_wherever_they_lie(self, idea):
        found = [fingerprint()]
        (idea / "weights.npz").write_bytes(b"1")
        found.append(fingerprint())
        (idea / "weights.npz").write_bytes(b"2")
        found.append(fingerprint())
        (idea / "deep" / "fast.so").write_bytes(b"3")
        found.append(fingerprint())
        assert len(set(found)) == 4
        (idea / "weights.npz").rename(idea / "deep" / "weights.npz")
        (idea / "py.typed").write_text("")
        assert fingerprint() == found[-1]


DYNAMIC = {
    "globals": ("def look(name):\n    return globals()[name]\n", "look('hidden')"),
    "getattr": ("from . import helpers\n\n\ndef look(name):\n    return getattr(helpers, name)\n", "look('hidden')"),
    "importlib": (
        "import importlib\n\n\ndef look(name):\n    return importlib.import_module('idea.helpers')\n",
        "look('hidden')",
    ),
    "star": ("from .helpers import *\n\n\ndef look(name):\n    return hidden\n", "look('')"),
    "conditional": ("try:\n    from .helpers import hidden\nexcept ImportError:\n    hidden = 1\n", "hidden"),
    "registered": (
        "from . import registry, helpers\n\n\ndef look(name):\n    return registry.TABLE[name]\n",
        "look('hidden')",
    ),
    "subclass": ("from . import registry, helpers\n\n\ndef look():\n    return registry.Hook.classes\n", "look()"),
    "getattr of a module": ("from . import lazy\n\n\ndef look():\n    return lazy.hidden\n", "look()"),
}
HELPERS = """
    from .registry import Hook, register


    @register
    def hidden():
        return 1


    class Hooked(Hook):
        x = 1
    """
REGISTRY = """
    TABLE = {}


    def register(function):
        TABLE[function.__name__] = function
        return function


    class Hook:
        classes = []

        def __init_subclass__(cls):
            Hook.classes.append(cls)
    """
LAZY = "def __getattr__(name):\n    from . import helpers\n\n    return helpers.hidden\n"


class TestWhatTheSyntaxTreeDoesNotTell:
    @pytest.mark.parametrize("kind", DYNAMIC)
    def test_more_counts_instead_of_less(self, tmp_path, monkeypatch, kind):
        looks, use = DYNAMIC[kind]
        if kind == "globals":
            looks += "\n\ndef hidden():\n    return 1\n\n\nclass Hooked:\n    x = 1\n"
        files = {
            "__init__.py": "",
            "looks.py": looks,
            "lazy.py": LAZY,
            "registry.py": REGISTRY,
            "helpers.py": HELPERS,
            "detector.py": f"from . import looks\n\n\nclass Mine:\n    def score(self):\n        looks.{use}\n",
        }
        write(tmp_path / "idea", files)
        monkeypatch.syspath_prepend(tmp_path)
        before = fingerprint()
        place = tmp_path / "idea" / ("looks.py" if kind == "globals" else "helpers.py")
        change(place, "x = 1", "x = 2") if kind == "subclass" else change(place, "return 1", "return 2")
        assert fingerprint() != before
        forget()


def cell(number: int, source: str, namespace: dict[str, object]) -> None:
    """Run a notebook's cell as IPython does: its source stays in linecache."""
    name = f"<ipython-input-{number}-{abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


class TestNotebooks:
    CLASS = "class Mine:\n    def score(self, x):\n        return helper(x) * FACTOR\n"
    HELPER = "def helper(x):\n    return np.abs(x)\n"

    @pytest.fixture
    def notebook(self, monkeypatch):
        module = types.ModuleType("notebook")
        module.np = np
        monkeypatch.setitem(sys.modules, "notebook", module)
        return vars(module)

    def run(self, notebook, cls=CLASS, helper=HELPER, factor="FACTOR = 2"):
        for number, source in enumerate((helper, factor, cls)):
            cell(number, source, notebook)
        return code_fingerprint(notebook["Mine"])

    def test_a_class_counts_by_its_cells_source(self, notebook):
        before = self.run(notebook)
        assert self.run(notebook) == before
        assert self.run(notebook, cls="# A comment.\n" + self.CLASS) == before
        assert self.run(notebook, cls=self.CLASS.replace("*", "/")) != before
        assert self.run(notebook, helper=self.HELPER.replace("abs", "exp")) != before
        assert self.run(notebook, factor="FACTOR = 3") != before

    def test_a_class_whose_source_is_not_kept_is_never_the_same_as_another(self, notebook):
        found = []
        for _ in range(2):
            exec(self.CLASS, notebook)
            found.append(code_fingerprint(notebook["Mine"]))
            assert code_fingerprint(notebook["Mine"]) == found[-1]
        assert found[0] != found[1]


SYNTAX = """
    from __future__ import annotations

    import dataclasses
    from collections.abc import Iterator
    from contextlib import contextmanager

    from tsadbench.errors import UsageError

    NAMES = {"a": 1, **{"b": -2.5e-300}, "ü\\ud800\\n": b"x\\xff"}
    PAIR, *REST = 1j, 2, ...


    @contextmanager
    def opened(path: str, /, *args: int, mode: str = "r", **more: object) -> Iterator[int]:
        try:
            with open(path, mode) as file, open(path) as other:
                yield (n := len(file.read()) + len(other.read()))
        except* OSError as error:
            raise UsageError(f"{path!r}: {error}" "no") from error
        finally:
            del args


    @dataclasses.dataclass(frozen=True)
    class Mine:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)

        async def look(self, things):
            async for thing in things:
                yield [await each async for each in thing if each]

        def text(self, value, width=3):
            return f"{value!r:>{width}} and {{braces}} " "more" f"{self.x=} {f'{value}'} end"

        def match(self, thing):
            match thing:
                case {"a": [1, *rest], **others} if rest:
                    return lambda *, k=NAMES: (k, others)
                case Mine(x=0 | 1 as small) | (small, _):
                    return small
                case _:
                    return {i: j for i, j in zip(PAIR, REST) if i not in {1, 2}} @ self.y[1:2, ...]
    """


def test_versions_of_python_agree(tmp_path):
    write(tmp_path, {"idea/__init__.py": "", "idea/detector.py": SYNTAX})
    # All that the others need beside their standard library; it is of plain Python.
    (tmp_path / "cloudpickle").symlink_to(Path(cloudpickle.__file__).parent)
    script = (
        "from tsadbench.utils.code_fingerprint import code_fingerprint\n"
        "from idea.detector import Mine\nprint(code_fingerprint(Mine))"
    )
    found = {}
    for version in ("3.11", "3.12", "3.13"):
        homes = Path("/root/.pyenv/versions").glob(f"{version}.*/bin/python")
        for python in [sys.executable] if version == "3.11" else map(str, homes):
            environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([python, "-c", script], env=environment, text=True, capture_output=True, check=True)
            found[version] = done.stdout
    if len(found) == 1:
        pytest.skip("only one version of Python is here")
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("name", ["gdn", "multiview", "max-z"])
def test_every_own_file_whose_code_a_detector_runs_counts(name):
    cls, seen = load_detector(name), set()
    detector = cls(**cls.test_params())
    rng = np.random.default_rng(0)
    train = [Recording("r", rng.normal(size=(90, 3)), ("a", "b", "c"))]

    def hear(frame, event, _argument):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(hear)
    try:
        detector.fit(train).score(train[0])
    finally:
        sys.setprofile(None)
    ran = {Path(file) for file in seen if Path(file).is_relative_to(ROOT / "detectors")}
    assert ran
    assert ran <= fingerprinted_files(cls)


def test_detectors_differ_and_count_less_than_their_whole_package():
    classes = [load_detector(name) for name in ("max-z", "l1-z", "t2", "pca")]
    assert len({code_fingerprint(cls) for cls in classes}) == len(classes)
    files = {file.name for file in fingerprinted_files(load_detector("max-z")) if file.suffix == ".py"}
    assert "max_z.py" in files
    assert "gdn.py" not in files
    assert imported_packages(load_detector("max-z")) == {"numpy"}


def test_a_modules_fingerprint_is_what_its_code_does(tmp_path):
    source = (
        'import numpy as np\nLIMIT = 3\n\ndef f(x: int) -> int:\n    """Return it."""\n    return np.add(x, LIMIT)\n'
    )
    changed = {
        source.replace('"""Return it."""', '"""Return the sum."""  # better'): True,
        source.replace("x: int", "x"): True,
        source.replace("3", "4"): False,
        source.replace("np.add", "np.subtract"): False,
        source.replace("import numpy as np", "import scipy as np"): False,
    }

    def fingerprint(text: str) -> str:
        file = tmp_path / "some.py"
        file.write_text(text)
        module = types.ModuleType("some")
        module.__file__ = str(file)
        return module_fingerprint(module)

    for text, same in changed.items():
        assert (fingerprint(text) == fingerprint(source)) is same, text
