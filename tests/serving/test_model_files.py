"""What a detector has learned goes into a file and comes back the same; a file that somebody else wrote is refused.

That each detector that ships comes back the same is tests/detectors/test_contract.py's.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import tracemalloc
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsadbench import Detector, ModelFileError, Recording, Traits, UsageError, fit_model, load_model
from tsadbench.base.serialization.archive import pack, unpack
from tsadbench.base.serialization.codec import Encoded, decode, encode
from tsadbench.base.serialization.estimators import dump_estimator, load_estimator
from tsadbench.base.serialization.parts import from_parts, to_parts
from tsadbench.errors import TsadbenchError
from tsadbench.serving.model import checksums

MIB = 2**20
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
    """Whether two values are of the same types and, to the bit, equal: they are read back from a file."""
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
@settings(max_examples=100, deadline=None)
def test_values_come_back_as_they_were(value):
    encoded = encode({"x_": value}, Learned)
    text = json.dumps(encoded.tree, allow_nan=False)
    assert same(decode(Encoded(json.loads(text), encoded.arrays, {}), Learned), {"x_": value})


def test_a_strangers_detector_needs_to_write_nothing():
    detector = Learned(shift=1.5).fit(ROWS)
    again = from_parts(Learned, unpack(pack(to_parts(detector))), {})
    assert same(again.learned(), detector.learned())
    np.testing.assert_array_equal(again.score(ROWS), detector.score(ROWS))


@pytest.mark.parametrize("value", [lambda: 0, object(), np.array(["text"]), np.array([None]), {1, 2}, Path("x")])
def test_what_cannot_be_kept_is_named(value):
    detector = Learned().fit(ROWS)
    detector.more_ = {"deep": [value]}
    with pytest.raises(ModelFileError, match=r"more_\.deep\.0"):
        to_parts(detector)


def test_what_holds_itself_is_refused():
    detector = Learned().fit(ROWS)
    detector.more_ = [detector.centre_]
    detector.more_.append(detector.more_)
    with pytest.raises(ModelFileError, match="Learned"):
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
    with pytest.raises(ModelFileError):
        decode(Encoded({"dict": [["x_", tree]]}), Learned)


@pytest.mark.parametrize("name", ["_score", "__class__"])
def test_learned_values_never_take_the_place_of_what_the_class_does(name):
    detector = Learned().fit(ROWS)
    vars(detector)[name] = 1.0
    with pytest.raises(ModelFileError, match=name):
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
        with pytest.raises(ModelFileError):
            load_estimator(dump_estimator(wild, "forest"))


def test_estimators_with_types_that_are_not_trusted_are_refused_on_the_way_in_and_out():
    import skops.io

    for estimator in (
        LocalOutlierFactor(novelty=True, algorithm="kd_tree").fit(ROWS),
        make_pipeline(StandardScaler(), IsolationForest(n_estimators=2, random_state=0)).fit(ROWS),
    ):
        with pytest.raises(ModelFileError, match="it"):
            dump_estimator(estimator, "it")
        with pytest.raises(ModelFileError):
            load_estimator(skops.io.dumps(estimator))


CONTENT = pack({"model.json": b"{}", "arrays.safetensors": bytes(range(200))})


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 255))
@settings(max_examples=200, deadline=None)
def test_any_changed_byte_and_any_truncation_is_found(place, flip):
    changed = bytearray(CONTENT)
    changed[place] ^= flip
    with pytest.raises(ModelFileError):
        unpack(bytes(changed) if flip else CONTENT[:place])


@pytest.fixture(scope="module")
def models(plant, model_file, tmp_path_factory):
    """A folder with models of three kinds: numbers, an estimator, a network."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "t2.model").write_bytes(model_file.read_bytes())
    fit_model("isolation-forest[n_estimators=3]", str(plant / "card.toml"), folder / "forest.model")
    small = "window=4,epochs=1,min_steps=1,max_steps=2"
    fit_model(f"vanilla-ae[{small}]", str(plant / "card.toml"), folder / "network.model")
    return folder


def forged(folder, name: str, card=lambda card: card, parts=lambda parts: parts):
    """Write a model with another card and other parts, and checksums that fit them; return its path."""
    members = unpack((folder / f"{name}.model").read_bytes())
    content = json.loads(members.pop("model.json"))
    members = parts(members)
    content = card({**content, "parts": checksums(members)})
    path = folder / "forged.model"
    path.write_bytes(pack({"model.json": json.dumps(content).encode(), **members}))
    return path


def require_refused(path) -> str:
    """Return why a model is refused: in one line that names it, and in less than 200 MiB."""
    tracemalloc.start()
    try:
        with pytest.raises(TsadbenchError) as caught:
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 200 * MIB
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def sealed(content: bytes) -> bytes:
    """Return a zip file's content with the last line of a model."""
    ending = b"tsadbench model, SHA-256 of the bytes before this line: "
    before = bytearray(content)
    before[-2:] = (len(ending) + 64).to_bytes(2, "little")
    return bytes(before) + ending + hashlib.sha256(before).hexdigest().encode()


def test_parts_that_are_packed_or_share_their_bytes_are_refused(tmp_path):
    """A zip bomb; and one MiB that 400 names stand for."""
    packed, shared = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", bytes(300 * MIB))
    with zipfile.ZipFile(shared, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", bytes(MIB))
        first = archive.infolist()[0]
        for number in range(400):
            copy = zipfile.ZipInfo(f"p{number:07d}")
            copy.header_offset, copy.CRC = first.header_offset, first.CRC
            copy.file_size = copy.compress_size = first.file_size
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    for buffer in (packed, shared):
        (tmp_path / "x.model").write_bytes(sealed(buffer.getvalue()))
        require_refused(tmp_path / "x.model")


def test_an_estimator_that_unpacks_to_gigabytes_is_refused(models):
    def bomb(parts):
        (name,) = [name for name in parts if name.startswith("estimators/")]
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("array.npy", bytes(300 * MIB))
        return {**parts, name: buffer.getvalue()}

    require_refused(forged(models, "forest", parts=bomb))


def test_a_network_larger_than_its_weights_is_not_built(models):
    def larger(parts):
        tree = json.loads(parts["learned.json"])
        (pair,) = [pair for pair in tree["dict"] if pair[0] == "parameters"]
        pair[1]["dict"] = [[name, 30_000 if "size" in name else value] for name, value in pair[1]["dict"]]
        return {**parts, "learned.json": json.dumps(tree).encode()}

    require_refused(forged(models, "network", parts=larger))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_a_threshold_that_nothing_or_everything_exceeds_is_refused(models, value):
    path = forged(models, "t2", card=lambda card: {**card, "threshold": {**card["threshold"], "value": 12345.5}})
    members = unpack(path.read_bytes())
    path.write_bytes(pack({**members, "model.json": members["model.json"].replace(b"12345.5", value.encode())}))
    assert "threshold" in require_refused(path)


@pytest.mark.parametrize(
    ("key", "value"), [("encoding", "klingon"), ("separator", ", "), ("header_line", 0), ("time_formats", ["%Q"])]
)
def test_a_description_of_files_that_no_file_can_have_is_refused(models, t2_model, key, value):
    path = forged(models, "t2", card=lambda card: {**card, "layout": {**card["layout"], key: value}})
    assert key.removesuffix("s") in require_refused(path)
    with pytest.raises(UsageError, match=key.removesuffix("s")):
        replace(t2_model.card.layout, **{key: tuple(value) if isinstance(value, list) else value})


@pytest.mark.parametrize("text", [b"[" * 10**6, b"\xff", b"null"])
@pytest.mark.parametrize("part", ["model.json", "learned.json"])
def test_json_that_is_no_model_is_refused(models, part, text):
    members = unpack((models / "t2.model").read_bytes())
    card = json.loads(members.pop("model.json"))
    if part == "learned.json":
        members[part] = text
    content = text if part == "model.json" else json.dumps({**card, "parts": checksums(members)}).encode()
    (models / "forged.model").write_bytes(pack({"model.json": content, **members}))
    require_refused(models / "forged.model")


def test_a_file_of_a_terabyte_is_not_read(models):
    with (models / "huge.model").open("wb") as file:
        file.truncate(2**40)
    require_refused(models / "huge.model")


@given(
    st.sampled_from(["t2", "forest", "network"]),
    st.integers(0, 9),
    st.integers(0, 10**6),
    st.sampled_from([b"", b"0", b"-", b'"', b"]", b"\x00", b"\xff"]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_somebody_writes_into_the_parts_ends_in_a_reason_or_in_scores(models, name, part, place, written):
    def changed(parts):
        chosen = sorted(parts)[part % len(parts)]
        at = place % len(parts[chosen])
        return {**parts, chosen: parts[chosen][:at] + written + parts[chosen][at + 1 :]}

    path, rows = forged(models, name, parts=changed), Recording("r", ROWS[:20], ("Pressure [bar]", "Flow"))
    with contextlib.suppress(TsadbenchError), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(load_model(path).score(rows).scores) == 20
