"""What a detector has learned goes into a file and comes back the same; whatever else a file holds is refused."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsadbench import Detector, ModelFileError, Traits, UsageError, load_model
from tsadbench.base.serialization.archive import pack, unpack
from tsadbench.base.serialization.codec import Encoded, decode, encode
from tsadbench.base.serialization.estimators import dump_estimator, load_estimator
from tsadbench.base.serialization.parts import from_parts, to_parts

ROWS = np.random.default_rng(0).normal(size=(64, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Centre:
    """A part of what is learned, as detectors have it."""

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
    """Whether two values are of the same types and, to the bit, equal."""
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
@settings(max_examples=150, deadline=None)
def test_values_come_back_as_they_were(value):
    encoded = encode({"x_": value}, Learned)
    text = json.dumps(encoded.tree, allow_nan=False)
    assert same(decode(Encoded(json.loads(text), encoded.arrays, {}), Learned), {"x_": value})


def test_a_strangers_detector_needs_to_write_nothing():
    detector = Learned(shift=1.5).fit(ROWS)
    again = from_parts(Learned, unpack(pack(to_parts(detector))), {})
    assert same(again.learned(), detector.learned())
    np.testing.assert_array_equal(again.score(ROWS), detector.score(ROWS))


@dataclass
class Foreign:
    x: int = 0


Foreign.__module__ = "json"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (lambda: 0, "builtins.function"),
        (object(), "builtins.object"),
        (np.array(["text"]), "an array of <U4"),
        (np.array([None]), "an array of object"),
        ({1, 2}, "builtins.set"),
        (Foreign(), "a Foreign, a dataclass of another package"),
        (Path("x"), "PosixPath"),
    ],
)
def test_what_cannot_be_kept_is_named(value, found):
    detector = Learned().fit(ROWS)
    detector.more_ = {"deep": [value]}
    with pytest.raises(
        ModelFileError, match=r"Learned cannot be kept in a file: its attribute learned.more_.deep.0"
    ) as told:
        to_parts(detector)
    assert found in str(told.value)


def test_what_holds_itself_is_refused():
    detector = Learned().fit(ROWS)
    detector.more_ = [detector.centre_]
    detector.more_.append(detector.more_)
    with pytest.raises(ModelFileError, match="holds itself"):
        to_parts(detector)


@pytest.mark.parametrize(
    "tree",
    [
        {"dataclass": "subprocess:Popen", "fields": {"args": "true"}},
        {"dataclass": "tests.serving.test_codec:open", "fields": {}},
        {"dataclass": ":Learned", "fields": {}},
        {"dataclass": ":Centre", "fields": {"unknown": 1}},
        {"dataclass": "tsadbench.base.recording:Recording", "fields": {"id": "x", "values": 1, "sensors": "a"}},
        {"call": "os.system"},
        {"array": "nowhere", "order": "C"},
        {"float": "1.0"},
        {"tuple": 3},
        {},
    ],
)
def test_a_tree_that_no_fit_has_written_is_refused(tree):
    with pytest.raises(ModelFileError):
        decode(Encoded({"dict": [["x_", tree]]} if tree else tree), Learned)


@pytest.mark.parametrize("name", ["_score", "__class__", "score", "not a name"])
def test_learned_values_never_take_the_place_of_what_the_class_does(name):
    detector = Learned().fit(ROWS)
    vars(detector)[name] = 1.0
    with pytest.raises(ModelFileError, match="is no attribute that it learns"):
        from_parts(Learned, to_parts(detector), {})


def test_a_forest_comes_back_and_one_with_wild_nodes_does_not():
    forest = IsolationForest(n_estimators=3, random_state=0).fit(ROWS)
    data = dump_estimator(forest, "forest")
    np.testing.assert_array_equal(load_estimator(data).score_samples(ROWS), forest.score_samples(ROWS))
    for field, value in (("left_child", 10**6), ("left_child", 0), ("right_child", -7), ("feature", 99)):
        wild = IsolationForest(n_estimators=3, random_state=0).fit(ROWS)
        state = wild.estimators_[1].tree_.__getstate__()
        state["nodes"][field][0] = value
        wild.estimators_[1].tree_.__setstate__(state)
        with pytest.raises(ModelFileError, match="a tree"):
            load_estimator(dump_estimator(wild, "forest"))


def test_estimators_with_types_that_are_not_trusted_are_refused_on_the_way_in_and_out():
    import skops.io

    for estimator in (
        LocalOutlierFactor(novelty=True, algorithm="kd_tree").fit(ROWS),
        make_pipeline(StandardScaler(), IsolationForest(n_estimators=2, random_state=0)).fit(ROWS),
    ):
        with pytest.raises(ModelFileError, match="does not trust"):
            dump_estimator(estimator, "it")
        with pytest.raises(ModelFileError, match=r"[Uu]ntrusted|not trusted"):
            load_estimator(skops.io.dumps(estimator))
    for other in (skops.io.dumps({"no": "estimator"}), b"", b"PK\x03\x04"):
        with pytest.raises(ModelFileError, match="cannot be read"):
            load_estimator(other)


CONTENT = pack({"model.json": b"{}", "arrays.safetensors": bytes(range(200))})


def test_parts_come_back_and_any_zip_tool_reads_them(tmp_path):
    (tmp_path / "x.model").write_bytes(CONTENT)
    with zipfile.ZipFile(tmp_path / "x.model") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == list(unpack(CONTENT)) == ["model.json", "arrays.safetensors"]


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
@settings(max_examples=400, deadline=None)
def test_any_changed_byte_is_found(place, flip):
    changed = bytearray(CONTENT)
    changed[place] ^= flip
    with pytest.raises(ModelFileError, match=r"no model|cut off|changed"):
        unpack(bytes(changed))


@given(st.integers(0, len(CONTENT) - 1))
@settings(max_examples=200, deadline=None)
def test_any_truncation_is_found(length):
    with pytest.raises(ModelFileError, match=r"no model|cut off|changed"):
        unpack(CONTENT[:length])


@given(st.binary(max_size=300))
def test_whatever_is_no_model_is_refused(content):
    with pytest.raises(ModelFileError):
        unpack(content)


def test_compressed_parts_are_refused_before_they_are_unpacked(tmp_path):
    import hashlib
    import io

    from tsadbench.base.serialization import archive as module

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", b"0" * 10**6)
        archive.comment = bytes(module._ENDING_BYTES)
    before = buffer.getvalue()[: -module._ENDING_BYTES]
    with pytest.raises(ModelFileError, match="not compressed"):
        unpack(before + f"{module._COMMENT}{hashlib.sha256(before).hexdigest()}".encode())


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="there is no such file"):
        load_model(tmp_path / "none.model")
    with pytest.raises((ModelFileError, UsageError), match="cannot be read"):
        load_model(tmp_path)
