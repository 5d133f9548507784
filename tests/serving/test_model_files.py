"""What a detector has learned is restored unchanged from a file; forged files are refused.

That every shipped detector is restored unchanged is tested in tests/detectors/test_contract.py.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsadbench import Detector, ModelFileError, Traits, load_model
from tsadbench.base.serialization import from_parts, to_parts
from tsadbench.errors import TsadbenchError
from tsadbench.serving.model import model_bytes, pack, unpack

ROWS = np.random.default_rng(0).normal(size=(64, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Centre:
    """A part of a learned state."""

    mean: np.ndarray
    name: str = ""


class Learned(Detector):
    """Scores by whatever it was told to learn."""

    traits = Traits(memory=0)

    def __init__(self, *, shift: float = 0.0) -> None:
        self.shift = shift

    def _fit(self, recordings):
        self.centre_ = Centre(recordings[0].values.mean(axis=0), "mean")
        self.more_ = {"a": (1, None, [True, -0.0, math.inf]), 3: "three", "nested": {"b": np.float32(0.1)}}

    def _score(self, recording):
        return np.abs(recording.values - self.centre_.mean).sum(axis=1) + self.shift


ARRAYS = hnp.arrays(
    st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "complex64"]),
    hnp.array_shapes(min_dims=0, min_side=0),
).map(lambda array: array[()] if array.ndim == 0 else array)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS | ARRAYS | ARRAYS.map(np.asfortranarray) | ARRAYS.map(np.array),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Centre, inner, st.text())
    ),
    max_leaves=8,
)


def same(one: object, other: object) -> bool:
    """Whether two values have the same types and are equal to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        layout = one.ndim < 2 or one.flags.f_contiguous == other.flags.f_contiguous or min(one.shape) == 0
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes() and layout
    if isinstance(one, np.generic):
        return one.tobytes() == other.tobytes()
    if isinstance(one, Centre):
        return same((one.mean, one.name), (other.mean, other.name))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


@given(VALUES)
@settings(max_examples=40, deadline=None)
def test_values_come_back_as_they_were(value):
    detector = Learned().fit(ROWS)
    detector.more_ = value
    assert same(from_parts(Learned, to_parts(detector), {}).more_, value)


@pytest.mark.parametrize("value", [lambda: 0, object(), np.array(["text"]), np.array([None]), {1, 2}, Path("x")])
def test_what_cannot_be_stored_is_named(value):
    detector = Learned().fit(ROWS)
    detector.more_ = {"deep": [value]}
    with pytest.raises(ModelFileError, match="more_"):
        to_parts(detector)


@pytest.mark.parametrize(
    "tree",
    [
        {"dataclass": "subprocess:Popen", "fields": {"args": "true"}},
        {"dataclass": "tests.serving.test_model_files:open", "fields": {}},
        {"dataclass": ":Learned", "fields": {}},
        {"dataclass": ":Centre", "fields": {"unknown": 1}},
        {"dataclass": "tsadbench.base.recording:Recording", "fields": {"id": "x", "values": 1, "sensors": "a"}},
        {"call": "os.system"},
        {"array": "nowhere", "order": "C"},
        {"tuple": 3},
    ],
)
def test_a_tree_that_no_fit_has_written_is_refused(tree):
    parts = to_parts(Learned().fit(ROWS))
    written = json.loads(parts["learned.json"])
    learned = dict(written["dict"])["learned"]["dict"]
    for value in ("fine", tree):
        learned[:] = [[name, value if name == "more_" else old] for name, old in learned]
        forged = {**parts, "learned.json": json.dumps(written).encode()}
        if value == "fine":
            assert from_parts(Learned, forged, {}).more_ == "fine"
    with pytest.raises(ModelFileError):
        from_parts(Learned, forged, {})


def test_an_estimator_comes_back_unless_skops_does_not_trust_a_type_in_it():
    forest = make_pipeline(StandardScaler(), IsolationForest(n_estimators=3, random_state=0)).fit(ROWS)
    detector = Learned().fit(ROWS)
    detector.more_ = forest
    again = from_parts(Learned, to_parts(detector), {})
    np.testing.assert_array_equal(again.more_.score_samples(ROWS), forest.score_samples(ROWS))
    detector.more_ = LocalOutlierFactor(novelty=True, algorithm="kd_tree").fit(ROWS)
    with pytest.raises(ModelFileError, match="Untrusted"):
        from_parts(Learned, to_parts(detector), {})


CONTENT = pack({"model.json": b"{}", "arrays.safetensors": bytes(range(200))})


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
@example(322, 64)  # the first part's comment becomes the second part
@example(422, 0x78)  # no part is listed
def test_any_changed_byte_is_found_or_harmless_and_any_truncation_is_found(place, flip):
    changed = bytearray(CONTENT)
    changed[place] ^= flip
    try:
        found = unpack(bytes(changed) if flip else CONTENT[:place])
    except ModelFileError:
        return
    assert flip
    assert found == unpack(CONTENT)


def forged(t2_model, folder, change=lambda card: card, *, card=None, learned=None):
    """Write a model with another card or other parts; return its path."""
    members = unpack(model_bytes(t2_model.card, to_parts(t2_model.detector)))
    members["model.json"] = card or json.dumps(change(json.loads(members["model.json"]))).encode()
    members["learned.json"] = learned or members["learned.json"]
    (folder / "forged.model").write_bytes(pack(members))
    return folder / "forged.model"


def require_refused(path) -> str:
    """Return the one-line reason for refusing a model; it names the file."""
    with pytest.raises(TsadbenchError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_a_threshold_that_nothing_or_everything_exceeds_is_refused(t2_model, tmp_path, value):
    path = forged(t2_model, tmp_path, lambda card: {**card, "threshold": {**card["threshold"], "value": 12345.5}})
    text = unpack(path.read_bytes())["model.json"].replace(b"12345.5", value.encode())
    assert "threshold" in require_refused(forged(t2_model, tmp_path, card=text))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_compressed_part_is_not_unpacked(method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model.json"), b"{}")
        archive.writestr("arrays.safetensors", bytes(2**20), method)
    content = buffer.getvalue()
    if method == zipfile.ZIP_STORED:
        assert len(unpack(content)) == 2
        return
    with pytest.raises(ModelFileError):
        unpack(content)


def test_a_file_of_a_terabyte_is_not_read(tmp_path):
    with (tmp_path / "huge.model").open("wb") as file:
        file.truncate(2**40)
    require_refused(tmp_path / "huge.model")
