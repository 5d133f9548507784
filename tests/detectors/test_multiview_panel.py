"""Who judges which training rows: each row once, by views that have seen neither it nor its neighbours in time."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.planted import series
from tsadbench.base import FloatArray
from tsadbench_detectors.multiview import MultiView
from tsadbench_detectors.multiview.panel import Panel, blocks_of, others, pieces

lengths_of_recordings = st.lists(st.integers(1, 400), min_size=1, max_size=8)


@given(lengths_of_recordings, st.integers(1, 12))
def test_blocks_are_equal_and_follow_one_another(lengths: list[int], n_blocks: int) -> None:
    borders = blocks_of(lengths, n_blocks)
    assert (borders[0], borders[-1], len(borders)) == (0, sum(lengths), n_blocks + 1)
    sizes = np.diff(borders)
    assert sizes.max() - sizes.min() <= 1


@given(lengths_of_recordings, st.integers(1, 12), st.integers(0, 40))
def test_pieces_cover_each_row_once_and_leave_it_to_the_panel_of_its_block(
    lengths: list[int], n_blocks: int, memory: int
) -> None:
    borders = blocks_of(lengths, n_blocks)
    origins = np.cumsum([0, *lengths])
    covered = []
    for piece in pieces(lengths, n_blocks, memory):
        assert 0 <= piece.first <= piece.start < piece.stop <= lengths[piece.recording]
        assert piece.first == max(0, piece.start - memory)
        rows = range(origins[piece.recording] + piece.start, origins[piece.recording] + piece.stop)
        assert borders[piece.panel] <= rows[0]
        assert rows[-1] < borders[piece.panel + 1]
        covered += rows
    assert covered == list(range(sum(lengths)))


@given(
    st.lists(st.integers(1, 9_000), min_size=1, max_size=6),
    st.integers(1, 7),
    st.integers(0, 20),
    st.integers(1_000, 12_000),
)
@settings(max_examples=60)
def test_thinned_pieces_keep_the_limit_and_are_evenly_spread(
    lengths: list[int], n_blocks: int, memory: int, at_most: int
) -> None:
    n_rows = sum(lengths)
    origins = np.cumsum([0, *lengths])
    kept = np.zeros(n_rows, dtype=np.int64)
    panels = np.full(n_rows, -1)
    for piece in pieces(lengths, n_blocks, memory, at_most):
        rows = slice(origins[piece.recording] + piece.start, origins[piece.recording] + piece.stop)
        kept[rows] += 1
        panels[rows] = piece.panel
    assert kept.max() == 1
    assert kept.sum() <= max(at_most, 1_000)
    if n_rows <= at_most // 1_000 * 1_000:
        assert kept.all()
        return
    # Stretches of 1,000 rows are kept or left out as they are; between two that are kept are about equally many.
    stretches = [set(kept[start : start + 1_000]) for start in range(0, n_rows, 1_000)]
    assert all(len(one) == 1 for one in stretches)
    starts = np.flatnonzero([one == {1} for one in stretches])
    assert len(starts) == at_most // 1_000
    assert starts[0] == 0
    gaps = np.diff([*starts, len(stretches)])
    assert gaps.max() - gaps.min() <= 1
    # Each row is judged by the panel of its own block.
    borders = blocks_of(lengths, n_blocks)
    judged = np.flatnonzero(kept)
    np.testing.assert_array_equal(panels[judged], np.searchsorted(borders, judged, side="right") - 1)


@given(lengths_of_recordings, st.integers(2, 8), st.integers(0, 50))
def test_the_others_are_all_rows_but_the_block_and_its_neighbours(lengths: list[int], n_blocks: int, gap: int) -> None:
    numbers = np.arange(sum(lengths))
    recordings = np.split(numbers, np.cumsum(lengths)[:-1])
    borders = blocks_of(lengths, n_blocks)
    for block in range(n_blocks):
        kept = others([rows[:, None] for rows in recordings], borders, block, gap)
        far = (numbers < borders[block] - gap) | (numbers >= borders[block + 1] + gap)
        # What is left of a recording before and after the block are series of their own; a single row is none.
        expected = []
        for rows in recordings:
            left = rows[far[rows]]
            runs = np.split(left, np.flatnonzero(np.diff(left) > 1) + 1)
            expected += [run.tolist() for run in runs if len(run) > 1]
        assert [rows[:, 0].tolist() for rows in kept] == expected


def _learned(panel: Panel) -> list[FloatArray]:
    views = [getattr(view, field.name) for view in panel.views.values() for field in fields(view)]
    return [*views, panel.standardiser.mean, panel.standardiser.scale]


@pytest.mark.parametrize("block", [0, 2, 4])
def test_a_panel_has_not_seen_the_rows_that_it_judges(block: int) -> None:
    """Whatever happens in a block of the training rows, and 30 rows around it, its judge stays as it is, to the bit."""
    rows = series(1_000)[:, :3]
    changed = rows.copy()
    unseen = slice(max(0, 200 * block - 30), min(1_000, 200 * (block + 1) + 30))
    changed[unseen] = 100 * np.random.default_rng(block).normal(size=changed[unseen].shape)
    before, after = MultiView().fit(rows).judges_, MultiView().fit(changed).judges_
    for number in range(5):
        alike = [np.array_equal(*pair) for pair in zip(_learned(before[number]), _learned(after[number]), strict=True)]
        assert all(alike) == (number == block)


def test_on_a_plant_that_drifts_a_range_has_a_say_only_if_it_is_judged_by_what_it_has_seen() -> None:
    flagged = []
    for blocks in (1, 5):
        shares = []
        for seed in range(4):
            rows = np.random.default_rng(seed).normal(size=(4_000, 3)).cumsum(axis=0) * 0.05
            rows += 0.3 * np.random.default_rng(seed + 100).normal(size=rows.shape)
            detector = MultiView(views="range", blocks=blocks).fit(rows[:2_500])
            shares.append(float(np.mean(detector.score(rows[2_500:]) > 3)))
        flagged.append(np.mean(shares))
    assert flagged[1] < 0.5 * flagged[0]
