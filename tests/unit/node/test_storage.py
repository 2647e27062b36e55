"""The directories of virtual hosts: which are theirs, and what becomes of others."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from warren.metadata.commands import PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.node.storage import Storage


def within(path: Path, action: Callable[[Storage], None]) -> None:
    """Do `action` with a storage in `path`, in a loop."""

    async def work() -> None:
        metadata = Metadata()
        LocalProposals(metadata, lambda: 0).apply(PutVhost(name="v"))
        storage = Storage(path, metadata)
        action(storage)
        await storage.close()

    asyncio.run(work())


def left_behind(storage: Storage, name: str) -> Path:
    path = storage.path_of(name)
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "00000001.segment").write_bytes(b"x")
    return path


def test_what_nobody_owns_is_removed_and_what_somebody_owns_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def action(storage: Storage) -> None:
        mine, gone = left_behind(storage, "v"), left_behind(storage, "gone")
        storage.sweep(["v"], is_trusted=True)
        assert mine.exists()
        assert not gone.exists()

    within(tmp_path, action)
    assert "vhost 'gone' is deleted" in caplog.text


def test_what_damaged_metadata_do_not_know_is_kept_for_good_and_not_taken_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def action(storage: Storage) -> None:
        gone = left_behind(storage, "gone")
        storage.sweep(["v"], is_trusted=False)
        assert not gone.exists()
        storage.sweep(["v"], is_trusted=True)
        assert [path.name for path in storage.path.iterdir()] == [f"{gone.name}.lost"]

    within(tmp_path, action)
    assert "vhost 'gone' is not in the metadata" in caplog.text


def test_a_removal_that_was_broken_off_is_completed_even_in_doubt(tmp_path: Path) -> None:
    def action(storage: Storage) -> None:
        path = left_behind(storage, "v")
        # Begun, and never awaited: the node was killed.
        storage.remove("v").close()
        assert not path.exists()
        assert storage.has_any()
        storage.sweep(["v"], is_trusted=False)
        assert not storage.has_any()

    within(tmp_path, action)


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    def action(storage: Storage) -> None:
        assert not storage.has_any()
        storage.sweep(["v"], is_trusted=True)

    within(tmp_path, action)
