"""Deletion of unused queues: retried if the disk fails, and abandoned if the store has failed."""

import random

import pytest
from tests.clock import ManualClock
from tests.sim.disk import SimulatedDisk
from tests.unit.session.client import Broker, Client

from warren.limits import REMOVAL_RETRY_MS
from warren.metadata.commands import DeclareQueue, PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.store.message_store import MessageStore
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire import methods
from warren.wire.properties import BasicProperties

DECLARED = {
    "auto-delete": methods.QueueDeclare(queue="q", durable=True, auto_delete=True),
    "x-expires": methods.QueueDeclare(queue="q", durable=True, arguments={"x-expires": 1}),
}


def failing(kind: str) -> tuple[Broker, Client]:
    """A broker that cannot write the deletion of an unused queue, and its client."""
    broker = Broker()
    client = broker.client()
    client.ask(DECLARED[kind])
    broker.proposals.is_failing = True
    client.ask(
        methods.BasicConsume(queue="q", consumer_tag="c"),
        methods.BasicCancel(consumer_tag="c"),
    )
    broker.clock.now = 1
    broker.services.vhost.expire()
    return broker, client


@pytest.mark.parametrize("kind", DECLARED)
def test_a_deletion_that_cannot_be_written_is_retried(kind: str) -> None:
    broker, _ = failing(kind)
    queues = broker.services.vhost.queues
    for _ in range(2):
        [(pause_ms, again)] = broker.later
        assert pause_ms == REMOVAL_RETRY_MS
        broker.later.clear()
        again()
        assert "q" in queues
    broker.proposals.is_failing = False
    [(_, again)] = broker.later
    broker.later.clear()
    again()
    assert "q" not in queues
    assert not broker.later


@pytest.mark.parametrize("kind", DECLARED)
def test_a_queue_that_is_used_again_is_not_deleted(kind: str) -> None:
    broker, client = failing(kind)
    broker.proposals.is_failing = False
    client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    [(_, again)] = broker.later
    again()
    assert "q" in broker.services.vhost.queues


@pytest.mark.parametrize(("is_durable", "is_left"), [(True, True), (False, False)])
def test_after_a_store_failure_only_transient_queues_are_deleted_with_their_consumers(
    is_durable: bool, is_left: bool
) -> None:
    broker = Broker()
    client = broker.client()
    client.ask(
        methods.QueueDeclare(queue="q", durable=is_durable, auto_delete=True),
        methods.BasicConsume(queue="q", consumer_tag="c"),
    )
    broker.services.keep_durable_queues()
    client.ask(methods.BasicCancel(consumer_tag="c"))
    assert ("q" in broker.services.vhost.queues) is is_left


class Quiet(StorePort):
    """Nothing to do: the tests commit the store."""

    def commit_due(self) -> None:
        pass


def opened(disk: SimulatedDisk) -> RecoveredStore:
    dependencies = RecoveryDependencies(
        random_bytes=bytes, has_queue=lambda _: True, progress=lambda *_: None
    )
    return open_store(disk, Quiet(), dependencies)


def settle(store: MessageStore, disk: SimulatedDisk) -> None:
    store.commit()
    while disk.is_busy:
        disk.advance(None)


def test_recovered_messages_of_a_deleted_queue_are_released() -> None:
    chance = random.Random(0)
    disk = SimulatedDisk(chance)
    store = opened(disk).store
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="/"))
    local.apply(DeclareQueue(vhost="/", name="there", durable=True))
    there = metadata.vhosts.by_name["/"].topology.queues["there"].number
    gone = there + 1
    for queue, level in ((there, 0), (gone, 0), (gone, 3)):
        message = StoredMessage(
            encode_address("", "q"), BasicProperties(delivery_mode=2).encode_list(), b"body" + BODY_END, 0
        )
        message.flags = PERSISTENT
        store.append(message, store.cursor(queue, level), 0)
    settle(store, disk)
    recovered = opened(disk)
    store = recovered.store
    dependencies = VhostDependencies(
        random_bytes=bytes,
        later=lambda _: None,
        after=lambda *_: None,
        turn=ManualClock().turn,
        node_name="n",
    )
    services = VhostServices.open("/", metadata, local, dependencies)
    services.vhost.attach_store(Stores(store, open_erased(SimulatedDisk(chance), Quiet(), bytes)))
    for _ in services.recover(recovered.queues):
        pass
    assert recovered.queues == {}
    assert list(services.vhost.queues) == ["there"]
    assert services.vhost.queues["there"].message_count == 1
    assert list(store.cursors) == [(there, 0)]
    services.vhost.queues["there"].clear()
    settle(store, disk)
    assert opened(disk).queues[there][0].count == 0
