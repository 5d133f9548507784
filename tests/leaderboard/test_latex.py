"""LaTeX tables by a small strict grammar, for there may be no TeX: braces, environments, columns, specials."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.leaderboard.latex import escape

NASTY = r"a_b[c=$5%&#{x}^~\|<>]"
# A token: a command, an escaped special, or a character.
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
COMMANDS = {
    r"\begin", r"\end", r"\centering", r"\caption", r"\label", r"\scriptsize", r"\setlength", r"\tabcolsep",
    r"\toprule", r"\midrule", r"\bottomrule", r"\texttt", r"\textbf", r"\underline", r"\multicolumn", r"\smallskip",
    r"\raggedright", r"\textwidth", r"\par", r"\downarrow", r"\Downarrow", r"\dagger", r"\ddagger", r"\circ",
    r"\textbackslash", r"\textasciicircum", r"\textasciitilde", r"\textless", r"\textgreater", r"\textbar",
}  # fmt: skip


@pytest.fixture
def board() -> Leaderboard:
    return Leaderboard.from_records(
        [
            record("best", 0, auroc=0.91, auprc=0.8, mcc=-0.1, bf_f1=0.6),
            record("best", 1, auroc=0.93, auprc=0.8, mcc=-0.1, bf_f1=0.6),
            record("second[window=9]", auroc=0.5, auprc=0.7, prac_f1=0.9, mcc=0.2, bf_f1=0.5),
            record("floor", floor=True, auroc=0.6, auprc=0.9, prac_f1=0.1, mcc=-0.2, bf_f1=0.6),
            replace(record("cheat", auroc=0.99, mcc=0.9, bf_f1=0.9), leaky="its_own test rows"),
            record(NASTY, status="error"),
        ]
    )


def check(text: str) -> None:
    """Raise an AssertionError where LaTeX would stop, or set something else than was meant."""
    environments, braces, math = [], 0, False
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("%"))
    tokens = [found[0] for found in TOKEN.finditer(body)]
    for place, token in enumerate(tokens):
        if token == "{":
            braces += 1
        elif token == "}":
            braces -= 1
            assert braces >= 0, "a brace too many"
        elif token == "$":
            math = not math
        elif token in {"^", "_"}:
            assert math, f"{token} outside of mathematics: {body[max(0, place - 30) : place]}"
        elif len(token) > 1 and token[1].isalpha():
            assert token in COMMANDS, token
        assert token not in {"#", "%", "~", "<", ">", "|"}, token
        assert token.isascii(), token
    assert braces == 0
    assert not math
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if kind == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert environments == []
    check_columns(body)


def check_columns(body: str) -> None:
    """Each row has as many columns as the table, and none begins with what LaTeX takes for an option of its end."""
    for layout, rows in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", body, re.DOTALL):
        for row in re.sub(r"\\(top|mid|bottom)rule", "", rows).strip().split(r"\\"):
            if row.strip():
                assert not row.lstrip().startswith(("[", "*")), row
                spanned = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row))
                assert len(re.findall(r"(?<!\\)&", row)) + 1 + spanned == len(layout), row


def test_a_table_is_sound_whatever_its_names(board):
    check(board.to_latex())
    nasty = replace(
        record(NASTY, dataset=NASTY.replace("\\", ""), notes=(f"{NASTY}\nand more",)), protocol="strict[q=0.01]"
    )
    text = Leaderboard.from_records([nasty]).to_latex()
    check(text)
    assert r"\label{tab:a-b-c-5-x-strict-q-0-01-2-overall}" in text
    assert r"\texttt{a\_b[c=\$5\%\&\#\{x\}\textasciicircum{}\textasciitilde{}\textbackslash{}" in text


def test_cells_are_as_in_the_paper(board):
    text = board.to_latex()
    rows = {row.split(" & ")[0]: row.rstrip("\\ ").split(" & ") for row in text.splitlines() if r"\texttt" in row}
    header = next(line for line in text.splitlines() if line.startswith("detector")).rstrip("\\ ").split(" & ")
    best = dict(zip(header, rows[r"\texttt{best}"], strict=True))
    second = dict(zip(header, rows[r"\texttt{second[window=9]}"], strict=True))
    floor = dict(zip(header, rows[r"\texttt{floor}"], strict=True))
    assert best["AUROC"] == r"\textbf{.9200(.0141)}"
    assert second["AUROC"] == r".5000$\downarrow$"  # the second of the detectors, but no better than the floor
    assert best["MCC"] == r"\underline{$-$.1000(.0000)}"
    assert second["MCC"] == r"\textbf{.2000}"
    assert best["AUPRC"] == r".8000(.0000)$\downarrow$"
    assert floor["AUPRC"] == r".9000$^{\dagger}$"
    assert best["BF-F1*"] == ".6000(.0000)"
    assert floor["BF-F1*"] == r".6000$^{\dagger}$"  # as good as the best
    assert floor["AUROC"] == ".6000"  # the leaky row is no detector that it beats, nor one that beats it
    assert "BF-F1*" in header
    assert text.index(r"\texttt{floor}") > text.index(r"\texttt{second")
    assert text.count(r"\midrule") == 3
    assert r"\multicolumn{" in next(row for row in text.splitlines() if row.startswith(r"\texttt{a\_b"))
    assert "error in 1 of 1" in text


def test_escapes_are_not_escaped_again():
    assert escape(r"\{") == r"\textbackslash{}\{"
