"""A run store with every kind of broken trial beside sound ones."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.helpers.plans import make_plan
from tests.helpers.trials import DISTANCE
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan

DATASET = "pumploop"
SOUND = (DISTANCE, "max-z", "l2-z")
# A test recording of the data set.
RECORDING = "leak/0"


@dataclass(frozen=True)
class BrokenStore:
    """The store's folder, and its broken trials' names by kind: those whose record, or whose arrays, are broken."""

    path: Path
    records: dict[str, str]
    arrays: dict[str, str]


def sound_store(folder: Path, dataset: str = DATASET, detectors: Sequence[str] = SOUND) -> Store:
    """Return a store of sound trials on a data set, by default three."""
    store = Store.create(folder)
    records = run_plan(make_plan(list(detectors), dataset=dataset, floors=False, seeds=1), store)
    assert {record.status for record in records} == {"ok"}
    return store


def broken_store(sound: Store, folder: Path) -> BrokenStore:
    """Return a copy of a store with broken copies of its first trial, each under a label of its own."""
    shutil.copytree(sound.path, folder)
    store = Store.open(folder)
    source = next(record for record in store.records() if record.label == DISTANCE)
    made: dict[str, dict[str, str]] = {"records": {}, "arrays": {}}
    for group, damages in (("records", RECORD_DAMAGES), ("arrays", ARRAY_DAMAGES)):
        for place, (kind, damage) in enumerate(damages.items()):
            trial = hashlib.sha256(f"{group} {kind}".encode()).hexdigest()[:24]
            copy(store, source, trial, f"{DISTANCE}[power={place + 3}{'0' if group == 'arrays' else ''}]")
            damage(folder / trial)
            made[group][kind] = trial
    return BrokenStore(folder, made["records"], made["arrays"])


def copy(store: Store, source: Record, trial: str, label: str, **changes: object) -> Path:
    """Add a copy of a trial under another name and label, and return its folder."""
    target = store.path / trial
    shutil.copytree(store.path / source.trial, target)
    kept = {key: value for key, value in source.manifest.items() if key not in ("checksum", "scores_hash")}
    changed = replace(source, trial=trial, label=label, scoring="", manifest=kept, **changes)
    (target / "record.json").write_text(changed.to_json(), encoding="utf-8")
    return target


def edited(**changes: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "record.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}), encoding="utf-8")

    return edit


def metric(text: str) -> Callable[[Path], None]:
    """Put a number that JSON has no word for, or is too large, in the place of every AUROC."""

    def edit(folder: Path) -> None:
        file = folder / "record.json"
        content = json.loads(file.read_text())
        for split in content["splits"].values():
            split["metrics"]["auroc"] = "here"
        file.write_text(json.dumps(content).replace('"here"', text), encoding="utf-8")

    return edit


def written(content: bytes) -> Callable[[Path], None]:
    return lambda folder: _replace(folder / "record.json", lambda file: file.write_bytes(content))


def _replace(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _linked(folder: Path) -> None:
    elsewhere = folder.parent.parent / f"elsewhere-{folder.name}"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def _record_linked(folder: Path) -> None:
    elsewhere = folder.parent.parent / f"record-{folder.name}"
    (folder / "record.json").rename(elsewhere)
    (folder / "record.json").symlink_to(elsewhere)


RECORD_DAMAGES: dict[str, Callable[[Path], None]] = {
    "no record": lambda folder: (folder / "record.json").unlink(),
    "empty folder": _empty,
    "record is a folder": lambda folder: _replace(folder / "record.json", Path.mkdir),
    "record is a pipe": lambda folder: _replace(folder / "record.json", os.mkfifo),
    "record is a link": _record_linked,
    "folder is a link": _linked,
    "record is cut": lambda folder: written((folder / "record.json").read_bytes()[:200])(folder),
    "record is empty": written(b""),
    "record is huge": written(b" " * (2**24 + 1)),
    "deep JSON": written(b"[" * 100_000),
    "another encoding": lambda folder: written(
        (folder / "record.json").read_text().replace('"family"', '"f\xe4mily"').encode("latin-1")
    )(folder),
    "NUL bytes": written(b"\0" * 5000),
    "NaN metrics": metric("NaN"),
    "infinite metrics": metric("Infinity"),
    "endless metrics": metric("1e999"),
    "unknown status": edited(status="[red]fine"),
    "vast counts": edited(rows_scored=10**400),
    "counts below zero": edited(look_ahead=-1),
    "no time at all": edited(score_seconds=1e-320),
    "no splits": edited(splits={}),
    "no thresholds": edited(thresholds=[]),
    "another schema": edited(schema=7),
    "another trial's name": edited(trial="../victim"),
    "path as data set": edited(dataset="../../x"),
    "path as protocol": edited(protocol="../x"),
    "escapes in the label": edited(label="\x1b[2Jwiped"),
    "half a label": edited(label="max-z["),
    "half a protocol": edited(protocol="strict["),
    "no object": written(b"[]"),
}


def flipped(name: str) -> Callable[[Path], None]:
    """Flip one bit in the middle of a file."""

    def flip(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)

    return flip


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def arrays(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        file = folder / "scores.npz"
        with np.load(file) as stored:
            content = change({name: stored[name] for name in stored.files})
        np.savez(file, **content)

    return write


def members(change: Callable[[dict[str, bytes]], dict[str, bytes]], kind: int = zipfile.ZIP_STORED):
    def write(folder: Path) -> None:
        file = folder / "scores.npz"
        with zipfile.ZipFile(file) as stored:
            content = change({name: stored.read(name) for name in stored.namelist()})
        with zipfile.ZipFile(file, "w", kind) as archive:
            for name, data in content.items():
                archive.writestr(name, data)

    return write


def _first_test(names: dict[str, object]) -> str:
    return next(name for name in names if name.startswith("test/"))


def _claims_much(content: dict[str, bytes]) -> dict[str, bytes]:
    """Let one header claim 16 GiB of numbers."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (2**31,)})
    return {**content, _first_test(content): stream.getvalue() + b"\0" * 800}


def _vast(folder: Path) -> None:
    """Make a file of 16 GiB that takes no room."""
    os.truncate(folder / "scores.npz", 2**34)


ARRAY_DAMAGES: dict[str, Callable[[Path], None]] = {
    "scores flipped": flipped("scores.npz"),
    "contributions flipped": flipped("contributions.npz"),
    "scores cut": cut("scores.npz"),
    "contributions cut": cut("contributions.npz"),
    "no scores": lambda folder: (folder / "scores.npz").unlink(),
    "scores are a folder": lambda folder: _replace(folder / "scores.npz", Path.mkdir),
    "scores are a pipe": lambda folder: _replace(folder / "scores.npz", os.mkfifo),
    "scores are a link": lambda folder: _replace(folder / "scores.npz", lambda file: file.symlink_to("/etc/passwd")),
    "contributions are a link": lambda folder: _replace(
        folder / "contributions.npz", lambda file: file.symlink_to("/etc/passwd")
    ),
    "array of 16 GiB": members(_claims_much),
    "file of 16 GiB": _vast,
    "objects": arrays(lambda content: {**content, _first_test(content): np.array([{}, 1], dtype=object)}),
    "texts": arrays(lambda content: {**content, _first_test(content): np.array(["a"])}),
    "another shape": arrays(lambda content: {**content, _first_test(content): content[_first_test(content)][:-1]}),
    "two dimensions": arrays(lambda content: {**content, _first_test(content): content[_first_test(content)][None]}),
    "a missing array": arrays(lambda content: {k: v for k, v in content.items() if k != _first_test(content)}),
    "no header": members(lambda content: {**content, _first_test(content): b"nothing"}),
    "a forged header": members(
        lambda content: {**content, _first_test(content): b"\x93NUMPY\x01\x00\x0a\x00" + b"(" * 10}
    ),
    "a bomb": members(lambda content: {**content, "test/bomb.npy": b"\0" * 10**7}, zipfile.ZIP_DEFLATED),
    "no archive": lambda folder: _replace(folder / "scores.npz", lambda file: file.write_bytes(b"PK broken")),
}
