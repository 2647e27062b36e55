"""A whole broker in one thread: it starts, serves a client that speaks octets, and survives crashes."""

import random

import pytest

from warren.metadata.commands import PutVhost
from warren.simulation.client import SimulatedClient
from warren.simulation.disk import SimulatedDisk
from warren.simulation.history import History
from warren.simulation.machine import SimulatedMachine
from warren.simulation.network import SimulatedNetwork
from warren.simulation.ports import SimulatedStorePort
from warren.simulation.queue_history import QueueSpecification
from warren.simulation.simulated_clock import SimulatedClock
from warren.simulation.violation import Violation
from warren.store.disk import SyncFile
from warren.wire import methods
from warren.wire.properties import BasicProperties

PERSISTENT = BasicProperties(delivery_mode=2)


class Bench:
    """A broker with one client, whose octets and writes all pass."""

    def __init__(self) -> None:
        chance = random.Random(1)
        self.machine = SimulatedMachine(chance, SimulatedClock(1_700_000_000_000), [PutVhost(name="/")])
        self.machine.start()
        self.history = History([QueueSpecification(vhost="/", name="orders")])
        self.queue = self.history.queues[0]
        self.network = SimulatedNetwork(self.machine, chance)
        self.client = SimulatedClient("a", self.history, "/")
        self.arrived: list[bytes] = []
        self.client.on_arrival = lambda channel, tag, received: self.arrived.append(received.body[:2])

    def flow(self) -> None:
        """Pass and write everything."""
        while True:
            self.network.collect()
            if self.machine.running is not None:
                self.machine.node.run_turns()
                self.machine.node.write()
            if not self.network.pass_piece() and self.machine.node.is_idle and self.network.is_quiet:
                return
            self.machine.clock.now += 1
            self.machine.node.run_timers()

    def connect(self) -> None:
        self.network.connect(self.client)
        self.flow()
        assert self.client.is_open

    def declare(self) -> None:
        endings = self.queue.existence.creating()
        declare = methods.QueueDeclare(queue="orders", durable=True)
        created = self.queue.existence.created
        self.client.channel(1).call(declare, methods.QueueDeclareOk, then=lambda _: created(endings))

    def crash(self, way: str) -> None:
        """Crash, start again, and connect."""
        getattr(self.machine, way)()
        self.network.cut_all()
        self.history.crashed(is_power_lost=way == "cut_power")
        self.machine.start()
        self.connect()

    def publish(self, count: int) -> None:
        channel = self.client.channel(1)
        channel.is_confirming = True
        channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        for _ in range(count):
            channel.publish(("", "orders"), PERSISTENT, 20)


@pytest.mark.parametrize("way", ["kill", "cut_power", "stop"])
def test_what_was_confirmed_is_delivered_after_a_crash_and_a_start(way: str) -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.publish(3)
    bench.flow()
    assert bench.history.tally.confirmed == 3
    bench.crash(way)
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    assert bench.arrived == [b"1 ", b"2 ", b"3 "]
    assert bench.machine.past_reports + bench.machine.node.reports == []


@pytest.mark.parametrize("size", [8, 131_064, 131_065, 150_000, 400_000])
def test_a_message_of_any_size_is_published_and_confirmed(size: int) -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    channel = bench.client.channel(1)
    channel.is_confirming = True
    channel.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
    channel.publish(("", "orders"), PERSISTENT, size)
    bench.flow()
    assert (bench.history.tally.confirmed, bench.client.closed_by_broker) == (1, [])


def test_a_full_disk_holds_confirms_back_until_there_is_room() -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.flow()
    for disk in bench.machine.disks:
        disk.is_full = True
    bench.publish(3)
    for _ in range(1_000):
        bench.network.pass_piece()
        bench.machine.node.run_turns()
        bench.machine.node.write()
    confirmed_before = bench.history.tally.confirmed
    for disk in bench.machine.disks:
        disk.is_full = False
    bench.flow()
    assert bench.history.tally.confirmed == 3
    assert confirmed_before in (0, 3)


def test_a_failed_sync_restarts_the_virtual_host_and_loses_nothing_confirmed() -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.publish(3)
    bench.flow()
    bench.machine.disk("/").fault = (SyncFile, 5)
    bench.publish(3)
    while bench.machine.node.vhosts["/"].restart_count == 0:
        bench.flow()
        bench.machine.clock.now += 100
        bench.machine.node.run_timers()
    bench.flow()
    assert bench.history.tally.confirmed == 3
    bench.connect()
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    assert bench.arrived[:3] == [b"1 ", b"2 ", b"3 "]
    assert bench.machine.node.reports == []


@pytest.mark.parametrize("way", ["kill", "cut_power"])
def test_a_queue_declared_after_its_failed_deletion_survives_a_crash(way: str) -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.flow()
    bench.machine.disk("metadata").fault = (SyncFile, 5)
    bench.client.channel(1).call(methods.QueueDelete(queue="orders"), methods.QueueDeleteOk)
    bench.flow()
    assert not bench.client.is_open
    assert bench.machine.node.journal.is_in_doubt
    answers: list[object] = []
    while not answers:
        # It is refused until the metadata were written anew, and then answered.
        if not bench.client.is_connected:
            bench.connect()
        declare = methods.QueueDeclare(queue="orders", durable=True)
        bench.client.channel(1).call(declare, methods.QueueDeclareOk, then=answers.append)
        bench.flow()
        bench.machine.clock.now += 300
        bench.machine.node.run_timers()
    bench.queue.defined()
    bench.publish(3)
    bench.flow()
    assert bench.history.tally.confirmed == 3
    bench.crash(way)
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    assert bench.arrived == [b"1 ", b"2 ", b"3 "]


def test_acknowledgements_that_are_never_written_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStorePort, "commit_due_later", lambda self: None)
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.publish(3)
    bench.flow()
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    bench.client.channel(1).acknowledge(3, is_multiple=True)
    bench.flow()
    bench.history.synced()
    bench.crash("kill")
    bench.client.channel(1).consume(bench.queue, "d")
    with pytest.raises(Violation, match="came back after it was acknowledged"):
        bench.flow()


def test_a_disk_that_says_done_before_it_is_loses_confirmed_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.flow()
    monkeypatch.setattr(bench.machine.disk("/"), "submit", lambda steps, done: done(None))
    bench.publish(3)
    bench.flow()
    monkeypatch.undo()
    bench.crash("cut_power")
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    with pytest.raises(Violation, match="message 1 of queue 'orders' was confirmed and is lost"):
        bench.history.inspected(bench.queue, [int(body) for body in bench.arrived])


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_delivery_that_was_not_noted_comes_again_without_the_flag(
    monkeypatch: pytest.MonkeyPatch, is_noted: bool
) -> None:
    bench = Bench()
    bench.connect()
    bench.declare()
    bench.publish(3)
    bench.flow()
    if not is_noted:
        monkeypatch.setattr(SimulatedDisk, "note", lambda self, name, at, data: None)
        monkeypatch.setattr(SimulatedStorePort, "commit_due_later", lambda self: None)
    bench.client.channel(1).consume(bench.queue, "c")
    bench.flow()
    bench.crash("kill")
    bench.client.channel(1).consume(bench.queue, "d")
    if is_noted:
        bench.flow()
        assert bench.history.tally.redelivered == 3
    else:
        with pytest.raises(Violation, match="is delivered again without the flag"):
            bench.flow()
