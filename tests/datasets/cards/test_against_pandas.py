"""Grids, gaps, pieces and intervals equal those that pandas computes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.cards import problems, write
from tsadbench.datasets.reader import load_card

HEAD = 'schema = 1\nname = "p"\n[train]\nfiles = ["n.csv"]\n[test]\nfiles = ["r.csv"]\n'
LABELS = '[labels]\nkind = "column"\ncolumn = "y"\n'
WIDE = f'{HEAD}{LABELS}[columns]\ntime = "t"\ntime_format = "seconds"\n'
ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)


def of(folder, card: str, table: pd.DataFrame):
    """Load a table as test recording and, without events, for training; return test recordings and labels."""
    normal = table.assign(y=0).ffill().bfill().to_csv(index=False)
    data = load_card(write(folder, {"card.toml": card, "n.csv": normal, "r.csv": table.to_csv(index=False)}))
    return data.dataset.test, data.labels.rows


def uneven(rng: np.random.Generator, n_rows: int = 200) -> pd.DataFrame:
    """Rows that lie 0 to 4 s apart, at whole milliseconds; some times are repeated."""
    seconds = 1_714_564_800 + np.cumsum(rng.integers(0, 4_000, n_rows)) / 1000
    return pd.DataFrame({"t": seconds.round(3), "a": rng.normal(size=n_rows), "y": rng.random(n_rows) < 0.1}).astype(
        {"y": int}
    )


@pytest.mark.parametrize("by", ["median", "mean", "last"])
@pytest.mark.parametrize("every", [2.5, 3])
def test_a_grid_is_pandas_resample(tmp_path, by, every):
    table = uneven(np.random.default_rng(0))
    card = f'{WIDE}[resample]\nevery = {every}\nby = "{by}"\n[gaps]\npolicy = "forward-fill"\n'
    ((recording,), labels) = of(tmp_path, card, table)
    bins = table.set_index(pd.to_datetime((table["t"] * 1000).round().astype("int64"), unit="ms")).resample(
        f"{every}s", origin="start"
    )
    np.testing.assert_allclose(recording.values[:, 0], getattr(bins["a"], by)().ffill(), rtol=1e-12)
    seconds = (bins["a"].last().index - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    np.testing.assert_allclose(recording.time, seconds, rtol=0, atol=1e-6)
    # A grid row is anomalous if any of its rows is; an empty one repeats the last row before it.
    held = bins["y"].last().ffill()
    expected = bins["y"].max().where(bins["y"].count() > 0, held) == 1
    assert labels["r"].tolist() == expected.tolist()
    assert (bins["y"].count() == 0).any()


@pytest.mark.parametrize("by", ["last", "mean", "median"])
def test_a_long_table_is_pandas_pivot(tmp_path, by):
    rng = np.random.default_rng(5)
    table = uneven(rng).assign(tag=rng.choice(["a", "b", "01", "NA"], 200))
    table.loc[:3, "tag"] = "b", "a", "NA", "01"
    card = (
        f'{WIDE}[long]\nname = "tag"\nvalue = "a"\n[resample]\nevery = 9\nby = "{by}"\n'
        '[gaps]\npolicy = "forward-fill"\n'
    )
    ((recording,), _) = of(tmp_path, card, table)
    assert recording.sensors == ("b", "a", "NA", "01")
    bins = ((table["t"] - table["t"][0]) // 9).astype(int)
    wide = table["a"].groupby([bins, table["tag"]]).agg(by).unstack().reindex(range(bins.max() + 1)).ffill()
    np.testing.assert_allclose(recording.values, wide[[*recording.sensors]], rtol=1e-12)


@pytest.mark.parametrize(("every", "n_own"), [(0.1, 1), (1, 10)])
def test_a_row_on_a_border_belongs_to_the_grid_row_after_it(tmp_path, every, n_own):
    """0.1 s has no exact float64, nor have most times of day in seconds since 1970."""
    time = 1_763_800_000.3 + np.arange(5_000) * 0.1
    table = pd.DataFrame({"t": time, "a": np.arange(5_000.0), "y": np.arange(5_000) == 7}).astype({"y": int})
    ((recording,), _) = of(tmp_path, f'{WIDE}[resample]\nevery = {every}\nby = "mean"\n', table)
    assert recording.values[:, 0].tolist() == [n_own * (row + 0.5) - 0.5 for row in range(5_000 // n_own)]


@ANY
@given(gaps=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=30), at_most=st.integers(1, 4))
def test_gaps_are_filled_as_pandas_fills_them(tmp_path, gaps, at_most):
    table = pd.DataFrame(np.arange(2.0 * len(gaps)).reshape(-1, 2), columns=["a", "b"])
    table = table.mask(np.array(gaps)).assign(t=np.arange(len(gaps)), y=0)
    table.loc[0, ["a", "b"]] = 0.5
    card = f'{WIDE}[gaps]\npolicy = "forward-fill"\nat_most = {at_most}\n'
    limited = table[["a", "b"]].ffill(limit=at_most)
    wrong = np.flatnonzero(limited.isna().any(axis=1))
    if len(wrong):
        files = {"card.toml": card, "n.csv": "t,a,b,y\n0,1,2,0\n", "r.csv": table.to_csv(index=False)}
        found = problems(write(tmp_path, files))
        assert f"r.csv, line {wrong[0] + 2}" in {one.partition(":")[0] for one in found}
    else:
        ((recording,), _) = of(tmp_path, card, table)
        assert np.array_equal(recording.values, limited)


@ANY
@given(missing=st.sets(st.integers(0, 29)), at_least=st.integers(1, 8))
def test_every_complete_row_is_in_one_piece_or_in_a_short_one(tmp_path, missing, at_least):
    table = pd.DataFrame({"t": np.arange(30), "a": np.arange(30.0), "y": np.arange(30) % 7 == 3}).astype({"y": int})
    table.loc[sorted(missing), "a"] = np.nan
    pieces = [
        list(rows)
        for _, rows in table.index[table["a"].notna()].to_series().groupby(table["a"].isna().cumsum())
        if len(rows) >= at_least
    ]
    card = f'{WIDE}[gaps]\npolicy = "cut"\nat_least = {at_least}\n'
    normal = "t,a,y\n" + "".join(f"{row},{row},0\n" for row in range(30))
    files = {"card.toml": card, "n.csv": normal, "r.csv": table.to_csv(index=False)}
    if not pieces:
        return
    data = load_card(write(tmp_path, files))
    assert [one.values[:, 0].tolist() for one in data.dataset.test] == pieces
    assert [rows.tolist() for rows in data.labels.rows.values()] == [[row % 7 == 3 for row in rows] for rows in pieces]


@ANY
@given(truth=st.lists(st.booleans(), min_size=30, max_size=30), in_time=st.booleans(), order=st.randoms())
def test_any_labels_come_back_from_their_intervals(tmp_path, truth, in_time, order):
    rows = pd.Series(truth)
    runs = rows.index[rows].to_series().groupby((rows != rows.shift()).cumsum()[rows])
    events = [f"r,{run.min()},{run.max()}" for _, run in runs]
    order.shuffle(events)
    card = WIDE.replace(LABELS, "") + 'ignore = ["y"]\n[labels]\nkind = "intervals"\nfile = "e.csv"\n'
    card += 'unit = "seconds"\n' if in_time else ""
    table = pd.DataFrame({"t": 7 + np.arange(30), "a": 1.5, "y": 0})
    write(tmp_path, {"e.csv": "\n".join(["recording,start,end", *events]) + "\n"})
    assert of(tmp_path, card, table)[1]["r"].tolist() == truth
