"""Every detector that ships: kept in a file and read back it scores the same, and row by row as all at once."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench import Prior, Recording
from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Edge
from tsadbench.base.protocol import Threshold
from tsadbench.base.serialization.archive import unpack
from tsadbench.base.serialization.parts import to_parts
from tsadbench.errors import TsadbenchError
from tsadbench.registry import entries, load_detector, registered_name
from tsadbench.serving.model import Model, ModelCard, _card_and_parts, checksums, from_bytes, model_bytes
from tsadbench.serving.stream import Stream
from tsadbench.utils.code_fingerprint import code_fingerprint
from tsadbench.utils.threads import limit_threads

SENSORS = ("a", "b", "c")
# Rows that come at once: one by one around the first full windows, then more, then one by one again.
CHUNKS = (3, 3, *[1] * 8, 17, 2, *[1] * 7, 20)
PRIOR = Prior((Edge("a", "b"), Edge("b", "c", votes=0.5)))
NAMES = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]
VARIANTS: list[tuple[str, dict[str, object]]] = [
    *((name, {}) for name in NAMES),
    ("dprgm", {"graph": "domain", "prior": PRIOR, "edge_votes": True, "backbone": "gat"}),
    ("grelen", {"statistic": "reconstruction"}),
    ("multiview", {"adaptive": True}),
    ("t2", {"smoothing": 4}),
    ("mset", {"smoothing": 3}),
    ("pyod:ECOD", {}),
    ("pyod:KNN", {"window": 3}),
    ("pyod:INNE", {"seed": 3}),
    ("pyod:LUNAR", {}),
    ("sklearn:LocalOutlierFactor", {}),
    ("sklearn:IsolationForest", {"n_estimators": 10, "seed": 3}),
]


def recording(seed: int, n_rows: int) -> Recording:
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.normal(size=(n_rows, 3)), axis=0) * 0.1 + rng.normal(size=(n_rows, 3))
    return Recording("r", values, SENSORS)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    limit_threads(1)


def as_model(detector) -> bytes:
    parts = to_parts(detector)
    cls = type(detector)
    card = ModelCard(
        detector=registered_name(cls),
        label="it",
        class_name=cls.__qualname__,
        code_hash=code_fingerprint(cls),
        sensors=SENSORS,
        threshold=Threshold(value=1.0, method="fixed", status="fixed"),
        protocol="strict",
        dataset="small",
        n_rows=240,
        layout=FileFormat(),
        manifest={},
        parts=checksums(parts),
    )
    return model_bytes(card, parts)


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda variant: "-".join([variant[0], *map(str, variant[1])]))
def fitted(request):
    name, changes = request.param
    cls = load_detector(name)
    cheap = {key: 1 if key == "epochs" else value for key, value in cls.test_params().items()}
    if cls.traits.needs_prior:
        cheap.setdefault("prior", PRIOR)
    return cls(**{**cheap, **changes}).fit([recording(1, 90), recording(2, 80)])


def test_read_back_it_scores_the_same_to_the_bit(fitted):
    content = as_model(fitted)
    again = from_bytes(content).detector
    assert again is not fitted
    test = recording(3, 90)
    np.testing.assert_array_equal(again.score(test), fitted.score(test))
    if fitted.offers_contributions():
        np.testing.assert_array_equal(again.contributions(test), fitted.contributions(test))
    assert set(again.learned()) == set(fitted.learned())


def test_row_by_row_it_scores_as_all_at_once(fitted):
    model = Model(fitted, from_bytes(as_model(fitted)).card)
    test = recording(4, sum(CHUNKS))
    offers = fitted.offers_contributions()
    expected = model.score(test, contributions=offers)
    stream = Stream(model, contributions=offers)
    look_ahead, memory = fitted.declared_traits().look_ahead, fitted.declared_traits().memory
    found, split, seen = [], [], 0
    for count in CHUNKS:
        answers = stream.push(test.values[seen : seen + count])
        seen += count
        found.append(answers.scores)
        split.append(answers.contributions)
        assert sum(map(len, found)) == max(0, seen - look_ahead)
        assert len(stream._values) <= (seen if memory is None else memory + look_ahead)
    assert seen == test.n_rows
    last = stream.finish()
    found.append(last.scores)
    split.append(last.contributions)
    # Networks compute in single precision, and other numbers of windows at once are summed in another order.
    np.testing.assert_allclose(np.concatenate(found), expected.scores, rtol=1e-4, atol=1e-7)
    if offers:
        np.testing.assert_allclose(np.concatenate(split), expected.contributions, rtol=1e-3, atol=1e-6)
    else:
        assert set(map(type, split)) == {type(None)}
    if fitted.traits.extra is None and type(fitted).__name__ != "MSET":
        np.testing.assert_array_equal(np.concatenate(found), expected.scores)


@pytest.fixture(scope="module")
def by_hand():
    """Parts of two models, whose bytes somebody may change who also writes the checksums anew."""
    rows = [recording(1, 40)]
    made = {}
    for name in ("nearest-neighbour", "isolation-forest", "vanilla-ae"):
        cls = load_detector(name)
        cheap = {"n_estimators": 2} if name == "isolation-forest" else {}
        detector = cls(**{**cls.test_params(), **cheap}).fit(rows)
        made[name] = _card_and_parts(unpack(as_model(detector)))
    return made


@given(
    st.sampled_from(["nearest-neighbour", "isolation-forest", "vanilla-ae"]),
    st.integers(0, 9),
    st.integers(0, 10**6),
    st.sampled_from([b"", b"0", b"-", b"9", b'"', b"{", b"]", b"\x00", b"\xff"]),
)
@settings(max_examples=120, deadline=None)
def test_whatever_somebody_writes_into_the_parts_ends_in_a_reason_or_in_scores(by_hand, name, part, place, written):
    card, parts = by_hand[name]
    chosen = sorted(parts)[part % len(parts)]
    content = parts[chosen]
    place %= len(content)
    changed = {**parts, chosen: content[:place] + written + content[place + 1 :]}
    file = model_bytes(replace(card, parts=checksums(changed)), changed)
    with contextlib.suppress(TsadbenchError), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(from_bytes(file).score(recording(3, 20)).scores) == 20


def test_all_that_ship_are_here():
    assert len(NAMES) >= 20
