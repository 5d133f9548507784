"""A run store with sound trials and every kind of broken one."""

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
from tests.helpers.stored import Stored, stored
from tests.helpers.trials import DISTANCE
from tsadbench.execution.record import Record
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store

DATASET = "pumploop"
SOUND = (DISTANCE, "max-z", "l2-z")
# A test recording of the data set.
RECORDING = "leak/0"


@dataclass(frozen=True)
class BrokenStore:
    """The store's folder, and the names of its trials with broken records and with broken arrays, by kind of damage."""

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
    """Return a copy of a store with broken copies of its `Distance` trial, each under a separate label."""
    shutil.copytree(sound.path, folder)
    store = Store.open(folder)
    source = next(record for record in store.records() if record.label == DISTANCE)
    made: dict[str, dict[str, str]] = {"records": {}, "arrays": {}}
    for group, damages in (("records", RECORD_DAMAGES), ("arrays", ARRAY_DAMAGES)):
        for place, (kind, damage) in enumerate(damages.items()):
            trial = hashlib.sha256(f"{group} {kind}".encode()).hexdigest()[:24]
            copy(store, source, trial, f"{DISTANCE}[power={place + 3}{'0' if group == 'arrays' else ''}]")
            damage(stored(folder, trial))
            made[group][kind] = trial
    return BrokenStore(folder, made["records"], made["arrays"])


def copy(store: Store, source: Record, trial: str, label: str, **changes: object) -> Path:
    """Add a copy of a trial under another name and label, and return its record's file."""
    store.put(replace(source, trial=trial, label=label, scoring=trial, **changes))
    files, sources = stored(store.path, trial), stored(store.path, source.trial)
    shutil.copy(sources.scores, files.scores)
    if sources.contributions.exists():
        shutil.copy(sources.contributions, files.contributions)
    return files.record


def edited(**changes: object) -> Callable[[Stored], None]:
    def edit(files: Stored) -> None:
        file = files.record
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}), encoding="utf-8")

    return edit


def metric(text: str) -> Callable[[Stored], None]:
    """Replace every AUROC by a text, such as NaN or a number that is too large."""

    def edit(files: Stored) -> None:
        file = files.record
        content = json.loads(file.read_text())
        for split in content["splits"].values():
            split["metrics"]["auroc"] = "here"
        file.write_text(json.dumps(content).replace('"here"', text), encoding="utf-8")

    return edit


def written(content: bytes) -> Callable[[Stored], None]:
    return lambda files: _replace(files.record, lambda file: file.write_bytes(content))


def _replace(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)


def _record_linked(files: Stored) -> None:
    elsewhere = files.record.parents[2] / files.record.name
    files.record.rename(elsewhere)
    files.record.symlink_to(elsewhere)


RECORD_DAMAGES: dict[str, Callable[[Stored], None]] = {
    "record is a folder": lambda files: _replace(files.record, Path.mkdir),
    "record is a pipe": lambda files: _replace(files.record, os.mkfifo),
    "record is a link": _record_linked,
    "record is cut": lambda files: written(files.record.read_bytes()[:200])(files),
    "record is huge": written(b" " * (2**24 + 1)),
    "deep JSON": written(b"[" * 100_000),
    "another encoding": lambda files: written(
        files.record.read_text().replace('"family"', '"f\xe4mily"').encode("latin-1")
    )(files),
    "NaN metrics": metric("NaN"),
    "endless metrics": metric("1e999"),
    "unknown status": edited(status="[red]fine"),
    "vast counts": edited(rows_scored=10**400),
    "no splits": edited(splits={}),
    "no thresholds": edited(thresholds=[]),
    "another schema": edited(schema=7),
    "another trial's name": edited(trial="../victim"),
    "path as data set": edited(dataset="../../x"),
    "escapes in the label": edited(label="\x1b[2Jwiped"),
    "half a label": edited(label="max-z["),
    "no object": written(b"[]"),
}


def flipped(name: str) -> Callable[[Stored], None]:
    """Flip one bit in the middle of a file."""

    def flip(files: Stored) -> None:
        file: Path = getattr(files, name)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)

    return flip


def arrays(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> Callable[[Stored], None]:
    def write(files: Stored) -> None:
        file = files.scores
        with np.load(file) as stored:
            content = change({name: stored[name] for name in stored.files})
        np.savez(file, **content)

    return write


def members(change: Callable[[dict[str, bytes]], dict[str, bytes]], kind: int = zipfile.ZIP_STORED):
    def write(files: Stored) -> None:
        file = files.scores
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


ARRAY_DAMAGES: dict[str, Callable[[Stored], None]] = {
    "scores flipped": flipped("scores"),
    "contributions flipped": flipped("contributions"),
    "scores cut": lambda files: os.truncate(files.scores, files.scores.stat().st_size // 2),
    "no scores": lambda files: files.scores.unlink(),
    "scores are a folder": lambda files: _replace(files.scores, Path.mkdir),
    "scores are a pipe": lambda files: _replace(files.scores, os.mkfifo),
    "scores are a link": lambda files: _replace(files.scores, lambda file: file.symlink_to("/etc/passwd")),
    "array of 16 GiB": members(_claims_much),
    "file of 16 GiB": lambda files: os.truncate(files.scores, 2**34),  # sparse: it takes no space
    "objects": arrays(lambda content: {**content, _first_test(content): np.array([{}, 1], dtype=object)}),
    "infinite": arrays(lambda content: {name: np.full_like(scores, np.inf) for name, scores in content.items()}),
    "another shape": arrays(lambda content: {**content, _first_test(content): content[_first_test(content)][:-1]}),
    "a missing array": arrays(lambda content: {k: v for k, v in content.items() if k != _first_test(content)}),
    "a forged header": members(
        lambda content: {**content, _first_test(content): b"\x93NUMPY\x01\x00\x0a\x00" + b"(" * 10}
    ),
    "a bomb": members(lambda content: {**content, "test/bomb.npy": b"\0" * 10**7}, zipfile.ZIP_DEFLATED),
    "no archive": lambda files: _replace(files.scores, lambda file: file.write_bytes(b"PK broken")),
}
