"""What a detector's code says of itself is printable, whatever it says."""

from __future__ import annotations

import pytest

from tsadbench.errors import PluginError
from tsadbench.sandbox.describing import describe

pytestmark = pytest.mark.processes

CODE = '''
from tsadbench import Detector

class Talks(Detector):
    """Erases \x1b[2J the terminal.

    Parameters
    ----------
    width
        Of \u202eno use\x9b.
    """

    def __init__(self, *, width: int = 1) -> None:
        self.width = width

    def _fit(self, recordings): ...

    def _score(self, recording):
        return recording.values.sum(axis=1)
'''


def test_docstrings_reach_the_terminal_as_text(tmp_path):
    file = tmp_path / "talks.py"
    file.write_text(CODE, encoding="utf-8")
    described = describe(f"{file}:Talks")
    assert described.doc.startswith("Erases \\x1b[2J the terminal.\n\n")
    assert [parameter.meaning for parameter in described.parameters] == [r"Of \u202eno use\x9b."]


def test_a_module_that_cannot_be_imported_is_told_in_text(tmp_path):
    file = tmp_path / "fails.py"
    file.write_text("raise RuntimeError('\\x1b]0;owned\\x07')\nclass Fails: ...\n", encoding="utf-8")
    with pytest.raises(PluginError) as caught:
        describe(f"{file}:Fails")
    assert str(caught.value).isprintable()
    assert r"\x1b]0;owned\x07" in str(caught.value)
