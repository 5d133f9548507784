"""Commands of plugins (entry point group `tsadbench.commands`), from packages as pip would install them."""

from __future__ import annotations

import sys

import pytest

from tests.helpers.packages import write_package

HELLO = """
import typer

app = typer.Typer()

@app.command()
def greet(name: str, loud: bool = False):
    '''Greet somebody.'''
    print(f"hello {name}{'!' * loud}")

@app.command()
def fail():
    from tsadbench import UsageError
    raise UsageError("--name is wrong")
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Install a sound plugin, and one that cannot be imported."""
    write_package(tmp_path, "hello_plugin", "[tsadbench.commands]\nhello = hello_plugin:app\n", HELLO)
    write_package(tmp_path, "torn_plugin", "[tsadbench.commands]\ntorn = torn_plugin:app\n", "import nothing_there")
    write_package(tmp_path, "odd_plugin", "[tsadbench.commands]\nodd = odd_plugin:app\n", "app = 3")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("hello_plugin", None)


def test_a_plugin_adds_a_command(plugin, tsadbench):
    done = tsadbench("hello", "greet", "Ada", "--loud")
    assert (done.code, done.out) == (0, "hello Ada!\n")
    assert "greet" in tsadbench("hello", "--help").out
    assert "--install-completion" not in tsadbench("hello", "--help").out


def test_help_lists_plugins_and_imports_none(plugin, tsadbench):
    done = tsadbench("--help")
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name in ("hello", "torn", "odd", "prior"))
    assert "hello_plugin" not in sys.modules


@pytest.mark.parametrize("name", ["torn", "odd"])
def test_a_broken_plugin_costs_one_line(plugin, tsadbench, name):
    done = tsadbench(name, "anything")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert name in done.err
    assert tsadbench("--version").code == 0


def test_errors_of_a_plugin_end_as_those_of_any_command(plugin, tsadbench):
    done = tsadbench("hello", "fail")
    assert (done.code, done.err.count("\n"), "--name" in done.err) == (2, 1, True)
