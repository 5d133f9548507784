"""Runs the command line as a user does, but in this process: what it printed, and its exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from tsadbench.cli import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def tsadbench(monkeypatch, capsys):
    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["tsadbench", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return call
