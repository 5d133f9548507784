"""Freeze the committed tables as a version that never changes: ``leaderboards/v1/``, with a digest of every file.

Tables (CSV and Markdown), rankings over suites and the index of the score bank are copied; ``frozen.json`` beside them
has the versions of data sets, protocols and suites, and the files' SHA-256. The changelog's section on the changes
becomes that of the version, once every reason in it is written.

    python leaderboards/freeze.py --check         # every frozen folder is what was frozen; contents have their versions
    python leaderboards/freeze.py --version 1     # or: make freeze VERSION=1
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from changes import CHANGELOG, FROZEN, HERE, TITLE, UNWRITTEN, frozen, newest, number, parts, section

import tsadbench
from tsadbench.datasets.suites import SUITES
from tsadbench.execution.records_file import RECORDS, read_records

COPIED = ("*/*/*.csv", "*/*/*.md", "suites/*/rank.json", "bank.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Freeze or check, and return the exit code: 1 if a check fails, 2 if nothing can be frozen."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--version", type=int, metavar="N", help="freeze the tables as version N")
    what.add_argument("--check", action="store_true", help="check all frozen versions")
    options = parser.parse_args(arguments)
    top: Path = options.tables
    faults = [*_checked(top)] if options.check else [*refusals(top, options.version)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return 1 if options.check else 2
    if options.check:
        print(f"{len(frozen(top))} frozen versions are as they were frozen")
    else:
        print(f"{freeze(top, options.version)}: frozen; commit it and {top / CHANGELOG}")
    return 0


def refusals(top: Path, version: int) -> Iterator[str]:
    """Yield why the tables cannot be frozen as this version."""
    last = newest(top)
    expected = 1 if last is None else number(last) + 1
    if version != expected:
        yield f"--version {version}: expected {expected}, the number after the newest frozen version"
    yield from _checked(top)
    if last is None:
        return
    written, _ = parts(top / CHANGELOG)
    if written != section(top):
        yield f"{top / CHANGELOG} does not say what has changed since {last.name}: run  make changes"
    elif UNWRITTEN in written:
        yield f"{top / CHANGELOG}: {written.count(UNWRITTEN)} reasons are not written yet"


def freeze(top: Path, version: int) -> Path:
    """Copy the tables into the folder of a version, note what they are, and give the changelog its section."""
    folder = top / f"v{version}"
    aside = top / f".unfinished-v{version}"
    shutil.rmtree(aside, ignore_errors=True)
    for file in sorted({file for pattern in COPIED for file in top.glob(pattern)}):
        target = aside / file.relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    noted = {"version": version, "tsadbench": tsadbench.__version__, **contents(top), "files": digests(aside)}
    text = json.dumps(noted, indent=1) + "\n"
    (aside / FROZEN).write_text(text, encoding="utf-8")
    written, older = parts(top / CHANGELOG)
    body = (written or section(top)).partition("\n")[2]
    head = f"## v{version} ({datetime.now(UTC):%Y-%m-%d})\n\n{_sealed(text)}\n"
    aside.rename(folder)
    (top / CHANGELOG).write_text(f"{TITLE}\n{head}{body}{older}", encoding="utf-8")
    return folder


def contents(top: Path) -> dict[str, object]:
    """Return the versions of all data sets, protocols and suites of committed tables, and what they stand for."""
    datasets: dict[str, dict[str, object]] = {}
    protocols: dict[str, int] = {}
    for file in sorted(top.glob(f"*/*/{RECORDS}")):
        for record in read_records(file):
            version = datasets.get(record.dataset, {}).get("version", 0)
            if isinstance(version, int) and record.dataset_version >= version:
                hashes = {name: record.manifest.get(name) for name in ("data_hash", "labels_hash")}
                datasets[record.dataset] = {"version": record.dataset_version, **hashes}
            protocols[record.protocol] = max(protocols.get(record.protocol, 1), record.protocol_version)
    suites = {suite.name: {"version": suite.version, "datasets": list(suite.datasets)} for suite in SUITES.values()}
    return {"datasets": datasets, "protocols": protocols, "suites": suites}


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder but the one that notes them."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() or file.is_symlink())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file != folder / FROZEN
    }


def _checked(top: Path) -> Iterator[str]:
    """Yield what is another than it was frozen, and what has changed under the number that it was frozen with."""
    changelog = (top / CHANGELOG).read_text(encoding="utf-8") if (top / CHANGELOG).is_file() else ""
    for folder in frozen(top):
        text = (folder / FROZEN).read_text(encoding="utf-8") if (folder / FROZEN).is_file() else ""
        if not text:
            yield f"{folder / FROZEN} is missing"
            continue
        if _sealed(text) not in changelog:
            yield f"{folder / FROZEN}: its SHA-256 is not the one in {CHANGELOG}"
        noted, found = json.loads(text)["files"], digests(folder)
        for name in sorted({*noted, *found}):
            if name not in noted or name not in found:
                yield f"{folder / name}: {'is missing' if name in noted else 'was not frozen'}"
            elif noted[name] != found[name]:
                yield f"{folder / name}: differs from what was frozen"
    last = newest(top)
    if last is not None and (last / FROZEN).is_file():
        yield from version_faults(json.loads((last / FROZEN).read_text(encoding="utf-8")), contents(top))


def version_faults(then: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """Yield which data sets and suites are others than under the same version before, or have a lower one."""
    for kind in ("datasets", "suites", "protocols"):
        before, today = then[kind], now[kind]
        if not isinstance(before, dict) or not isinstance(today, dict):
            continue
        for name in before.keys() & today.keys():
            old, new = (one if isinstance(one, dict) else {"version": one} for one in (before[name], today[name]))
            if new["version"] < old["version"]:
                yield f"{kind} {name}: version {new['version']} is lower than the frozen {old['version']}"
            elif new["version"] == old["version"] and new != old:
                yield f"{kind} {name}: changed since it was frozen as version {old['version']}; raise its version"


def _sealed(text: str) -> str:
    return f"SHA-256 of `{FROZEN}`: `{hashlib.sha256(text.encode()).hexdigest()}`"


if __name__ == "__main__":
    sys.exit(main())
