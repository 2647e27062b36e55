"""Jobs of a disk in a thread without the interpreter's lock; the compiled build has it."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warren.runtime import file_writer
from warren.runtime.disk import DirectoryDisk
from warren.runtime.file_writer import FileJob, FileWriter, WriteEnd, job_of
from warren.runtime.worker_thread import WorkerThread
from warren.store.disk import (
    CreateFile,
    DeleteFile,
    DiskStep,
    OnDone,
    RenameFile,
    SyncDirectory,
    SyncFile,
    WriteFile,
)

pytestmark = pytest.mark.skipif(not file_writer.IS_AVAILABLE, reason="interpreted: there is no such thread")


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def piece(file: int, at: int, chunks: list[bytes]) -> FileJob:
    job = job_of([WriteFile("a", at, chunks), SyncFile("a")], -1, {"a": file}, True)
    assert job is not None
    return job


def ended(*jobs: FileJob) -> list[WriteEnd]:
    """Do `jobs`, submitted at once; returns the results in order."""

    async def scenario() -> list[WriteEnd]:
        own = FileWriter("test", asyncio.get_running_loop())
        ends: asyncio.Queue[WriteEnd] = asyncio.Queue()
        for job in jobs:
            own.do(job, ends.put_nowait)
        reported = [await ends.get() for _ in jobs]
        own.close()
        return reported

    return asyncio.run(scenario())


def written(file: int, *pieces: tuple[int, list[bytes]]) -> list[int]:
    """Write all `pieces` into `file`, submitted at once; returns the errors in order."""
    return [number for number, _, _ in ended(*(piece(file, at, chunks) for at, chunks in pieces))]


def test_pieces_are_written_in_order_at_their_offsets(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as file:
        assert written(file, (2, [b"ab", b"", b"cd"]), (0, [b"xy"]), (4, [b"CD"])) == [0, 0, 0]
    assert (tmp_path / "a").read_bytes() == b"xyabCD"


def test_more_chunks_than_one_system_call_accepts_are_written(tmp_path: Path) -> None:
    chunks = [str(number).encode() for number in range(3 * os.sysconf("SC_IOV_MAX") + 1)]
    with opened(tmp_path / "a") as file:
        assert written(file, (0, chunks)) == [0]
    assert (tmp_path / "a").read_bytes() == b"".join(chunks)


def test_a_partial_write_is_continued(tmp_path: Path) -> None:
    """A write is cut short in the middle of a chunk by the limit of the file size, and the rest fails."""
    code = """
import asyncio, resource, signal, sys
from tests.unit.runtime.test_file_writer import opened, written
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
with opened(Path(sys.argv[1])) as file:
    print(written(file, (0, [b"abc", b"defghijkl"]), (0, [b"ABC"])))
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"[{errno.EFBIG}, 0]\n"
    assert (tmp_path / "a").read_bytes() == b"ABCdefghij"


def test_a_failure_is_reported_and_the_next_piece_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    file = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        assert written(file, (0, [b"x"])) == [errno.EBADF]
    finally:
        os.close(file)
    with opened(tmp_path / "a") as other:
        assert written(other, (-1, [b"x"]), (0, [b"y"])) == [errno.EINVAL, 0]


def test_anything_but_a_list_of_bytes_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as file, pytest.raises(TypeError, match="chunk 1 is bytearray, not bytes"):
        written(file, (0, [b"a", bytearray(b"b")]))  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ((), r"there is no step \(\)"),
        ((9, 0), r"there is no step \(9, 0\)"),
        ((1, 0), r"there is no step \(1, 0\)"),
        ((2, -1), "there is no file -1"),
        ((4, -1, "a", "b"), "there is no file -1"),
        ((4, 0, "a", "b\0c"), "embedded null character"),
    ],
)
def test_steps_that_do_not_exist_are_refused(step: tuple[object, ...], text: str) -> None:
    job = FileJob()
    job.add("a", step)
    with pytest.raises((TypeError, ValueError), match=text):
        ended(job)


def test_a_closed_writer_has_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    def counted() -> tuple[int, int]:
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    with opened(tmp_path / "a") as file:
        written(file, (0, [b"x"]))
        before = counted()
        written(file, (0, [b"x"]))
        assert counted() == before


def test_closing_waits_for_the_current_write(tmp_path: Path) -> None:
    async def closed(file: int) -> None:
        own = FileWriter("test", asyncio.get_running_loop())
        for at in (0, 1):
            own.do(piece(file, at, [bytes(range(256)) * 40_000]), lambda _: None)
        own.close()

    before = len(os.listdir("/proc/self/task"))
    with opened(tmp_path / "a") as file:
        asyncio.run(closed(file))
        assert len(os.listdir("/proc/self/task")) == before
    assert (tmp_path / "a").stat().st_size in (0, 256 * 40_000), "the first is complete or not started"


def scenario(
    path: Path, jobs: Callable[[DirectoryDisk], Awaitable[None]], *, has_writer: bool = True
) -> None:
    """Run `jobs` with a disk in the directory `path`."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        worker, own = WorkerThread("disk"), FileWriter("test", loop)
        await jobs(DirectoryDisk(path, loop, worker, writer=own if has_writer else None))
        worker.close()
        own.close()

    asyncio.run(run())


def submitted(disk: DirectoryDisk, *steps: DiskStep) -> "asyncio.Future[OSError | None]":
    end: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
    done: OnDone = end.set_result
    disk.submit(list(steps), done)
    return end


def test_a_disk_uses_its_writer_and_names_the_file_that_failed(tmp_path: Path) -> None:
    async def jobs(disk: DirectoryDisk) -> None:
        assert await submitted(disk, CreateFile("a", 4), WriteFile("a", 0, [b"1"]), SyncFile("a")) is None
        assert await submitted(disk, WriteFile("a", 1, [b"2", b"3"]), SyncFile("a")) is None
        assert (tmp_path / "a").read_bytes() == b"123\0"
        error = await submitted(disk, WriteFile("a", -5, [b"x"]), SyncFile("a"))
        assert error is not None
        assert (error.errno, error.filename) == (errno.EINVAL, "a")
        await disk.close_after_jobs()

    scenario(tmp_path, jobs)


@pytest.mark.parametrize("has_writer", [True, False], ids=["writer", "worker"])
def test_steps_with_several_files_are_performed_in_order_by_either_thread(
    tmp_path: Path, has_writer: bool
) -> None:
    """A segment is sealed, a spare file becomes the next, a third is kept for reuse, a fourth removed."""
    for name in ("1", "2", "3", "spare"):
        (tmp_path / name).write_bytes(bytes(3))
    steps: list[DiskStep] = [
        WriteFile("1", 0, [b"1"]), SyncFile("1"), RenameFile("spare", "4"), SyncDirectory(),
        WriteFile("4", 0, [b"4"]), SyncFile("4"), WriteFile("2", 0, [b"2"]), RenameFile("2", "spare"),
        DeleteFile("3"), SyncDirectory(),
    ]  # fmt: skip

    async def jobs(disk: DirectoryDisk) -> None:
        expected = {"1": b"1\0\0", "4": b"4\0\0", "spare": b"2\0\0"}
        before = len(os.listdir("/proc/self/fd"))
        assert await submitted(disk, *steps) is None
        assert len(os.listdir("/proc/self/fd")) == before + 2, "1 and 4 stay open, 2 has another name"
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected
        # The descriptors are those of the files that have the names now.
        assert disk.read("4", 0, 1) == b"4"
        writes = [WriteFile(name, 1, [b"x"]) for name in ("1", "4", "spare")]
        assert await submitted(disk, *writes, RenameFile("4", "1"), WriteFile("1", 2, [b"y"])) is None
        assert (tmp_path / "1").read_bytes() == b"4xy"
        assert (tmp_path / "spare").read_bytes() == b"2x\0"
        await disk.close_after_jobs()

    before = len(os.listdir("/proc/self/fd"))
    scenario(tmp_path, jobs, has_writer=has_writer)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("has_writer", [True, False], ids=["writer", "worker"])
def test_a_job_that_failed_in_the_middle_can_be_repeated(tmp_path: Path, has_writer: bool) -> None:
    for name in ("1", "spare"):
        (tmp_path / name).write_bytes(bytes(3))
    failing: list[DiskStep] = [RenameFile("spare", "2"), WriteFile("2", 0, [b"2"]), WriteFile("3", 0, [b"3"])]

    async def jobs(disk: DirectoryDisk) -> None:
        error = await submitted(disk, *failing)
        assert error is not None
        assert (error.errno, error.filename) == (errno.ENOENT, "3")
        (tmp_path / "3").touch()
        assert await submitted(disk, *failing) is None
        await disk.close_after_jobs()

    before = len(os.listdir("/proc/self/fd"))
    scenario(tmp_path, jobs, has_writer=has_writer)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "1": bytes(3), "2": b"2\0\0", "3": b"3",
    }  # fmt: skip
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_a_free_descriptor_the_writer_leaves_its_job_to_the_other_thread(tmp_path: Path) -> None:
    """That thread closes files of this directory that nobody uses at the moment."""
    code = """
import asyncio, os, resource, sys
from pathlib import Path
from tests.unit.runtime.test_file_writer import scenario, submitted
from warren.store.disk import RenameFile, SyncFile, WriteFile

async def jobs(disk):
    for name in "abcde":
        disk.read(name, 0, 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), 64))
    print(await submitted(disk, RenameFile("a", "f"), WriteFile("f", 0, [b"x"]), SyncFile("f")))
    await disk.close_after_jobs()

scenario(Path(sys.argv[1]), jobs)
"""
    for name in "abcde":
        (tmp_path / name).touch()
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "None\n"
    assert (tmp_path / "f").read_bytes() == b"x"


def test_closing_a_disk_completes_the_jobs_of_its_writer(tmp_path: Path) -> None:
    async def jobs(disk: DirectoryDisk) -> None:
        await submitted(disk, CreateFile("a", 4), WriteFile("a", 0, [b"1"]), SyncFile("a"))
        end = submitted(disk, WriteFile("a", 1, [b"23"]), SyncFile("a"))
        await disk.close_after_jobs()
        assert end.result() is None

    before = len(os.listdir("/proc/self/fd"))
    scenario(tmp_path, jobs)
    assert (tmp_path / "a").read_bytes() == b"123\0"
    assert len(os.listdir("/proc/self/fd")) == before
