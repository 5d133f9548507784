"""pumploop from a secret: other data for each secret, nothing of them in what is published, a commitment that binds."""

from __future__ import annotations

import json
import stat
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers.submissions import DETECTOR
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.pumploop.sealed import commitment, new_secret_file, read_secret, sealed_pumploop
from tsadbench.errors import UsageError
from tsadbench.leaderboard.sealed import SEALED, require_commitment, run_sealed, seal

# Known by its tables since before there were secrets (leaderboards/pumploop).
PUMPLOOP = load_dataset("pumploop")(DataOptions())
TALKATIVE = DETECTOR.replace("        self.scale_ =", "        self.seen_ = rows\n        self.scale_ =").replace(
    "    def _score(",
    "    def _training_facts(self):\n"
    "        return {f'value_{i}': float(self.seen_[i, 0]) for i in range(20)}\n\n"
    "    def _score(",
)
TELLING = DETECTOR.replace(
    "        distance =",
    "        raise ValueError(' '.join(map(str, recording.values[:5].ravel())))\n        distance =",
)


@pytest.fixture
def secret(tmp_path) -> str:
    new_secret_file(tmp_path / "seed")
    return read_secret(tmp_path / "seed")


def test_each_secret_is_a_data_set_of_its_own_like_pumploop(secret):
    one, again, other = sealed_pumploop(secret), sealed_pumploop(secret), sealed_pumploop("0" * 64)
    assert one.dataset.content_hash == again.dataset.content_hash
    assert one.labels.content_hash == again.labels.content_hash
    assert len({each.dataset.content_hash for each in (one, other, PUMPLOOP)}) == 3
    assert len({each.labels.content_hash for each in (one, other, PUMPLOOP)}) == 3
    assert one.dataset.name == f"pumploop-sealed-{commitment(secret)[:8]}"
    assert [each.id for each in one.dataset.test] == [each.id for each in PUMPLOOP.dataset.test]
    shares = [np.concatenate([*each.labels.rows.values()]).mean() for each in (one, PUMPLOOP)]
    assert abs(shares[0] - shares[1]) < 0.05


def test_the_commitment_verifies_and_binds(secret, tmp_path):
    file = seal(secret, tmp_path / "public")
    content = json.loads(file.read_text())
    assert content["commitment"] == commitment(secret)
    assert secret not in file.read_text()
    before = file.read_bytes()
    assert seal(secret, tmp_path / "public").read_bytes() == before
    other = f"{int(secret, 16) ^ 1:064x}"
    with pytest.raises(UsageError, match="commits to another secret"):
        require_commitment(other, tmp_path / "public")
    with pytest.raises(UsageError, match="commits to another secret"):
        seal(other, tmp_path / "public")


@pytest.mark.parametrize("text", ["", "1", "x" * 64, "0" * 63, "0" * 65, "\x00" * 64])
def test_what_is_no_secret_is_refused(tmp_path, text):
    (tmp_path / "seed").write_text(text)
    (tmp_path / "seed").chmod(0o600)
    with pytest.raises(UsageError, match="64 hexadecimal digits"):
        read_secret(tmp_path / "seed")


def test_a_secret_that_others_can_read_is_refused_and_none_is_replaced(tmp_path):
    file = tmp_path / "seed"
    new_secret_file(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="cannot be written"):
        new_secret_file(file)
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_secret(file)


def numbers(value: object) -> set[float]:
    """Return every number of JSON, those inside texts among them."""
    if isinstance(value, dict):
        return set().union(*map(numbers, [*value, *value.values()]), set())
    if isinstance(value, list):
        return set().union(*map(numbers, value), set())
    if isinstance(value, str):
        words = "".join(sign if sign in "0123456789.-" else " " for sign in value).split()
        return {float(word) for word in words if word.count(".") < 2 and word.strip(".-").replace(".", "").isdigit()
                and not word.endswith("-") and "-" not in word[1:]}  # fmt: skip
    return {float(value)} if isinstance(value, int | float) else set()


def test_nothing_that_is_written_holds_a_value_a_label_or_the_secret(secret, tmp_path, monkeypatch):
    """Two of the detectors try to tell what they see: in facts about the fit, and in an error's message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    (tmp_path / "telling.py").write_text(TELLING)
    public = tmp_path / "public"
    seal(secret, public)
    written = run_sealed(secret, public, ["t2", "talkative.py:Drift", "telling.py:Drift"])
    assert {file.suffix for file in written} == {".csv", ".md", ".json"}
    data = sealed_pumploop(secret)
    # Values have four decimals: those that no table needs by chance, as 0 or 1.
    every = np.concatenate([one.values.ravel() for one in (*data.dataset.train, *data.dataset.test)])
    values = {float(value) for value in np.unique(every) if not float(value * 100).is_integer()}
    assert len(values) > 100_000
    seen = data.dataset.test[0].values[0]
    assert numbers([{"reason": f"saw {seen.tolist()}"}]) & values  # so it would be found
    rows = json.loads((public / data.dataset.name / "strict" / "overall.json").read_text())["rows"]
    by_label = {row["label"]: row for row in rows}
    assert by_label["talkative.py:Drift"]["status"] == "ok"
    assert by_label["talkative.py:Drift"]["training"] == []
    assert by_label["telling.py:Drift"]["status"] == "error"
    assert {one["reason"] for one in by_label["telling.py:Drift"]["failed"]} == {"withheld: the data set is sealed"}
    assert all(row["threshold"] == [] for row in rows)
    assert by_label["t2"]["metrics"]["auroc"]["mean"] > 0.6
    measured = {"seconds", "throughput", "peak_memory_mib"}
    told = set().union(*(numbers({k: v for k, v in row.items() if k not in measured}) for row in rows))
    assert not told & values
    for file in public.rglob("*"):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            assert secret not in text
            assert file.stat().st_size < 200_000
            for labels in data.labels.rows.values():
                as_text = "".join(map(str, labels.astype(int)))
                assert as_text[:60] not in text.replace(",", "").replace(" ", "")
    assert len(data.labels.rows) == 81


def test_the_command_line_seals_runs_and_checks(tmp_path):
    def data_seal(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tsadbench", "data", "seal", "--seed-file", "seed", "--out", "public", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = data_seal()
    assert done.returncode == 0, done.stderr
    secret = (tmp_path / "seed").read_text().strip()
    assert secret not in done.stdout + done.stderr
    assert [file.name for file in (tmp_path / "public").iterdir()] == [SEALED]
    assert "the commitment to this secret" in data_seal("--check").stdout
    (tmp_path / "seed").write_text(f"{'0' * 64}\n")
    refused = data_seal("--check")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "commits to another secret" in " ".join(refused.stderr.split())
