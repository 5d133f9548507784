"""Shell completion through each shell's own protocol, and through the shells that are here."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.packages import write_package

PROGRAM = Path(sys.executable).parent / "tsadbench"
# Each with where completion is installed below the user's folder.
SHELLS = {
    "bash": ".bash_completions/tsadbench.sh",
    "zsh": ".zfunc/_tsadbench",
    "fish": ".config/fish/completions/tsadbench.fish",
}


# Completion only reads names: neither class is imported.
ENTRY_POINTS = """[tsadbench.detectors]
distance = tests.helpers.tiny:Distance
distance-noisy = tests.helpers.tiny:Noisy
"""


@pytest.fixture(autouse=True)
def _program(tmp_path_factory, monkeypatch):
    if not PROGRAM.exists():
        pytest.skip(f"the command is not installed beside {sys.executable}")
    site = tmp_path_factory.mktemp("site")
    write_package(site, "distances", ENTRY_POINTS, "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))


def called(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], env={**os.environ, **variables}, capture_output=True, text=True)


def offered(shell: str, line: str) -> list[str]:
    """What a shell is told for a line whose last word is begun, by the program alone."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    if shell == "bash":
        done = called(_TSADBENCH_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
        return done.stdout.split()
    action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"} if shell == "fish" else {}
    done = called(_TSADBENCH_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=line, **action)
    if shell == "fish":
        return [one.split("\t")[0] for one in done.stdout.splitlines()]
    return [one.split('"')[1] for one in done.stdout.splitlines() if '"' in one]


def test_what_is_fetched_is_a_data_set_or_a_suite():
    assert offered("bash", "tsadbench data fetch s") == ["skab", "smd", "swat", "servers"]
    assert offered("bash", "tsadbench data fetch skab pla") == ["plants"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_offered_names(shell):
    assert offered(shell, "tsadbench run -d distance-n") == ["distance-noisy"]
    assert offered(shell, "tsadbench run --dataset tep --split det") == ["detectable"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tsadbench run --detector dist", ["distance", "distance-noisy"]),
        ("tsadbench run -d distance --protocol ", ["published", "skab", "strict"]),
        ("tsadbench run -d distance --against pub", ["published"]),
        ("tsadbench run --dataset pump", ["pumploop"]),
        ("tsadbench run --dataset plant/", []),  # a path is the shell's own matter
        ("tsadbench run --split v", ["valve1", "valve2"]),
        ("tsadbench run --dataset gone.toml --split ", ["overall"]),
        ("tsadbench check distance-", ["distance-noisy"]),
        ("tsadbench info str", ["strict"]),
        ("tsadbench data audit te", ["tep"]),
        ("tsadbench doct", ["doctor"]),
    ],
)
def test_names_options_and_commands(line, expected):
    assert offered("bash", line) == expected


def test_splits_of_a_card_come_from_the_card(tmp_path):
    card = tmp_path / "card.toml"
    card.write_text('schema = 1\n[splits]\nnight = ["n/*"]\nday = ["d/*"]\n')
    assert offered("bash", f"tsadbench run --dataset {card} --split ") == ["overall", "night", "day"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_told_how_to_ask(shell):
    done = called("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert f"_TSADBENCH_COMPLETE=complete_{shell}" in done.stdout


def test_installing_touches_the_users_own_folder_alone(tmp_path):
    variables = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for shell, file in SHELLS.items():
        done = called("--install-completion", shell, **variables)
        assert done.returncode == 0, done.stderr
        assert f"complete_{shell}" in (tmp_path / file).read_text()


def script(shell: str) -> str:
    return called("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout


def in_shell(command: list[str]) -> str:
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_bash(tmp_path):
    (tmp_path / "script").write_text(script("bash"))
    words = "COMP_WORDS=(tsadbench run -d dist); COMP_CWORD=3"
    ask = f"{words}; _tsadbench_completion tsadbench; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    told = in_shell(["bash", "--norc", "-c", f"source {tmp_path}/script && complete -p tsadbench && {ask}"])
    assert told.splitlines()[1:] == ["distance", "distance-noisy"]
    assert "-F _tsadbench_completion tsadbench" in told


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_in_fish(tmp_path):
    (tmp_path / "script").write_text(script("fish"))
    told = in_shell(
        ["fish", "--no-config", "-c", f"source {tmp_path}/script; complete -C 'tsadbench run -d distance-n'"]
    )
    assert [line.split("\t")[0] for line in told.splitlines()] == ["distance-noisy"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
def test_in_zsh(tmp_path):
    (tmp_path / "_tsadbench").write_text(script("zsh"))
    (tmp_path / "ask").write_text(
        "zmodload zsh/zpty; zpty z zsh -f -i\n"
        "zpty -w z \"PROMPT='> '; autoload -Uz compinit; compinit -u -D; "
        f"source {tmp_path}/_tsadbench; print rea''dy\"\n"
        "zpty -r -m z before '*ready*'\n"
        "zpty -w -n z $'tsadbench run -d distance-n\\t'; zpty -r -m z out '*distance-noisy*'; print -r -- $out\n"
    )
    assert "distance-noisy" in in_shell(["zsh", "-f", str(tmp_path / "ask")])
