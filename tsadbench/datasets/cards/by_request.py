"""SWaT and WADI: data sets whose files may not be published, but are sent by iTrust, SUTD, on request."""

from __future__ import annotations

from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.fetch import find
from tsadbench.datasets.reader import load_card

_CARDS = Path(__file__).parent


def load_swat(options: DataOptions) -> LabelledDataset:
    """Return SWaT, a water treatment testbed: 51 sensors and actuators, one row per second, 36 attacks.

    Its folder holds the workbooks ``SWaT_Dataset_Normal_v1`` and ``SWaT_Dataset_Attack_v0``, saved as CSV.
    """
    return load_card(_CARDS / "swat.toml", find("swat", options.directory))


def load_wadi(options: DataOptions) -> LabelledDataset:
    """Return WADI (the release A2 of 19 November 2019), a water distribution testbed: 123 columns, 15 attacks.

    Its folder holds ``WADI_14days_new.csv`` and ``WADI_attackdataLABLE.csv`` as they are sent.
    """
    return load_card(_CARDS / "wadi.toml", find("wadi", options.directory))
