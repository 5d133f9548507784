"""The contracts: everything that authors of detectors, protocols, data sets and detector libraries import.

Errors and `progress` come from `tsadbench` itself. Everything here is imported at once, so that plugins need one import
line; the command line avoids this package in ``--help`` and ``list``.
"""

from annotated_types import Ge, Gt, Le, Lt

from tsadbench.base.dataset import ALL, Cause, DataOptions, Dataset, LabelledDataset, Labels, Loader
from tsadbench.base.detector import Detector, Traits, detector
from tsadbench.base.prior import Edge, Prior, Sensor
from tsadbench.base.protocol import (
    Episode,
    EpisodeThreshold,
    Judgement,
    Metric,
    Place,
    Protocol,
    Scored,
    SplitJudgement,
    Threshold,
)
from tsadbench.base.recording import Recording, Series, as_recording, as_recordings
from tsadbench.base.scores import checked_scores, flagged_rows, trailing_mean, worst_case
from tsadbench.base.search_space import Cheap, Choice, Space, Tune
from tsadbench.base.shared_rows import shared_rows
from tsadbench.base.training_facts import CONDITION_NUMBER, LEVELLED, SHARE_SEEN, STILL_FALLING, Fact, share_note
from tsadbench.base.windows import Windows, trailing_windows
from tsadbench.base.wrapping import DetectorLibrary, LibraryDetector, WrappedDetector
from tsadbench.utils.arrays import BoolArray, Float32Array, FloatArray, IntArray, mask_runs
from tsadbench.utils.distributions import find_package
from tsadbench.utils.extras import extra
from tsadbench.utils.numerics import seeded

__all__ = [
    "ALL", "CONDITION_NUMBER", "LEVELLED", "SHARE_SEEN", "STILL_FALLING", "BoolArray", "Cause", "Cheap", "Choice",
    "DataOptions", "Dataset", "Detector", "DetectorLibrary", "Edge", "Episode", "EpisodeThreshold", "Fact",
    "Float32Array", "FloatArray", "Ge", "Gt", "IntArray", "Judgement", "LabelledDataset", "Labels", "Le",
    "LibraryDetector", "Loader", "Lt", "Metric", "Place", "Prior", "Protocol", "Recording", "Scored", "Sensor",
    "Series", "Space", "SplitJudgement", "Threshold", "Traits", "Tune", "Windows", "WrappedDetector", "as_recording",
    "as_recordings", "checked_scores", "detector", "extra", "find_package", "flagged_rows", "mask_runs", "seeded",
    "share_note", "shared_rows", "trailing_mean", "trailing_windows", "worst_case",
]  # fmt: skip
