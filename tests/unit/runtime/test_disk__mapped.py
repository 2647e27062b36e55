"""Files that are written through shared memory; the compiled build has them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warren.runtime import disk

if disk.IS_MAPPING_AVAILABLE:
    from warren.runtime.mapped_file import MappedFile

pytestmark = pytest.mark.skipif(not disk.IS_MAPPING_AVAILABLE, reason="interpreted: files are not mapped")


@contextmanager
def mapped(path: Path, content: bytes) -> Iterator["MappedFile"]:
    path.write_bytes(content)
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        found = MappedFile(file, len(content))
    finally:
        os.close(file)
    yield found
    found.close()


def test_what_is_written_is_read_from_the_file(tmp_path: Path) -> None:
    with mapped(tmp_path / "a", bytes(48)) as file:
        file.write(16, b"sixteen bytes 16")
        file.write(1, b"abc")
        expected = b"\0abc".ljust(16, b"\0") + b"sixteen bytes 16" + bytes(16)
        assert (tmp_path / "a").read_bytes() == expected


@pytest.mark.parametrize(("at", "size"), [(-1, 1), (8, 1), (7, 2), (0, 9)])
def test_nothing_is_written_outside_of_the_file(tmp_path: Path, at: int, size: int) -> None:
    with mapped(tmp_path / "a", bytes(8)) as file:
        with pytest.raises(ValueError, match=f"{size} bytes from byte {at} on are not in a file of 8 bytes"):
            file.write(at, b"x" * size)
        assert (tmp_path / "a").read_bytes() == bytes(8)


def test_a_closed_file_has_no_room(tmp_path: Path) -> None:
    with mapped(tmp_path / "a", bytes(8)) as file:
        file.close()
        assert file.size == 0
        with pytest.raises(ValueError, match="not in a file of 0 bytes"):
            file.write(0, b"x")


def test_a_page_that_cannot_be_written_is_an_error_each_time(tmp_path: Path) -> None:
    with mapped(tmp_path / "a", bytes(8)) as file:
        os.truncate(tmp_path / "a", 0)
        for _ in range(3):
            with pytest.raises(OSError, match="Input/output error"):
                file.write(0, b"x")
        os.truncate(tmp_path / "a", 8)
        file.write(0, b"x")
        assert (tmp_path / "a").read_bytes() == b"x" + bytes(7)


def test_a_page_fault_elsewhere_ends_the_process_as_before(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(8))
    code = (
        "import mmap, os, sys, warren.runtime.mapped_file\n"
        "file = os.open(sys.argv[1], os.O_RDWR)\n"
        "found = mmap.mmap(file, 8)\n"
        "os.truncate(sys.argv[1], 0)\n"
        "found[0] = 1\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False, timeout=60)
    assert ended.returncode == -signal.SIGBUS
