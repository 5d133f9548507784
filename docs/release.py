"""Check what a release consists of: one version everywhere, one address of the repository, and whole archives.

`make release-check` runs it without options, beside the tools that check archives; the release workflow adds the tag
and the address that it runs at. Faults are printed, one a line, and the exit code is 1.

    python docs/release.py                                        # the pages, and the archives in dist/
    python docs/release.py --tag v0.1.0 --address https://...     # what publishing asks for besides
    python docs/release.py --address https://... --write          # write the repository's address wherever it is named
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Stands in pyproject.toml until the repository has an address: no account name is made up.
PLACEHOLDER = "https://github.com/OWNER/tsadbench"
# The budget of each archive. PyPI takes 100 MB; these hold the packages and the rows that --against reads.
MOST_BYTES = 6_000_000
PACKAGES = ("tsadbench", "tsadbench_detectors", "tsadbench_protocols")
_ADDRESS = re.compile(r"https://github\.com/[\w.-]+/tsadbench\b")
# Lock files and the like aside, an address stands in text that is this short.
_MOST_TEXT = 500_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag to publish, v and the version")
    parser.add_argument("--address", help="the repository's address")
    parser.add_argument("--write", action="store_true", help="write the address wherever the repository's is named")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the archives")
    chosen = parser.parse_args(arguments)
    if chosen.write:
        if not chosen.address or not _ADDRESS.fullmatch(chosen.address):
            parser.error(f"--write needs --address https://github.com/ACCOUNT/tsadbench, found {chosen.address!r}")
        for file in written_to(chosen.address):
            print(f"wrote {file.relative_to(ROOT)}")
        return 0
    faults = [*version_faults(chosen.tag), *address_faults(chosen.address)]
    wheels, sources = sorted(chosen.dist.glob("*.whl")), sorted(chosen.dist.glob("*.tar.gz"))
    for archive in [*wheels, *sources]:
        faults += archive_faults(archive)
    if chosen.tag and (len(wheels), len(sources)) != (1, 1):
        faults.append(f"{chosen.dist}: expected one wheel and one source archive, found {len(wheels)}, {len(sources)}")
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        sizes = [f"{one.name} {one.stat().st_size / 1e6:.1f} MB" for one in [*wheels, *sources]]
        print(f"{project()['version']}: {', '.join(sizes) or 'no archives in dist/: make release-check builds them'}")
        if repository() == PLACEHOLDER:
            print(f"the repository's address is still {PLACEHOLDER}: --address URL --write fills it in")
    return 1 if faults else 0


def project() -> dict[str, object]:
    """Return the table `project` of pyproject.toml."""
    table: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def repository() -> str:
    """Return the repository's address: the one place from which all others are checked."""
    found = re.search(r'^Repository = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("pyproject.toml: expected Repository in [project.urls], found none")
    return found[1]


def version_faults(tag: str | None = None) -> Iterator[str]:
    """Yield where another version stands than pyproject.toml's; with a tag, what a published version lacks."""
    version = project()["version"]
    module = (ROOT / "tsadbench" / "_version.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in module:
        yield f"tsadbench/_version.py: expected version {version}, as in pyproject.toml"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}\n" not in citation:
        yield f"CITATION.cff: expected version: {version}, as in pyproject.toml"
    heading = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if heading is None or heading[1] != version:
        yield f"CHANGELOG.md: expected ## {version} (DATE) as the first heading, found {heading and heading[0]}"
    if tag is None:
        return
    if tag != f"v{version}":
        yield f"expected the tag v{version}, as pyproject.toml has it, found {tag}"
    if heading is not None:
        day = heading[2]
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
            yield f"CHANGELOG.md: expected the day of the release after {version}, found ({day})"
        elif f"\ndate-released: {day}\n" not in citation:
            yield f"CITATION.cff: expected date-released: {day}, as in CHANGELOG.md"


def address_faults(address: str | None = None) -> Iterator[str]:
    """Yield every mention of the repository that differs from pyproject.toml's; with an address, whether it is that."""
    known = repository()
    for file, text in _texts():
        for other in sorted(set(_ADDRESS.findall(text)) - {known}):
            yield f"{file.relative_to(ROOT)}: expected {known}, as in pyproject.toml, found {other}"
    if address is not None and address != known:
        yield (
            f"pyproject.toml: expected the repository's address {address}, found {known}: run "
            f"`python docs/release.py --address {address} --write` and commit the result"
        )


def written_to(address: str) -> list[Path]:
    """Write the address in place of the one that stands in pyproject.toml; return the files that changed."""
    changed = []
    known = re.compile(re.escape(repository()) + r"\b")
    for file, text in _texts():
        if known.search(text):
            file.write_text(known.sub(address, text), encoding="utf-8")
            changed.append(file)
    return changed


def archive_faults(archive: Path) -> list[str]:
    """Return what an archive lacks, holds besides, or weighs too much."""
    names, needed, unwanted = _contents(archive)
    faults = [f"{archive.name}: expected {name}, which is not in it" for name in sorted(needed - names)]
    faults += [f"{archive.name}: {name} does not belong in it" for name in sorted(names) if unwanted.search(name)]
    if (size := archive.stat().st_size) > MOST_BYTES:
        faults.append(f"{archive.name}: expected at most {MOST_BYTES:,} bytes, found {size:,}")
    return faults


def _contents(archive: Path) -> tuple[set[str], set[str], re.Pattern[str]]:
    """Return what an archive holds, what it must hold, and what it must not."""
    rows = {file.relative_to(ROOT / "leaderboards").as_posix() for file in _tables()}
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = set(wheel.namelist())
        needed = {f"tsadbench/shipped/{name}" for name in rows}
        roots = {name: ROOT / folder for name, folder in zip(PACKAGES, ("", "detectors", "protocols"), strict=True)}
        for package, root in roots.items():
            needed |= {file.relative_to(root).as_posix() for file in _tracked(root / package)}
        return names, needed, re.compile(rf"^(?!(?:{'|'.join(PACKAGES)})(?:/|-[\d.]+\w*\.dist-info/))|\.pyc$")
    with tarfile.open(archive) as source:
        names = {member.name.partition("/")[2] for member in source if member.isfile()}
    needed = {f"leaderboards/{name}" for name in rows} | {"setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE"}
    needed |= {"README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"}
    for folder in ("tsadbench", "detectors", "protocols"):
        needed |= {file.relative_to(ROOT).as_posix() for file in _tracked(ROOT / folder)}
    return names, needed, re.compile(r"^(tests|docs|leaderboards/(submissions|bank|v\d+))/|\.pyc$")


def _tables() -> Iterator[Path]:
    """Yield the records, and what stands beside them, of every data set that ships."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for file in _tracked(ROOT / "leaderboards"):
        folder = file.parent.relative_to(ROOT / "leaderboards").parts
        if len(folder) == 2 and folder[0] in points["tsadbench.datasets"]:
            ships = file.suffix == ".csv" or file.name in ("records.jsonl", "recordings.jsonl")
        else:
            ships = not folder and file.suffix in (".json", ".jsonl")
        if ships:
            yield file


def _tracked(folder: Path) -> list[Path]:
    """Return the files below a folder that git knows or does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", str(folder)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [file for name in listed.split("\0") if name and (file := ROOT / name).is_file()]


def _texts() -> Iterator[tuple[Path, str]]:
    """Yield every file of the repository that is text, with its text."""
    for file in _tracked(ROOT):
        if file.stat().st_size <= _MOST_TEXT and file != Path(__file__).resolve():
            try:
                yield file, file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


if __name__ == "__main__":
    sys.exit(main())
