"""A failing virtual host is stopped and restarted as a whole; other virtual hosts are unaffected."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.node.test_broker import QUICK, connect, frame, say

import warren.node.storage as storage_module
from warren.limits import QUEUE_MEMORY_MAX, QUEUES_SHRUNK_PER_TURN, RECOVERED_PER_TURN
from warren.metadata.commands import PutVhost, RemoveVhost, SetPermissions
from warren.metadata.incarnation import FIRST_INCARNATION
from warren.metadata.records import QueueRecord
from warren.model.coroutine_driver import drive
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.node.broker import Broker
from warren.node.config import Config
from warren.node.errors import BootRefused
from warren.node.metadata_journal import MetadataJournal
from warren.node.node_identity import NodeIdentity
from warren.runtime.clock import Clock
from warren.store.disk import Disk
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_store
from warren.store.store_port import StorePort
from warren.wire.methods import ChannelOpen, QueueDeclare

ERROR = OSError(5, "Input/output error")
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


def within(path: Path, work: Callable[[Broker], Awaitable[None]]) -> None:
    """Run `work` with a broker that stores its data in `path` and has the virtual hosts / and v."""

    async def run() -> None:
        clock = Clock()
        metadata_journal = MetadataJournal(path, clock, is_damage_skipped=False)
        broker = Broker(
            Config([QUICK]),
            clock,
            NodeIdentity("warren@test", FIRST_INCARNATION),
            metadata_journal=metadata_journal,
        )
        drive(broker.populate())
        try:
            await broker.open_storage(path)
            await broker.proposals.propose(PutVhost(name="v"))
            await broker.proposals.propose(SetPermissions(user="guest", vhost="v", **EVERYTHING))
            await asyncio.wait_for(work(broker), 20)
        finally:
            await broker.close()
            await metadata_journal.close()

    asyncio.run(run())


def fail(broker: Broker, vhost: str) -> None:
    """Make the store of `vhost` fail as after a disk error."""
    assert broker.tree.storage is not None
    broker.tree.storage._open[vhost].persistent.port.failed(ERROR, is_full=False)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def records(broker: Broker, vhost: str) -> dict[str, QueueRecord]:
    found = broker.metadata.vhost(vhost)
    assert found is not None
    return dict(found.topology.queues)


def test_a_failed_vhost_closes_its_connections_loses_exclusive_queues_and_recovers_the_others(
    tmp_path: Path,
) -> None:
    async def work(broker: Broker) -> None:
        gone, stays = connect(broker, "v"), connect(broker)
        declared = QueueDeclare(0, "mine", exclusive=True), QueueDeclare(0, "kept", durable=True)
        say(gone, frame(ChannelOpen(), 1) + b"".join(frame(method, 1) for method in declared))
        await until(lambda: "kept" in records(broker, "v"))
        first = broker.server.vhost_services["v"]
        fail(broker, "v")
        await asyncio.sleep(0)
        assert "v" not in broker.server.vhost_services
        await until(lambda: "v" in broker.server.vhost_services)
        assert b"CONNECTION_FORCED - vhost 'v' is down" in b"".join(gone.take_output())
        assert stays.is_open
        second = broker.server.vhost_services["v"]
        assert second is not first
        assert not first.vhost.queues
        assert list(second.vhost.queues) == list(records(broker, "v")) == ["kept"]
        assert connect(broker, "v").is_open

    within(tmp_path, work)


def test_queues_drop_bodies_when_memory_is_low_and_read_them_again(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        names = [f"q{number}" for number in range(2 * QUEUES_SHRUNK_PER_TURN)]
        client = connect(broker)
        declared = b"".join(frame(QueueDeclare(0, name), 1) for name in names)
        say(client, frame(ChannelOpen(), 1) + declared)
        await until(lambda: names[-1] in broker.server.vhost_services["/"].vhost.queues)
        queues = [broker.server.vhost_services["/"].vhost.queues[name] for name in names]
        bodies = [b"%d" % number * 1_000 for number in range(10)]
        for queue in queues:
            for body in bodies:
                queue.publish(
                    Message(encode_address("", queue.name), NO_PROPERTIES, body + BODY_END, 0), None, 0
                )
        assert not any(queue.paged_count for queue in queues)
        broker.tree.limit_queue_memory(4_096)
        # Transient messages are written before their bodies are dropped.
        await until(lambda: all(queue.paged_count for queue in queues))
        broker.tree.limit_queue_memory(QUEUE_MEMORY_MAX)
        for queue in queues:
            assert [queue.get().message.body for _ in bodies] == bodies  # type: ignore[union-attr]
            assert not queue.paged_count

    within(tmp_path, work)


@pytest.mark.slow
def test_after_the_fourth_failure_a_vhost_stays_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(broker: Broker) -> None:
        for _ in range(3):
            fail(broker, "v")
            await asyncio.sleep(0)
            await until(lambda: "v" in broker.server.vhost_services)
        fail(broker, "v")
        await until(lambda: "is down, the other vhosts are running" in caplog.text)
        assert list(broker.server.vhost_services) == ["/"]
        assert [view.is_running for view in broker.tree.views()] == [True, False]
        # Deleting and creating it starts it again.
        await broker.proposals.propose(RemoveVhost(name="v"))
        await broker.proposals.propose(PutVhost(name="v"))
        assert "v" in broker.server.vhost_services

    within(tmp_path, work)


def test_a_vhost_deleted_during_its_restart_stays_deleted(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        storage = broker.tree.storage
        assert storage is not None
        first = broker.server.vhost_services["v"]
        fail(broker, "v")
        await asyncio.sleep(0)
        await broker.proposals.propose(RemoveVhost(name="v"))
        await broker.proposals.propose(PutVhost(name="v"))
        second = broker.server.vhost_services["v"]
        assert second is not first
        await until(lambda: not broker.tree._tasks)
        assert broker.server.vhost_services["v"] is second
        assert storage.path_of("v").exists()
        assert len(list(storage.path.iterdir())) == 2

    within(tmp_path, work)


def test_an_exception_in_the_store_stops_the_vhost_and_not_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(broker: Broker) -> None:
        storage = broker.tree.storage
        assert storage is not None

        def surprise(_: OSError | None) -> None:
            raise ZeroDivisionError

        storage._open["v"].persistent.port.job_ended(surprise, None)
        await asyncio.sleep(0)
        await until(lambda: "v" in broker.server.vhost_services)

    within(tmp_path, work)
    assert "vhost 'v' failed: ZeroDivisionError" in caplog.text
    assert "Traceback" in caplog.text


def test_stored_messages_without_metadata_prevent_the_start(tmp_path: Path) -> None:
    async def nothing(broker: Broker) -> None:
        pass

    within(tmp_path, nothing)
    shutil.rmtree(tmp_path / "metadata")
    with pytest.raises(BootRefused, match="contains messages, but there are no metadata"):
        within(tmp_path, nothing)


def test_the_store_of_a_new_vhost_is_opened_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noted(disk: Disk, port: StorePort, dependencies: RecoveryDependencies) -> RecoveredStore:
        threads.add(threading.get_ident())
        return open_store(disk, port, dependencies)

    async def work(broker: Broker) -> None:
        monkeypatch.setattr(storage_module, "open_store", noted)
        await broker.proposals.propose(PutVhost(name="new"))
        assert "new" in broker.server.vhost_services, "it is usable at once"
        assert threads
        assert threading.get_ident() not in threads

    within(tmp_path, work)


def test_a_vhost_recreated_while_it_is_being_created_works(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        storage = broker.tree.storage
        assert storage is not None
        first = asyncio.ensure_future(broker.proposals.propose(PutVhost(name="new")))
        await until(lambda: "new" in broker.metadata.vhosts.by_name)
        await broker.proposals.propose(RemoveVhost(name="new"))
        await broker.proposals.propose(PutVhost(name="new"))
        await first
        assert "new" in broker.server.vhost_services
        await until(lambda: not broker.tree._tasks)
        assert (storage.path_of("new") / "transient").exists()
        assert len(list(storage.path.iterdir())) == 3
        await broker.proposals.propose(RemoveVhost(name="new"))
        await until(lambda: not broker.tree._tasks)
        assert len(list(storage.path.iterdir())) == 2

    within(tmp_path, work)


def declare(broker: Broker, count: int) -> None:
    """Declare `count` durable queues in the virtual host v."""
    client = connect(broker, "v")
    names = (frame(QueueDeclare(0, f"q{number}", durable=True), 1) for number in range(count))
    say(client, frame(ChannelOpen(), 1) + b"".join(names))


def test_queues_are_recovered_in_several_turns(tmp_path: Path) -> None:
    count = 3 * RECOVERED_PER_TURN

    async def work(broker: Broker) -> None:
        declare(broker, count)
        await until(lambda: len(records(broker, "v")) == count)
        fail(broker, "v")
        vhost = broker.tree._vhosts["v"]
        seen = set()
        await until(lambda: vhost._services is None)
        while "v" not in broker.server.vhost_services:
            await asyncio.sleep(0)
            seen.add(0 if vhost._services is None else len(vhost._services.vhost.queues))
        assert seen == {0, RECOVERED_PER_TURN, 2 * RECOVERED_PER_TURN, count}

    within(tmp_path, work)


def test_a_store_failure_during_recovery_restarts_the_vhost(tmp_path: Path) -> None:
    count = 3 * RECOVERED_PER_TURN

    async def work(broker: Broker) -> None:
        declare(broker, count)
        await until(lambda: len(records(broker, "v")) == count)
        fail(broker, "v")
        vhost = broker.tree._vhosts["v"]
        await until(lambda: vhost._services is None)
        while vhost._services is None or not vhost._services.vhost.queues:
            await asyncio.sleep(0)
        assert "v" not in broker.server.vhost_services
        failed = vhost._services
        fail(broker, "v")
        await until(lambda: "v" in broker.server.vhost_services)
        assert broker.server.vhost_services["v"] is not failed
        assert not failed.vhost.queues
        assert len(broker.server.vhost_services["v"].vhost.queues) == count

    within(tmp_path, work)


def test_a_vhost_deleted_during_recovery_is_gone(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        storage = broker.tree.storage
        assert storage is not None
        declare(broker, 3 * RECOVERED_PER_TURN)
        await until(lambda: len(records(broker, "v")) == 3 * RECOVERED_PER_TURN)
        fail(broker, "v")
        vhost = broker.tree._vhosts["v"]
        await until(lambda: vhost._services is None)
        while vhost._services is None or not vhost._services.vhost.queues:
            await asyncio.sleep(0)
        half = vhost._services
        await broker.proposals.propose(RemoveVhost(name="v"))
        await until(lambda: not broker.tree._tasks)
        assert not half.vhost.queues
        assert list(broker.server.vhost_services) == ["/"]
        assert len(list(storage.path.iterdir())) == 1

    within(tmp_path, work)
