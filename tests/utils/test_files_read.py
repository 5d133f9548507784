"""Whole files, up to a size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tsadbench.utils.files import read_bytes


def test_a_file_of_just_the_size_is_read_and_a_longer_one_is_not(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 8192)
    assert read_bytes(file, 2**21) == file.read_bytes()
    with pytest.raises(OSError, match="2,097,151 bytes"):
        read_bytes(file, 2**21 - 1)


def test_a_pipe_is_read_to_its_end_and_a_device_without_end_up_to_the_limit():
    reading, writing = os.pipe()
    os.write(writing, b"text")
    os.close(writing)
    assert read_bytes(Path(f"/dev/fd/{reading}"), 4) == b"text"
    os.close(reading)
    with pytest.raises(OSError, match="too large"):
        read_bytes(Path("/dev/zero"), 2**22)
