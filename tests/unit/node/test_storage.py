"""The directories of virtual hosts, and the removal of one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from warren.metadata.commands import PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.node.quarantine import Quarantine
from warren.node.storage import Storage


def within(path: Path, action: Callable[[Storage, Quarantine], None]) -> None:
    """Run `action` with a storage in `path`, in an event loop."""

    async def work() -> None:
        metadata = Metadata()
        LocalProposals(metadata, lambda: 0).apply(PutVhost(name="v"))
        quarantine = Quarantine(path, metadata)
        storage = Storage(path, metadata, quarantine, lambda: None)
        action(storage, quarantine)
        await storage.close()

    asyncio.run(work())


def test_an_interrupted_removal_is_completed(tmp_path: Path) -> None:
    def action(storage: Storage, quarantine: Quarantine) -> None:
        path = storage.path_of("v")
        path.mkdir(parents=True)
        (path / "00000001.segment").write_bytes(b"x")
        # Started and never awaited, as if the node was killed.
        storage.remove("v").close()
        assert not path.exists()
        assert any(storage.path.iterdir())
        quarantine.reconcile_vhosts(["v"])
        assert not any(storage.path.iterdir())
        assert quarantine.items() == []

    within(tmp_path, action)
