"""Model files that a stranger has written to harm: each is refused in one line, soon and in little memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save

from tests.helpers.german_plant import HEADER, lines
from tsadbench import fit_model, load_model
from tsadbench.base.serialization.archive import pack, unpack
from tsadbench.errors import ModelFileError, TsadbenchError, UsageError
from tsadbench.registry import load_detector
from tsadbench.serving.model import checksums

MIB = 2**20


@pytest.fixture(scope="module")
def folder(plant, tmp_path_factory):
    """A folder with a file of rows and models of three kinds."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "run.csv").write_text("\n".join([HEADER, *lines(1, 30)]) + "\n")
    small = "window=4,horizon=4,hidden_size=4,epochs=1,min_steps=1"
    fit_model("t2", str(plant / "card.toml"), folder / "t2.model")
    fit_model(f"dprgm[graph=correlation,{small}]", str(plant / "card.toml"), folder / "dprgm.model")
    fit_model("isolation-forest[n_estimators=3]", str(plant / "card.toml"), folder / "forest.model")
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


def with_parameters(**changes):
    """Return a change of a model's parts: other parameters."""

    def changed(parts):
        tree = json.loads(parts["learned.json"])
        (pair,) = [pair for pair in tree["dict"] if pair[0] == "parameters"]
        pair[1]["dict"] = [[name, changes.get(name, value)] for name, value in pair[1]["dict"]]
        return {**parts, "learned.json": json.dumps(tree).encode()}

    return changed


def refusal(path, **options) -> str:
    """Return why a model is refused; it takes less than 200 MiB."""
    tracemalloc.start()
    try:
        with pytest.raises(TsadbenchError) as caught:
            load_model(path, **options)
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


def test_parts_that_share_their_bytes_are_refused(folder):
    """One MiB that 200 names stand for."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", bytes(MIB))
        shared = archive.infolist()[0]
        for number in range(400):
            copy = zipfile.ZipInfo(f"p{number:07d}")
            copy.header_offset, copy.CRC = shared.header_offset, shared.CRC
            copy.file_size = copy.compress_size = shared.file_size
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    (folder / "shared.model").write_bytes(sealed(buffer.getvalue()))
    assert "more than the file" in refusal(folder / "shared.model")


def test_an_array_that_is_named_again_and_again_is_refused(folder):
    def many(parts):
        tree = json.loads(parts["learned.json"])
        (pair,) = [pair for pair in tree["dict"] if pair[0] == "learned"]
        pair[1]["dict"].append(["more_", [{"array": "big", "order": "C"}] * 1000])
        return {"learned.json": json.dumps(tree).encode(), "arrays.safetensors": save({"big": np.zeros(MIB // 8)})}

    assert "holds what no" in refusal(forged(folder, "t2", parts=many))


@pytest.mark.parametrize("nested", [False, True])
def test_an_estimator_that_unpacks_to_gigabytes_is_refused(folder, nested):
    def bomb(parts):
        (name,) = [name for name in parts if name.startswith("estimators/")]
        inner, outer = io.BytesIO(), io.BytesIO()
        with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("array.npy", bytes(300 * MIB))
        with zipfile.ZipFile(io.BytesIO(parts[name])) as before, zipfile.ZipFile(outer, "w") as archive:
            for member in before.namelist():
                archive.writestr(member, before.read(member))
            archive.writestr("more.npz", inner.getvalue())
        return {**parts, name: outer.getvalue() if nested else inner.getvalue()}
        return {**parts, name: outer.getvalue()}

    path = forged(folder, "forest", parts=bomb)
    assert path.stat().st_size < 2 * MIB
    assert "unpacks to" in refusal(path)


@pytest.mark.parametrize(
    "parameters", [{"layers": 10**6}, {"hidden_size": 30_000}, {"embedding_size": 10**9}, {"horizon": 10**8}]
)
def test_a_network_larger_than_its_weights_is_not_built(folder, parameters):
    message = refusal(forged(folder, "dprgm", parts=with_parameters(**parameters)))
    assert "larger than the weights in the file" in message or "must be" in message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_threshold_that_nothing_or_everything_exceeds_is_refused(folder, value):
    path = forged(folder, "t2", card=lambda card: {**card, "threshold": {**card["threshold"], "value": 12345.5}})
    members = unpack(path.read_bytes())
    path.write_bytes(pack({**members, "model.json": members["model.json"].replace(b"12345.5", value.encode())}))
    assert "finite" in refusal(path)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ({"encoding": "hex"}, "no encoding 'hex'"),
        ({"encoding": "a\0b"}, "no encoding"),
        ({"encoding": "\ud800"}, "no encoding"),
        ({"encoding": "undefined"}, "no encoding"),
        ({"separator": ""}, "separator: expected one character"),
        ({"separator": ", "}, "separator: expected one character"),
        ({"separator": "\n"}, "separator: expected one character"),
        ({"separator": '"'}, "separator: expected one character"),
        ({"decimal": ""}, "decimal: expected"),
        ({"decimal": "\\"}, "decimal: expected"),
        ({"header_line": 0}, "header_line: expected"),
        ({"header_line": -5}, "header_line: expected"),
        ({"period": -1.0}, "period: expected"),
        ({"fill_at_most": 0}, "fill_at_most: expected"),
        ({"time": ["Datum"], "time_formats": []}, "time_formats: expected"),
        ({"time": ["Datum"], "time_formats": ["%Q"]}, "time_format: expected"),
        ({"time": ["Datum"], "time_formats": ["%d %d"]}, "time_format: expected"),
    ],
)
def test_a_description_of_files_that_no_file_can_have_is_refused(tsadbench, folder, layout, message):
    path = forged(folder, "t2", card=lambda card: {**card, "layout": {**card["layout"], **layout}})
    assert message in refusal(path)
    done = tsadbench("score", path, folder / "run.csv")
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("option", ["--separator", "--decimal", "--time-format"])
@pytest.mark.parametrize("value", ["", "\n", "%Q", "%d %d", "ab", "%", "\ud800"])
def test_options_that_no_file_can_have_are_one_line(tsadbench, folder, option, value):
    done = tsadbench("score", folder / "t2.model", folder / "run.csv", option, value)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1, done.err


@pytest.mark.parametrize("threads", [10**9, 2**70, -1, "many", None])
def test_a_card_does_not_start_threads_without_end(folder, threads):
    path = forged(folder, "t2", card=lambda card: {**card, "manifest": {**card["manifest"], "threads": threads}})
    assert load_model(path).card.label == "t2"


@pytest.mark.parametrize(
    "text", [b"[" * 10**6, b'{"schema": ' + b"9" * 10**5 + b"}", b"\xff", b"null", b'{"schema": 1}', b"{}" * 9]
)
@pytest.mark.parametrize("part", ["model.json", "learned.json"])
def test_json_that_is_no_model_is_refused(folder, part, text):
    members = unpack((folder / "t2.model").read_bytes())
    card = json.loads(members.pop("model.json"))
    if part == "learned.json":
        members[part] = text
    content = text if part == "model.json" else json.dumps({**card, "parts": checksums(members)}).encode()
    (folder / "forged.model").write_bytes(pack({"model.json": content, **members}))
    refusal(folder / "forged.model")


def test_a_file_beyond_the_limit_is_not_read(folder):
    with (folder / "huge.model").open("wb") as file:
        file.truncate(2**40)
    assert "expected at most" in refusal(folder / "huge.model")
    os.unlink(folder / "huge.model")


def test_a_pipe_is_read_like_a_file(folder):
    reading, writing = os.pipe()
    os.write(writing, (folder / "t2.model").read_bytes())
    os.close(writing)
    assert load_model(f"/dev/fd/{reading}").card.label == "t2"
    os.close(reading)


def test_a_fit_whose_threshold_is_infinite_writes_no_model(plant, tmp_path):
    (tmp_path / "never.py").write_text(
        "from tsadbench import Detector, Traits\n"
        "class Never(Detector):\n"
        "    traits = Traits(floor=True, fixed_threshold=float('inf'))\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording): return recording.values.sum(axis=1)\n"
    )
    load_detector(f"{tmp_path}/never.py:Never")  # only code that the program has imported itself may be a floor
    with pytest.raises(ModelFileError, match="expected a finite threshold, found inf"):
        fit_model(f"{tmp_path}/never.py:Never", str(plant / "card.toml"), tmp_path / "x.model")
    assert not (tmp_path / "x.model").exists()


def test_replace_checks_a_layout_as_well(t2_model):
    with pytest.raises(UsageError, match="header_line"):
        replace(t2_model.card.layout, header_line=0)
