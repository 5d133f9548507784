"""A class's sources change with its code and the modules it imports, and with nothing else."""

from __future__ import annotations

import importlib
import linecache
import os
import shutil
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.detectors import load_detector
from tsadbench import Recording
from tsadbench.registry import load_protocol
from tsadbench.utils.import_text import import_text
from tsadbench.utils.source_digest import Sources, source_of

ROOT = Path(__file__).parents[2]
PACKAGE = {
    "__init__.py": '"""An idea."""\n',
    "detector.py": '''
        """A detector."""
        from typing import TYPE_CHECKING

        import numpy as np
        from tsadbench.base import trailing_mean

        from . import layers
        from .deep.network import Network as Net

        if TYPE_CHECKING:
            from idea.unused import Unused


        class Mine(layers.Base):
            """Says nothing."""

            def score(self, values):
                from idea.deep.units import scaled

                return scaled(np.median(values))  # both
        ''',
    "layers.py": "import scipy.stats\nimport os.path\n\n\nclass Base:\n    depth = 3\n",
    "deep/__init__.py": "",
    "deep/network.py": "from ..deep import units as u\n\n\nclass Network:\n    level = u.scaled(1.0)\n",
    "deep/units.py": "import idea.deep.constants as constants\n\n\ndef scaled(x):\n    return x * constants.ONE\n",
    "deep/constants.py": "ONE = 1.0\n",
    "unused.py": "class Unused:\n    pass\n",
}
MODULES = ["", ".detector", ".layers", ".deep", ".deep.network", ".deep.units", ".deep.constants"]
OWN = {f"idea{name}" for name in MODULES}


@pytest.fixture
def idea(tmp_path, monkeypatch):
    """A package ``idea`` of several modules."""
    for name, text in PACKAGE.items():
        (tmp_path / "idea" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "idea" / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "idea"
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "idea"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def sources() -> Sources:
    forget()
    return source_of(importlib.import_module("idea.detector").Mine)


def test_the_modules_that_it_imports_count_at_any_depth_with_those_of_the_base_package(idea):
    found = sources()
    assert found.known
    assert {name for name in found.modules if not name.startswith("tsadbench.")} == OWN
    assert {name for name in found.modules if name.startswith("tsadbench.")} == {"tsadbench.base.scores"}
    assert found.packages == {"numpy", "scipy"}
    assert {Path(file).name for file in found.files} >= {"detector.py", "layers.py", "constants.py", "scores.py"}


@pytest.mark.parametrize("file", ["detector.py", "layers.py", "deep/__init__.py", "deep/constants.py"])
def test_a_change_of_code_changes_its_modules_digest_and_one_of_comments_none(idea, file):
    before = sources()
    text = (idea / file).read_text()
    (idea / file).write_text(f'# A remark.\n"""About it."""\n{text}\n\n\n')
    assert sources().digest == before.digest
    (idea / file).write_text(f"{text}\nMORE = 1\n")
    after = sources()
    assert after.digest != before.digest
    changed = {name for name in OWN if after.modules[name] != before.modules[name]}
    assert changed == {f"idea.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"}


def test_what_it_does_not_import_and_data_files_do_not_count(idea):
    before = sources()
    (idea / "unused.py").write_text("class Unused:\n    x = 1\n")
    (idea / "weights.npz").write_bytes(b"1")
    assert sources() == before


def test_a_single_file_counts_by_name_with_its_neighbours_in_any_folder(tmp_path):
    found = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "helpers.py").write_text("ONE = 1.0\n")
        file = folder / "mine.py"
        file.write_text("class Mine:\n    def score(self):\n        import helpers\n        return helpers.ONE\n")
        found.append(source_of(import_text(str(file), file.read_bytes()).Mine))
    assert found[0].modules == found[1].modules
    assert found[0].modules.keys() == {"mine.py", "helpers"}


def cell(number: int, source: str, namespace: dict[str, object]) -> None:
    """Run a notebook's cell as IPython does: its source stays in linecache."""
    name = f"<ipython-input-{number}-{abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


class TestNotebooks:
    CLASS = (
        "class Mine(Base):\n    n: ClassVar = np\n    def score(self, x):\n        return scipy.stats.zscore(x) * 2\n"
    )

    @pytest.fixture
    def notebook(self, monkeypatch):
        module = types.ModuleType("notebook")
        exec(
            "import numpy as np, scipy\nfrom typing import ClassVar\nfrom json import JSONDecoder as Base", vars(module)
        )
        monkeypatch.setitem(sys.modules, "notebook", module)
        return vars(module)

    def digest(self, notebook, cls=CLASS):
        cell(1, cls, notebook)
        found = source_of(notebook["Mine"])
        assert (found.known, found.packages) == (True, {"numpy", "scipy"})
        return found.digest

    def test_a_class_counts_by_its_definition_and_the_libraries_that_it_names(self, notebook):
        before = self.digest(notebook)
        assert self.digest(notebook) == before
        assert self.digest(notebook, f"# A comment.\n{self.CLASS}\nprint(Mine)\n") == before
        assert self.digest(notebook, self.CLASS.replace("*", "/")) != before

    @pytest.mark.parametrize("other", ["", "Base = type('Base', (), {})", "scipy = 2", "def np(): ...", "np = None"])
    def test_a_class_without_source_or_with_other_names_of_the_session_is_unknown(self, notebook, other):
        exec(other, notebook)
        cell(1, self.CLASS, notebook) if other else exec(self.CLASS, notebook)
        first, second = source_of(notebook["Mine"]), source_of(notebook["Mine"])
        assert not first.known
        assert first.digest != second.digest


SYNTAX = '''
    from __future__ import annotations

    from contextlib import contextmanager

    NAMES = {"a": 1, **{"b": -2.5e-300}, "ü\\ud800\\n": b"x\\xff", u"c": 10**30}
    PAIR, *REST = 1j, 2, ...


    @contextmanager
    def opened(path: str, /, *args: int, mode: str = "r", **more: object):
        """Opens it."""
        try:
            with open(path, mode) as file, open(path) as other:
                yield (n := len(file.read()) + len(other.read()))
        except* OSError as error:
            raise ValueError(f"{path!r}: {error}" "no") from error


    class Mine:
        x: int
        y: list[int] = [i for i in range(3) if i]

        async def look(self, things):
            async for thing in things:
                yield [await each async for each in thing if each]

        def text(self, value, width=3):
            return f"{value!r:>{width}} and {{braces}} " "more" f"{self.x=} {f'{value}'} end" f""

        def match(self, thing):
            match thing:
                case {"a": [1, *rest], **others} if rest:
                    return lambda *, k=NAMES: (k, others)
                case Mine(x=0 | 1 as small) | (small, _):
                    return small
                case _:
                    return {i: j for i, j in zip(PAIR, REST) if i not in {1, 2}} @ self.y[1:2, ...]
    '''


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_all_versions_of_python_agree(tmp_path, version):
    """The digest is that under Python 3.11; a different one would invalidate every stored trial."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(SYNTAX))
    here = f"{sys.version_info.major}.{sys.version_info.minor}" == version
    pythons = [str(one) for one in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    python = sys.executable if here else next(iter(pythons), shutil.which(f"python{version}"))
    if python is None:
        pytest.skip(f"Python {version} is not here")
    script = "from tsadbench.utils.source_digest import source_of\nfrom mine import Mine\nprint(source_of(Mine).digest)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, "-c", script], env=environment, text=True, capture_output=True, check=True)
    assert done.stdout.strip() == "d9f2124e1576e78eb4332a741eb77bd1c091751952c6b51e849ba7c9400e72d7"


@pytest.mark.parametrize("name", ["gdn", "multiview", "max-z"])
def test_every_file_of_its_packages_that_a_detector_runs_counts(name):
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
    folders = (ROOT / "detectors", ROOT / "tsadbench" / "base")
    ran = {file for file in seen if any(map(Path(file).is_relative_to, folders))}
    assert ran
    assert ran <= set(source_of(cls).files)


def test_detectors_and_protocols_count_less_than_their_whole_package():
    classes = [*map(load_detector, ("max-z", "t2", "pca")), *map(load_protocol, ("strict", "published"))]
    assert len({source_of(cls).digest for cls in classes}) == len(classes)
    modules = source_of(classes[0]).modules
    assert {"tsadbench_detectors.max_z", "tsadbench.base.detector"} <= modules.keys()
    assert not {"tsadbench_detectors.gdn", "tsadbench.base", "tsadbench.base.dataset"} & modules.keys()
