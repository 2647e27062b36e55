"""When a store commits, in an event loop whose time passes at once."""

import asyncio
from typing import cast

from tests.virtual_loop import run

from warren.node.loop_store_port import LoopStorePort
from warren.store.message_store import MessageStore


class Store:
    """Notes the time (ms) of each commit, and may fail."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self.is_broken = False

    def commit(self) -> None:
        self.commits.append(round(asyncio.get_running_loop().time() * 1000))
        if self.is_broken:
            raise ZeroDivisionError


def connected(failed: list[Exception]) -> tuple[LoopStorePort, Store]:
    port = LoopStorePort(asyncio.get_running_loop(), "v", failed.append, "nothing is written")
    store = Store()
    port.store = cast(MessageStore, store)
    return port, store


def test_settled_messages_are_written_after_a_delay() -> None:
    async def scenario() -> None:
        port, store = connected([])
        port.commit_due_later()
        await asyncio.sleep(1)
        assert store.commits == [20]

    run(scenario())


def test_settled_messages_cause_no_batch_while_others_are_written() -> None:
    async def scenario() -> None:
        port, store = connected([])
        for _ in range(10):
            # Messages are settled, and the next batch has that as well.
            port.commit_due_later()
            await asyncio.sleep(0.015)
            port.commit_due()
            await asyncio.sleep(0)
        port.commit_due_later()
        await asyncio.sleep(1)
        assert store.commits == [*range(15, 151, 15), 170]

    run(scenario())


def test_an_error_of_a_commit_ends_the_store_once() -> None:
    async def scenario() -> None:
        failed: list[Exception] = []
        port, store = connected(failed)
        store.is_broken = True
        port.commit_due()
        port.commit_due()
        await asyncio.sleep(1)
        assert [type(error) for error in failed] == [ZeroDivisionError]
        assert store.commits == [0]
        assert port.is_over

    run(scenario())
