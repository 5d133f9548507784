"""docs/papers.md: its commands run as they stand, and write what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.leaderboard.test_latex import check

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path, monkeypatch, tsadbench):
    monkeypatch.chdir(tmp_path)
    printed = {}
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "tsadbench"
            file = None
            if ">" in words:
                *words, _, file = words
            done = tsadbench(*words)
            assert done.code == 0, (line, done.err)
            printed[line] = done.out
            if file is not None:
                Path(file).write_text(done.out)
    for file in ("table.tex", "differences.tex"):
        text = Path(file).read_text()
        check(text)
        assert "{T2-M (ours)} &" in text or "T2-M (ours)} &" in text
    assert "detector & AUROC & AUPRC & MCC" in Path("table.tex").read_text()
    assert Path("roc.pdf").read_bytes().startswith(b"%PDF")
    assert "@misc{hotelling1947multivariate," in Path("references.bib").read_text()
    (against,) = (out for line, out in printed.items() if "--against" in line)
    assert "pca, lof: stored, made earlier with tsadbench" in " ".join(against.split())
