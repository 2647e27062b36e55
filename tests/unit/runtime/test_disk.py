"""Disk operations that a thread performs."""

import asyncio
import errno
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from warren.runtime import file_writer
from warren.runtime.disk import IS_MAPPING_AVAILABLE, DirectoryDisk
from warren.runtime.worker_thread import WorkerThread
from warren.store.disk import CreateFile, DeleteFile, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile


def after(path: Path, *jobs: list[DiskStep]) -> list[OSError | None]:
    """Submit `jobs` one after the other; returns the result of each."""

    async def scenario() -> list[OSError | None]:
        with closing(WorkerThread("disk")) as worker:
            disk = DirectoryDisk(path, asyncio.get_running_loop(), worker)
            ends = []
            for job in jobs:
                end: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
                disk.submit(job, end.set_result)
                ends.append(await end)
            disk.close()
            return ends

    return asyncio.run(scenario())


def test_steps_are_performed_in_order_and_reported(tmp_path: Path) -> None:
    job: list[DiskStep] = [
        CreateFile("a", 10), WriteFile("a", 2, [b"xy", b"z"]), SyncFile("a"),
        RenameFile("a", "b"), SyncDirectory(),
    ]  # fmt: skip
    assert after(tmp_path, job) == [None]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"b": b"\0\0xyz\0\0\0\0\0"}


def test_a_failed_step_ends_its_job_and_not_the_disk(tmp_path: Path) -> None:
    job: list[DiskStep] = [WriteFile("missing", 0, [b"x"]), CreateFile("a", 1)]
    [error, after_it] = after(tmp_path, job, [CreateFile("b", 1)])
    assert error is not None
    assert error.errno == errno.ENOENT
    assert after_it is None
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_renaming_or_deleting_a_missing_file_again_is_allowed(tmp_path: Path) -> None:
    job: list[DiskStep] = [CreateFile("a", 1), RenameFile("a", "b"), DeleteFile("c")]
    retried: list[DiskStep] = [RenameFile("a", "b"), DeleteFile("b"), DeleteFile("b")]
    assert after(tmp_path, job, retried) == [None, None]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("at", "size", "expected"), [(0, 4, b"abcd"), (2, 100, b"cdef"), (9, 1, b"")])
def test_reading_stops_at_the_end_of_the_file(tmp_path: Path, at: int, size: int, expected: bytes) -> None:
    (tmp_path / "a").write_bytes(b"abcdef")
    loop = asyncio.new_event_loop()
    with closing(WorkerThread("disk")) as worker:
        disk = DirectoryDisk(tmp_path, loop, worker)
        assert disk.read("a", at, size) == expected
        assert disk.names() == {"a": 6}
        disk.close()
    loop.close()


def reading(path: Path, steps: list[DiskStep], *names: str) -> list[bytes]:
    """The contents of `names` after `steps`; the files were read before as well."""
    loop = asyncio.new_event_loop()
    with closing(WorkerThread("disk")) as worker:
        disk = DirectoryDisk(path, loop, worker)
        for name in names:
            disk.read(name, 0, 1)
        disk.perform(steps)
        found = [disk.read(name, 0, 10) for name in names]
        # Deleted files are closed, as they would take space on the disk otherwise.
        opened = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        assert not [name for name in opened if "(deleted)" in name and str(path) in name]
        disk.close()
    loop.close()
    return found


@pytest.mark.parametrize("count", [1, 8, 30])
def test_any_number_of_files_can_be_read_in_turn(tmp_path: Path, count: int) -> None:
    names = [str(number) for number in range(count)]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    before = len(os.listdir("/proc/self/fd"))
    assert reading(tmp_path, [], *names) == [name.encode() for name in names]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_replaced_another_is_read(tmp_path: Path) -> None:
    for name in ("a", "b", "spare"):
        (tmp_path / name).write_bytes(name.encode())
    steps: list[DiskStep] = [RenameFile("spare", "a"), DeleteFile("b"), CreateFile("b", 2)]
    assert reading(tmp_path, steps, "a", "b") == [b"spare", b"\0\0"]


def test_syncing_a_new_file_syncs_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def note(file: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)

    monkeypatch.setattr("warren.runtime.disk.os.fdatasync", note)
    monkeypatch.setattr("warren.runtime.disk.os.fsync", note)
    job: list[DiskStep] = [
        CreateFile("a", 1),
        SyncFile("a"),
        RenameFile("a", "b"),
        SyncDirectory(),
        WriteFile("b", 0, [b"x"]),
        SyncFile("b"),
    ]
    assert after(tmp_path, job) == [None]
    assert synced == ["a", tmp_path.name, "b"]


def test_a_partial_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr("warren.runtime.disk.os.pwrite", lambda file, data, at: whole(file, data[:3], at))
    assert after(tmp_path, [CreateFile("a", 4), WriteFile("a", 1, [b"abcd", b"efgh"])]) == [None]
    assert (tmp_path / "a").read_bytes() == b"\0abcdefgh"


def test_the_compiled_build_has_a_writer_thread_without_the_interpreter_lock() -> None:
    assert (os.environ.get("WARREN_COMPILED") == "1") == file_writer.IS_AVAILABLE


# More than is written at once, and more than is synced at once.
@pytest.mark.parametrize("size", [5, (1 << 18) + 5, (1 << 20) + 5])
def test_a_file_is_created_whole_by_a_job(tmp_path: Path, size: int) -> None:
    assert after(tmp_path, [CreateFile("a", size)]) == [None]
    assert (tmp_path / "a").read_bytes() == bytes(size)


def test_a_file_is_created_whole_beside_the_jobs(tmp_path: Path) -> None:
    size = (1 << 20) + (1 << 18) + 5

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with closing(WorkerThread("disk")) as worker:
            disk = DirectoryDisk(tmp_path, loop, worker)
            created: asyncio.Future[OSError | None] = loop.create_future()
            disk.create_beside("a", size, created.set_result)
            assert await created is None
            assert (tmp_path / "a").read_bytes() == bytes(size)
            disk.close()

    asyncio.run(scenario())


def test_a_file_that_could_not_be_created_beside_the_jobs_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with closing(WorkerThread("disk")) as worker:
            disk = DirectoryDisk(tmp_path, loop, worker)
            created: asyncio.Future[OSError | None] = loop.create_future()
            monkeypatch.setattr("warren.runtime.disk.os.pwrite", full)
            disk.create_beside("a", 5, created.set_result)
            error = await created
            assert error is not None
            assert error.errno == errno.ENOSPC
            assert not list(tmp_path.iterdir())
            disk.close()

    asyncio.run(scenario())


def test_notes_of_a_growing_file_are_all_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    whole = os.pwrite

    def counted(file: int, data: bytes, at: int) -> int:
        calls.append(at)
        return whole(file, data, at)

    monkeypatch.setattr("warren.runtime.disk.os.pwrite", counted)
    entries = [f"entry {number:10}".encode() for number in range(64)]
    size = len(entries[0])
    # Another file is there before: it is mapped with the first note.
    (tmp_path / "b").write_bytes(bytes(size))

    async def scenario() -> None:
        with closing(WorkerThread("disk")) as worker:
            disk = DirectoryDisk(tmp_path, asyncio.get_running_loop(), worker)
            disk.perform([CreateFile("a", 0)])
            for _ in range(2):
                for number, entry in enumerate(entries):
                    disk.note("a", number * size, entry)
                    disk.note("b", 0, entry)
            disk.perform([DeleteFile("b"), CreateFile("b", size)])
            disk.note("b", 0, entries[0])
            disk.close()

    asyncio.run(scenario())
    assert (tmp_path / "a").read_bytes() == b"".join(entries)
    assert (tmp_path / "b").read_bytes() == entries[0]
    if IS_MAPPING_AVAILABLE:
        assert calls[:-1] == [number * size for number in range(len(entries))], "only what makes a file grow"
        assert calls[-1:] == [0], "and what fills a created file"


def test_a_note_is_written_during_a_job_and_not_after_closing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(4))

    async def scenario() -> None:
        with closing(WorkerThread("disk")) as worker:
            disk = DirectoryDisk(tmp_path, asyncio.get_running_loop(), worker)
            goes_on = threading.Event()
            worker.do(goes_on.wait)
            disk.submit([CreateFile("b", 1)], lambda _: None)
            disk.note("a", 1, b"x")
            assert (tmp_path / "a").read_bytes() == b"\0x\0\0"
            assert not (tmp_path / "b").exists()
            goes_on.set()
            closed = asyncio.ensure_future(disk.close_after_jobs())
            await asyncio.sleep(0)
            with pytest.raises(OSError, match="Bad file descriptor"):
                disk.note("a", 2, b"y")
            await closed
        assert (tmp_path / "a").read_bytes() == b"\0x\0\0"

    asyncio.run(scenario())
