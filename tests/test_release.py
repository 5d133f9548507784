"""What is published: archives, versions, addresses, the citation, the forms and the release workflow."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

from tests.helpers.scripts import load_script
from tests.helpers.wheel import ROOT, build
from tsadbench.utils.bibtex import of_program

# In parts: written out, it would be a mention of the repository.
OTHER = "https://github.com/{}/tsadbench"

release = load_script(ROOT / "docs/release.py")


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("archives"))


def checked(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs/release.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_archives_are_whole_small_and_hold_the_rows_that_against_reads(archives):
    done = checked("--dist", archives)
    assert done.returncode == 0, done.stderr
    (wheel,), (source,) = archives.glob("*.whl"), archives.glob("*.tar.gz")
    assert f"{wheel.name} {wheel.stat().st_size / 1e6:.1f} MB" in done.stdout
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        rows = opened.read("tsadbench/shipped/pumploop/strict/records.jsonl")
        metadata = message_from_bytes(opened.read(f"tsadbench-{release.project()['version']}.dist-info/METADATA"))
    assert rows == (ROOT / "leaderboards/pumploop/strict/records.jsonl").read_bytes()
    for needed in ("skab/strict/recordings.jsonl", "tep/strict/overall.csv", "checks.jsonl"):
        assert f"tsadbench/shipped/{needed}" in names
    ours_alone = (".md", ".svg", ".parquet")
    assert not [name for name in names if name.startswith("tsadbench/shipped/") and name.endswith(ours_alone)]
    for package in release.PACKAGES:
        assert f"{package}/py.typed" in names
    text = metadata.get_payload()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 5
    address = f"{release.repository()}/blob/v{release.project()['version']}/"
    assert f"{address}docs/" in text
    for link in links:
        assert link.startswith(("https://", "http://", "#")), link
    in_repository = [link.removeprefix(address).partition("#")[0] for link in links if link.startswith(address)]
    assert not [name for name in in_repository if not (ROOT / name).exists()]
    with tarfile.open(source) as opened:
        assert not [name for name in opened.getnames() if re.search(r"/(tests|docs)/", name)]


@pytest.mark.slow
def test_an_archive_that_lacks_rows_or_holds_more_is_refused(archives, tmp_path):
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / wheel.name, "w") as other:
        for name in whole.namelist():
            if name != "tsadbench/shipped/skab/strict/records.jsonl" and name != "tsadbench_detectors/py.typed":
                other.writestr(name, whole.read(name))
        other.writestr("tests/test_api.py", "")
    done, size = checked("--dist", tmp_path), (tmp_path / wheel.name).stat().st_size
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{wheel.name}: expected tsadbench/shipped/skab/strict/records.jsonl, which is not in it",
        f"{wheel.name}: expected tsadbench_detectors/py.typed, which is not in it",
        f"{wheel.name}: tests/test_api.py does not belong in it",
        # Not compressed.
        f"{wheel.name}: expected at most {release.MOST_BYTES:,} bytes, found {size:,}",
    ]


def test_versions_and_addresses_agree():
    assert list(release.version_faults()) == []
    assert list(release.address_faults()) == []
    urls = release.project()["urls"]
    assert {"Repository", "Documentation", "Changelog", "Issues", "Security"} == set(urls)
    assert all(url.startswith(release.repository()) for url in urls.values())


def test_nothing_is_published_under_a_placeholder_another_tag_or_without_a_day(tmp_path):
    """What the release workflow asks for besides `make release-check`."""
    done = checked("--tag", "v9.9", "--address", OTHER.format("somebody"), "--dist", tmp_path)
    assert done.returncode == 1
    assert f"expected the tag v{release.project()['version']}, as pyproject.toml has it, found v9.9" in done.stderr
    assert f"expected the repository's address {OTHER.format('somebody')}" in done.stderr
    assert "expected one wheel and one source archive, found 0, 0" in done.stderr


def test_one_command_writes_the_address_everywhere(tmp_path):
    copy = tmp_path / "copy"
    for name in ("pyproject.toml", "CITATION.cff", "docs/release.py", ".github/ISSUE_TEMPLATE/config.yml"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    (copy / "page.md").write_text(f"See {OTHER.format('elsewhere')}, and {release.repository()}.\n")
    subprocess.run(["git", "init", "--quiet", copy], check=True)
    own = load_script(copy / "docs/release.py")
    assert list(own.address_faults()) == [
        f"page.md: expected {own.repository()}, as in pyproject.toml, found {OTHER.format('elsewhere')}"
    ]
    address = OTHER.format("somebody")
    assert own.main(["--address", address, "--write"]) == 0
    (copy / "page.md").unlink()
    assert own.repository() == address
    assert list(own.address_faults(address)) == []
    assert f"repository-code: {address}\n" in (copy / "CITATION.cff").read_text()
    assert f"url: {address}/security" in (copy / ".github/ISSUE_TEMPLATE/config.yml").read_text()


def test_the_citation_has_what_the_format_asks_for_and_says_what_bibtex_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["cff-version"], citation["type"], citation["license"]) == ("1.2.0", "software", "MIT")
    assert citation["authors"] == [{"name": "The tsadbench developers"}]
    assert f"{{{citation['title']}}}" == of_program("0").fields["title"]
    assert citation["keywords"] == release.project()["keywords"]


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = {name for line in re.findall(r"^([a-z][\w -]*):(?!=)", MAKEFILE, re.MULTILINE) for name in line.split()}
FORMS = sorted(file for file in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_is_one_that_github_shows(file):
    """GitHub's rules: name, description and body; fields have a label, an id each, and a choice its options."""
    form = yaml.safe_load(file.read_text())
    assert {"name", "description", "body"} <= form.keys() <= {"name", "description", "body", "title", "labels"}
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 0
    for field in form["body"]:
        assert field["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert "value" in field["attributes"] if field["type"] == "markdown" else field["attributes"]["label"]
        assert field["type"] not in {"dropdown", "checkboxes"} or field["attributes"]["options"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_there_is_a_form_for_each_kind_of_issue():
    assert [file.stem for file in FORMS] == ["bug", "new-data-set", "new-detector", "wrong-number"]
    contacts = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text())["contact_links"]
    assert all(contact.keys() == {"name", "url", "about"} for contact in contacts)


def test_the_release_workflow_publishes_nothing_that_was_not_checked_and_tried():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    # YAML reads the key `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None}
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert [jobs[name].get("needs") for name in ("build", "try", "attest", "testpypi", "pypi")] == [
        None, "build", "try", "attest", "attest",
    ]  # fmt: skip
    for name, event in {"testpypi": "workflow_dispatch", "pypi": "push"}.items():
        assert f"github.event_name == '{event}'" in jobs[name]["if"]
        assert jobs[name]["environment"] == name
        assert jobs[name]["permissions"] == {"id-token": "write"}
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert "secrets." not in text
    assert "password" not in yaml.safe_dump(workflow)


@pytest.mark.parametrize("file", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda file: file.stem)
def test_a_workflow_runs_commands_that_are_here(file):
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
                assert target in TARGETS
            # What others write (titles, names of branches) would be run as a command.
            assert "${{ github." not in step.get("run", "")


def test_the_contributors_page_names_targets_that_exist():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    lines = re.findall(r"(?:`|^)make ([a-z -]+)(?=`|  |$)", page, re.MULTILINE)
    named = {name for line in lines for name in line.split()}
    assert {"quick", "lint", "test", "regress", "ci-slow", "release-check", "checks", "tables"} <= named <= TARGETS


def test_the_long_tests_of_the_wheel_belong_to_ci_slow():
    assert re.search(r"^ci-slow:.*\btest-long\b", MAKEFILE, re.MULTILINE)
    assert "pytestmark = pytest.mark.long\n" in (ROOT / "tests/test_installed_wheel.py").read_text()
