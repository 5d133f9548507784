from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.loopback import FILES, Server
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets import skab
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError, DataNotFoundError

SENSORS = (
    "Accelerometer1RMS",
    "Accelerometer2RMS",
    "Current",
    "Pressure",
    "Temperature",
    "Thermocouple",
    "Voltage",
    "Volume Flow RateRMS",
)
TEST_IDS = tuple(file.removesuffix(".csv") for file in FILES[1:])


def load(folder: Path, *, allow_changed: bool = False) -> LabelledDataset:
    return skab.load(DataOptions(directory=folder.parent, allow_changed=allow_changed))


class TestSmall:
    """The loader on made-up files of SKAB's form."""

    def test_order_and_splits(self, published: Path) -> None:
        dataset, labels = load(published)
        assert [recording.id for recording in dataset.train] == ["anomaly-free"]
        assert tuple(recording.id for recording in dataset.test) == TEST_IDS
        assert tuple(labels.rows) == TEST_IDS
        assert dataset.splits == labels.splits
        assert dataset.splits == {
            "overall": TEST_IDS,
            "valve1": TEST_IDS[:16],
            "valve2": TEST_IDS[16:20],
            "other": TEST_IDS[20:],
        }
        assert (TEST_IDS[2], TEST_IDS[19], TEST_IDS[20], TEST_IDS[33]) == (
            "valve1/2",
            "valve2/3",
            "other/1",
            "other/14",
        )

    def test_values_times_and_labels(self, published: Path) -> None:
        dataset, labels = load(published)
        assert dataset.sensors == SENSORS
        last = dataset.test[-1]
        np.testing.assert_array_equal(last.values[1], [34 + (10 + i) / 100 for i in range(8)])
        start = datetime(2020, 3, 9, 10, 14, tzinfo=UTC).timestamp()
        np.testing.assert_array_equal(last.time, [start, start + 1, start + 2])
        assert labels.rows["other/14"].tolist() == [False, False, True]
        assert dataset.notes == ()

    def test_the_folder_is_absolute(self, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The box, which forbids to open it, runs in another working directory."""
        monkeypatch.chdir(published.parent)
        assert skab.load(DataOptions(directory=Path())).dataset.folder == published.resolve()

    def test_downloads_where_the_cache_is_empty(self, published: Path, cache: Path, server: Server) -> None:
        dataset, _ = skab.load(DataOptions())
        assert server.fetched == [*FILES]
        assert dataset.content_hash == load(published).dataset.content_hash
        skab.load(DataOptions())
        assert len(server.fetched) == 35

    def test_missing_file(self, published: Path) -> None:
        (published / "valve2/1.csv").unlink()
        with pytest.raises(
            DataNotFoundError, match=r"1 of 35 files are missing in .*: valve2/1\.csv; run  tsadbench data"
        ):
            load(published)

    def test_missing_column(self, published: Path) -> None:
        path = published / "other/3.csv"
        path.write_bytes(path.read_bytes().replace(b"Pressure", b"Presure"))
        with pytest.raises(
            DataError, match=r"other/3\.csv, line 1: the sensor 'Pressure' is missing; did you mean 'Presure'"
        ):
            load(published)

    @pytest.mark.parametrize("allow_changed", [False, True])
    def test_a_file_that_does_not_parse_is_told_before_those_that_differ(
        self, published: Path, allow_changed: bool
    ) -> None:
        (published / "valve1/0.csv").write_bytes((published / "valve1/1.csv").read_bytes())
        path = published / "other/14.csv"
        path.write_bytes(path.read_bytes().replace(b"34.11", b"34,11"))
        with pytest.raises(DataError, match=r"other/14\.csv, line 3: column 'Accelerometer2RMS': .*decimal mark"):
            load(published, allow_changed=allow_changed)


class TestChangedFiles:
    @pytest.fixture
    def changed(self, published: Path) -> Path:
        """Write a number of one file in another way, and change a digit of another file: both parse."""
        for file, old, new in (("valve1/4.csv", b"5.11;", b"5.110;"), ("other/2.csv", b"22.11", b"22.12")):
            content = (published / file).read_bytes()
            assert content.replace(old, new) != content
            (published / file).write_bytes(content.replace(old, new))
        return published

    def test_are_an_error(self, changed: Path) -> None:
        with pytest.raises(DataError) as caught:
            load(changed)
        assert str(caught.value) == (
            f"skab: 2 of 35 files in {changed} differ from the published ones (SHA-256): valve1/4.csv, other/2.csv; "
            f"put the published ones there with  tsadbench data fetch skab --data {changed.parent}, "
            "or continue with --allow-changed-data, which every table will say"
        )

    def test_are_noted_where_they_are_allowed(self, changed: Path) -> None:
        dataset, _ = load(changed, allow_changed=True)
        assert dataset.notes == ("2 of SKAB's 35 files differ from the published ones: valve1/4.csv, other/2.csv.",)
        assert dataset.test[TEST_IDS.index("other/2")].values[1, 1] == 22.12

    def test_a_file_that_ends_within_a_number(self, published: Path) -> None:
        path = published / "anomaly-free/anomaly-free.csv"
        path.write_bytes(path.read_bytes()[:-2])
        with pytest.raises(DataError, match=r"skab: 1 of 35 files in .* differs .*: anomaly-free/anomaly-free\.csv;"):
            load(published)

    def test_other_line_ends_are_a_change(self, published: Path) -> None:
        path = published / "valve1/0.csv"
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
        with pytest.raises(DataError, match=r"skab: 1 of 35 files .*: valve1/0\.csv;"):
            load(published)


def test_prior_and_description_ship(published: Path) -> None:
    dataset, _ = load(published)
    assert dataset.prior is not None
    assert len(dataset.prior.edges) == 19
    matrix = dataset.prior.matrix(dataset.sensors)
    assert matrix.sum() == 19
    current, voltage = SENSORS.index("Current"), SENSORS.index("Voltage")
    assert (matrix[voltage, current], matrix[current, voltage]) == (1.0, 0.0)
    assert matrix.sum(axis=0)[voltage] == 0  # nothing drives the supply voltage
    assert matrix.sum(axis=1)[SENSORS.index("Thermocouple")] == 0
    assert "language model" in dataset.prior.provenance["made_by"]
    assert "not through an API" in dataset.prior.provenance["how"]
    assert all(sensor in dataset.description for sensor in SENSORS)
    assert dataset.licence == "GPL-3.0"
    assert "10.34740/KAGGLE/DSV/1693952" in dataset.citation


def test_the_prior_describes_each_sensor_once_and_as_its_edges_do() -> None:
    content = json.loads((Path(skab.__file__).parent / "skab.prior.json").read_text(encoding="utf-8"))
    quantities = {sensor["name"]: sensor["quantity"] for sensor in content["sensors"]}
    assert tuple(quantities) == SENSORS
    for edge in content["edges"]:
        assert edge["source_quantity"] == quantities[edge["source"]]
        assert edge["target_quantity"] == quantities[edge["target"]]
        assert edge["mechanism"]


@pytest.mark.skab
class TestReal:
    """SKAB's own files, against counts and values read here by other means."""

    def test_counts(self, skab_directory: Path) -> None:
        dataset, labels = load(skab_directory / "skab")
        assert dataset.train[0].values.shape == (9_405, 8)
        assert sum(recording.n_rows for recording in dataset.test) == 37_401
        assert sum(int(rows.sum()) for rows in labels.rows.values()) == 13_067
        assert dataset.notes == ()

    def test_splits_give_the_rows_of_the_published_protocol(self, skab_directory: Path) -> None:
        """Of the concatenated series, rows 30 to n-10 are evaluated: 18,130 + 4,312 + 14,920."""
        dataset, _ = load(skab_directory / "skab")
        n_rows = {recording.id: recording.n_rows for recording in dataset.test}
        sizes = [sum(n_rows[name] for name in dataset.splits[split]) for split in ("valve1", "valve2", "other")]
        ends = [*accumulate(sizes)]
        assert [ends[0] - 30, ends[1] - ends[0], ends[2] - ends[1] - 9] == [18_130, 4_312, 14_920]

    @pytest.mark.parametrize("file", ["anomaly-free/anomaly-free.csv", "valve1/0.csv", "other/1.csv", "other/9.csv"])
    def test_every_cell_is_the_files(self, skab_directory: Path, file: str) -> None:
        """Files with CRLF and with LF line ends, read here by the csv module."""
        dataset, labels = load(skab_directory / "skab")
        name = "anomaly-free" if file.startswith("anomaly-free") else file.removesuffix(".csv")
        (recording,) = (one for one in (*dataset.train, *dataset.test) if one.id == name)
        with (skab_directory / "skab" / file).open(newline="", encoding="utf-8") as text:
            rows = [*csv.DictReader(text, delimiter=";")]
        assert recording.values.tolist() == [[float(row[sensor]) for sensor in SENSORS] for row in rows]
        assert recording.time is not None
        assert recording.time.tolist() == [
            datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC).timestamp() for row in rows
        ]
        if name in labels.rows:
            assert labels.rows[name].tolist() == [row["anomaly"] == "1.0" for row in rows]

    def test_the_time_stamps_tell_four_sessions(self, skab_directory: Path) -> None:
        """The files' own stamps, read here by the csv module."""
        spans: dict[str, tuple[datetime, datetime]] = {}
        for file in FILES:
            with (skab_directory / "skab" / file).open(newline="", encoding="utf-8") as text:
                stamps = [datetime.fromisoformat(row["datetime"]) for row in csv.DictReader(text, delimiter=";")]
            spans[file.removeprefix("anomaly-free/").removesuffix(".csv")] = (stamps[0], stamps[-1])
        members: dict[str, list[str]] = {}
        for name, session in load(skab_directory / "skab").dataset.sessions.items():
            members.setdefault(session, []).append(name)
        assert members == {
            "valve1": [f"valve1/{i}" for i in range(16)],
            "valve2": [f"valve2/{i}" for i in range(4)],
            "other/1-4": [f"other/{i}" for i in range(1, 5)],
            "other/5-14": ["anomaly-free", *(f"other/{i}" for i in range(5, 15))],
        }
        sessions = {
            session: (min(spans[name][0] for name in names), max(spans[name][1] for name in names))
            for session, names in members.items()
        }
        assert {session: [f"{moment:%F %T}" for moment in span] for session, span in sessions.items()} == {
            "valve1": ["2020-03-09 10:14:33", "2020-03-09 15:34:41"],
            "valve2": ["2020-03-09 15:56:30", "2020-03-09 17:14:09"],
            "other/1-4": ["2020-03-01 15:44:06", "2020-03-01 17:20:49"],
            "other/5-14": ["2020-02-08 13:30:47", "2020-02-08 19:32:19"],
        }
        gaps = {
            session: [
                (spans[later][0] - spans[earlier][1]).total_seconds() for earlier, later in pairwise(members[session])
            ]
            for session in members
        }
        assert set(gaps["valve1"]) | set(gaps["valve2"]) == {1.0, 2.0}
        # In the other two, files overlap, or the next one begins after half an hour at most.
        assert gaps["other/5-14"][0] == -599.0
        assert max(gaps["other/5-14"]) == 602.0
        assert max(gaps["other/1-4"]) == 1870.0

    def test_both_line_ends_are_there(self, skab_directory: Path) -> None:
        crlf = [file for file in FILES if b"\r\n" in (skab_directory / "skab" / file).read_bytes()]
        assert len(crlf) == 26

    def test_the_shipped_checksums_are_those_of_the_data_folder(self, skab_directory: Path) -> None:
        sums = skab_directory / "SHA256SUMS"
        if not sums.exists():
            pytest.skip("this data folder has no SHA256SUMS")
        found = dict(re.findall(r"^(\w{64})  skab/(.+)$", sums.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert {file: sha256 for sha256, file in found.items()} == Source.load("skab").sha256
