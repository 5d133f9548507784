"""SKAB, the Skoltech Anomaly Benchmark v0.9: a water pump's testbed, eight sensors, about one row a second.

Source: Katser and Kozitsin (2020), doi 10.34740/KAGGLE/DSV/1693952; repository waico/SKAB, commit b2c0d46, GPL-3.0.
"""

from __future__ import annotations

from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.cards.published import load_published


def load(options: DataOptions) -> LabelledDataset:
    """Return SKAB: 9,405 anomaly-free rows to train on, 34 labelled recordings to test on, of four sessions.

    The time stamps tell the sessions. ``valve1``, 2020-03-09 from 10:14:33 to 15:34:41: each file begins a second or
    two after the one before. ``valve2``, the same day from 15:56:30 to 17:14:09, likewise. ``other/1-4``, 2020-03-01
    from 15:44:06 to 17:20:49. ``other/5-14``, 2020-02-08 from 16:06:48 to 19:32:19: it goes straight on from the
    training file (13:30:47 to 16:16:47), with which ``other/5`` shares ten minutes.
    """
    return load_published(Path(__file__).with_name("skab.toml"), options)
