"""Files are written whole or not at all; a file that cannot be written is a UsageError."""

from __future__ import annotations

import os
import stat

import pytest

from tsadbench.errors import UsageError
from tsadbench.utils import files as files
from tsadbench.utils.files import open_text, require_writable, write_file


def test_text_is_written_unchanged_as_utf8_and_the_folder_is_made(tmp_path):
    file = tmp_path / "a" / "b" / "c.txt"
    assert write_file(file, "ein Ä\r\nzwei\n") == file
    assert file.read_bytes() == "ein Ä\r\nzwei\n".encode()
    write_file(file, b"\x00\xff")
    assert file.read_bytes() == b"\x00\xff"
    assert os.listdir(file.parent) == ["c.txt"]


def test_a_file_keeps_its_mode_and_a_new_one_has_the_default(tmp_path):
    file = tmp_path / "kept"
    file.write_text("")
    file.chmod(0o640)
    write_file(file, "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    usual, new = tmp_path / "usual", tmp_path / "new"
    usual.write_text("")
    assert write_file(new, "x").stat().st_mode == usual.stat().st_mode


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_file(link, "x")
    assert link.is_symlink()
    assert target.read_text() == "x"


def test_what_was_there_survives_a_failure(tmp_path, monkeypatch):
    file = tmp_path / "kept"
    file.write_text("before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_file(file, "after")
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("write", [lambda file: write_file(file, "x"), open_text, require_writable])
def test_a_file_that_cannot_be_written_is_a_usage_error(tmp_path, write):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match=str(place)):
            write(place)
