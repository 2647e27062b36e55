"""Mistakes of exchanges, exclusive queues, streams, dead-letter chains, metadata and turns are found."""

from collections.abc import Sequence

import pytest

from warren.metadata.commands import Bind
from warren.simulation import client_actions
from warren.simulation.actions import Action, Kind
from warren.simulation.campaign import repeat
from warren.simulation.client import SimulatedClient
from warren.simulation.dead_letter_chains import target_states
from warren.simulation.disk import SimulatedDisk
from warren.simulation.existence import Existence
from warren.simulation.history import History
from warren.simulation.message_copy import Copy, Publisher
from warren.simulation.method_reader import ReceivedMethod
from warren.simulation.network import SimulatedConnection
from warren.simulation.operator_actions import OperatorActions
from warren.simulation.queue_history import QueueHistory
from warren.simulation.simulation import TURN_WORK_MAX, Simulation
from warren.simulation.stream_history import StreamHistory
from warren.simulation.topology import Topology, standard_topology
from warren.simulation.violation import Violation
from warren.store.disk import DiskStep, SyncFile
from warren.vhost.queue_service import QueueService
from warren.vhost.requester import Owner
from warren.wire import methods


def actions(*kinds: Kind, queue: str = "", count: int = 3) -> list[Action]:
    """Actions of one client, on the queue with that name."""
    names = [one.name for one in standard_topology().queues]
    number = names.index(queue) if queue else 0
    return [Action(kind, 0, number, count, seed) for seed, kind in enumerate(kinds)]


def without(command: type[object], source: str) -> Topology:
    """The standard topology for clients, and a broker whose definitions lack commands with that source."""
    whole = standard_topology()
    kept = [
        one
        for one in whole.definitions
        if not (isinstance(one, command) and one.source == source)  # type: ignore[attr-defined]
    ]
    return Topology(definitions=kept, queues=whole.queues, exchanges=whole.exchanges)


# --- exchanges and mandatory ----------------------------------------------------------------------------


def test_a_binding_between_exchanges_that_is_missing_is_found() -> None:
    declared = [one for name in ("routed", "filtered", "orders") for one in actions(Kind.DECLARE, queue=name)]
    routes = [Action(Kind.ROUTE, 1, 0, 3, seed) for seed in range(40)]
    settle = actions(Kind.SETTLE)
    found = repeat(without(Bind, "nested"), [*declared, *settle, *routes, *settle])
    assert "a queue should have got it" in found or "was confirmed and is lost" in found


def test_what_was_unbound_may_be_there_until_that_is_answered() -> None:
    binding, channel = Existence(), object()
    binding.created(binding.creating())
    assert binding.is_certain
    binding.ending(channel)
    assert (binding.is_certain, binding.is_possible) == (False, True)
    binding.ended(channel)
    assert not binding.is_possible


def test_what_may_have_been_created_behind_its_end_may_be_there() -> None:
    binding, channel = Existence(), object()
    first = binding.creating()
    binding.ending(channel)
    binding.ended(channel)
    assert binding.is_possible
    binding.created(first)
    assert not binding.is_certain


def test_what_was_created_before_its_end_is_not_there_although_it_is_answered_later() -> None:
    queue, channel = Existence(), object()
    queue.ending(channel)
    created = queue.creating()
    queue.ended(channel)
    queue.created(created)
    assert not queue.is_certain


@pytest.mark.parametrize("is_acknowledged_before", [True, False])
def test_an_acknowledgement_of_a_cancelled_consumer_settles_nothing(is_acknowledged_before: bool) -> None:
    history = History([one for one in standard_topology().queues if one.name == "orders"])
    queue = history.queues[0]
    queue.defined()
    copy = Copy(history.next_id(), Publisher("a"), persistent=True, priority=0)
    history.published(copy.id, history.route("/", "", "orders", {}), copy)
    channel = SimulatedClient("a", history, "/").channel(1)
    channel.consume(queue, "c")
    deliver = methods.BasicDeliver(consumer_tag="c", delivery_tag=1, redelivered=False)
    delivery = ReceivedMethod(1, deliver, body=b"%d " % copy.id)
    channel.written_by_broker(delivery)
    channel.receive(delivery)
    cancel = ReceivedMethod(1, methods.BasicCancel(consumer_tag="c"))
    if not is_acknowledged_before:
        channel.written_by_broker(cancel)
    channel.acknowledge(1, is_multiple=False)
    if is_acknowledged_before:
        channel.written_by_broker(cancel)
    history.synced()
    history.delivered(queue, copy.id, object(), "other", flag=True)


# --- exclusive queues -----------------------------------------------------------------------------------


def test_an_exclusive_queue_that_outlives_its_connection_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep(self: object, owner: Owner) -> None:
        """Remove nothing."""

    monkeypatch.setattr(QueueService, "remove_exclusive", keep)
    declare = actions(Kind.DECLARE, Kind.SETTLE, Kind.CUT, queue="private0")
    assert "exclusive queue 'private0' is there" in repeat(standard_topology(), declare)


def test_a_message_that_outlives_its_exclusive_queue_is_found() -> None:
    history = History([one for one in standard_topology().queues if one.name == "private0"])
    queue = history.queues[0]
    queue.defined()
    copy = Copy(history.next_id(), Publisher("a"), persistent=True, priority=0)
    history.confirmed(history.published(copy.id, history.route("/", "", "private0", {}), copy))
    history.ending("client0")
    with pytest.raises(Violation, match="came back"):
        history.delivered(queue, copy.id, object(), "consumer", flag=False)


# --- streams --------------------------------------------------------------------------------------------


def read_stream() -> StreamHistory:
    stream = StreamHistory("log", is_trimmed=False)
    stream.attached("first", 0)
    for offset, id in enumerate((5, 6, 7)):
        stream.delivered("first", offset, id)
    return stream


@pytest.mark.parametrize(
    ("offset", "id", "text"),
    [
        (0, 6, "offset 0 of stream 'log' has message 6; it had 5"),
        (1, 6, "delivers offset 1 instead of 0"),
        (0, 8, "offset 0 of stream 'log' has message 8"),
    ],
)
def test_a_stream_that_changes_or_has_a_gap_is_found(offset: int, id: int, text: str) -> None:
    stream = read_stream()
    stream.attached("second", 0)
    with pytest.raises(Violation, match=text):
        stream.delivered("second", offset, id)


def test_a_message_at_two_offsets_of_a_stream_is_found() -> None:
    with pytest.raises(Violation, match="message 5 of stream 'log' is at offsets 0 and 3"):
        read_stream().delivered("first", 3, 5)


def test_a_stream_that_is_shorter_than_it_was_is_found() -> None:
    with pytest.raises(Violation, match="ends at offset 2; message 7 was at 2"):
        read_stream().inspected(2)


def test_the_offsets_of_a_deleted_stream_are_those_of_the_next_one() -> None:
    stream = read_stream()
    stream.ending()
    stream.delivered("first", 3, 8)
    stream.delivered("second", 0, 9)
    stream.at_rest()
    stream.attached("third", 0)
    stream.delivered("third", 0, 9)
    stream.inspected(1)
    with pytest.raises(Violation, match="has message 10; it had 9"):
        stream.delivered("fourth", 0, 10)


@pytest.mark.parametrize("queue", ["log", "orders", "agreed"])
def test_a_deletion_that_keeps_the_messages_is_found(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (Kind.DECLARE, Kind.PUBLISH, Kind.SETTLE, Kind.DELETE, Kind.SETTLE, Kind.DECLARE, Kind.SETTLE)
    everything = actions(*kinds, queue=queue, count=8)
    assert repeat(standard_topology(), everything) == ""

    async def keep(self: object, requester: object, delete: methods.QueueDelete) -> int:
        """Delete nothing."""
        return 0

    monkeypatch.setattr(QueueService, "delete_queue", keep)
    found = repeat(standard_topology(), everything)
    assert "came back after" in found or "was deleted meanwhile" in found


def test_a_purge_of_an_operator_that_keeps_the_messages_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        OperatorActions, "perform", lambda self, queue: self._purge(self._machine.node, queue)
    )
    kinds = (Kind.DECLARE, Kind.PUBLISH, Kind.SETTLE, Kind.OPERATE, Kind.SETTLE)
    everything = actions(*kinds, queue="orders", count=8)
    assert repeat(standard_topology(), everything) == ""

    async def keep(self: object, requester: object, purge: methods.QueuePurge) -> int:
        """Purge nothing."""
        return 0

    monkeypatch.setattr(QueueService, "purge_queue", keep)
    assert "came back after" in repeat(standard_topology(), everything)


def test_a_stream_whose_files_are_not_synced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    do = SimulatedDisk._do
    publish = [Kind.PUBLISH, Kind.SETTLE, Kind.CONSUME, Kind.SETTLE, Kind.CUT_POWER]
    everything = actions(Kind.DECLARE, *publish * 4, queue="log", count=8)
    assert repeat(standard_topology(), everything) == ""

    def skip(self: SimulatedDisk, step: DiskStep) -> None:
        is_of_streams = isinstance(step, SyncFile) and not step.name.endswith((".segment", "metadata"))
        if not is_of_streams:
            do(self, step)

    monkeypatch.setattr(SimulatedDisk, "_do", skip)
    found = repeat(standard_topology(), everything)
    assert (
        "stream 'log'" in found or "of queue 'log' was confirmed and is lost" in found or "damaged" in found
    )


# --- dead letters ---------------------------------------------------------------------------------------


def chain() -> tuple[History, list[QueueHistory], Copy]:
    """A chain at rest with one confirmed message."""
    history = History([one for one in standard_topology().queues if one.chain])
    for queue in history.queues:
        queue.defined()
    copy = Copy(history.next_id(), Publisher("a"), persistent=True, priority=0)
    history.confirmed(history.published(copy.id, history.route("/", "", "first", {}), copy))
    history.synced()
    return history, history.queues, history.queues[0].copies[copy.id]


@pytest.mark.parametrize("way", ["nothing", "waited", "delivered"])
def test_a_message_of_a_chain_may_be_lost_only_while_it_may_be_moving(way: str) -> None:
    history, queues, copy = chain()
    if way == "delivered":
        history.delivered(queues[0], copy.id, object(), "consumer", flag=False)
    history.now += 3_000 if way == "waited" else 2_999
    history.crashed(is_power_lost=False)
    if way == "nothing":
        with pytest.raises(Violation, match="was confirmed and is lost"):
            history.chain_inspected(queues[0], [])
    else:
        history.chain_inspected(queues[0], [])


def test_a_message_of_a_chain_that_was_found_again_must_stay() -> None:
    history, queues, copy = chain()
    history.now += 3_000
    history.crashed(is_power_lost=True)
    history.chain_inspected(queues[0], [copy.id])
    history.synced()
    history.crashed(is_power_lost=True)
    with pytest.raises(Violation, match="was confirmed and is lost"):
        history.chain_inspected(queues[0], [])


def test_a_dead_letter_that_is_dropped_is_found() -> None:
    publish = actions(Kind.PUBLISH, Kind.SETTLE, Kind.TIME, Kind.SETTLE, queue="first", count=8)
    assert repeat(standard_topology(), publish) == ""
    found = repeat(without(Bind, "dead-letters"), publish)
    assert "of queue 'first' was confirmed and is lost" in found


def pair(name: str) -> tuple[History, list[QueueHistory], Copy]:
    """A pair of source and target at rest, with one confirmed message."""
    history = History([one for one in standard_topology().queues if one.chain == name])
    for queue in history.queues:
        queue.defined()
    copy = Copy(history.next_id(), Publisher("a"), persistent=True, priority=0)
    history.confirmed(history.published(copy.id, history.route("/", "", name, {}), copy))
    history.synced()
    return history, history.queues, history.queues[0].copies[copy.id]


@pytest.mark.parametrize("name", ["kept-ttl", "kept-in-stream"])
def test_a_kept_dead_letter_may_come_twice_and_may_not_be_lost(name: str) -> None:
    history, queues, copy = pair(name)
    assert queues[0].chain is not None
    queues[0].chain.broken()
    history.now += 10_000
    history.crashed(is_power_lost=True)
    history.inspected(queues[1], [copy.id, copy.id])
    with pytest.raises(Violation, match="was confirmed and is lost"):
        history.chain_inspected(queues[0], [])


@pytest.mark.parametrize("is_broken", [True, False])
def test_a_dead_letter_at_most_once_may_be_lost_only_if_its_target_refused_it(is_broken: bool) -> None:
    history, queues, _ = pair("quorum-once")
    if is_broken:
        assert queues[0].chain is not None
        queues[0].chain.broken()
    history.now += 10_000
    if is_broken:
        history.chain_inspected(queues[0], [])
    else:
        with pytest.raises(Violation, match="was confirmed and is lost"):
            history.chain_inspected(queues[0], [])


def test_a_message_that_has_expired_and_is_ready_is_found() -> None:
    history, queues, copy = pair("kept-ttl")
    history.now += 3_001
    with pytest.raises(Violation, match="is there 1 ms after it has expired"):
        history.inspected(queues[0], [copy.id])


@pytest.mark.parametrize(
    "name", ["kept-ttl", "kept-expiration", "kept-in-stream", "quorum-once", "classic-once"]
)
@pytest.mark.parametrize("is_full", [False, True])
def test_what_expires_while_its_target_takes_nothing_is_kept_at_least_once(
    name: str, is_full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_actions, "_EXPIRATIONS", ("300",))

    def refuse(self: OperatorActions, queues: Sequence[QueueHistory]) -> None:
        source, target = (one for one in queues if one.specification.chain == name)
        assert source.chain is not None
        source.chain.broken()
        no_route, *full = target_states(source.specification, target.specification)
        self._propose(full[0] if is_full and full else no_route)

    monkeypatch.setattr(OperatorActions, "change_target", refuse)
    kinds = (Kind.PUBLISH, Kind.SETTLE, Kind.TARGET, Kind.SETTLE, Kind.TIME, Kind.SETTLE, Kind.KILL)
    outcome = Simulation(standard_topology()).run(actions(*kinds, queue=name, count=8))
    assert outcome.tally.confirmed == 8
    # What a stream has taken is counted as it is read there.
    taken = outcome.tally.from_streams if name == "kept-in-stream" else outcome.tally.dead_lettered
    assert taken > 0 or name.endswith("-once")


# --- metadata and turns ---------------------------------------------------------------------------------


def test_metadata_that_a_power_cut_loses_are_found_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    do = SimulatedDisk._do

    def skip(self: SimulatedDisk, step: DiskStep) -> None:
        if not (isinstance(step, SyncFile) and step.name == "metadata"):
            do(self, step)

    monkeypatch.setattr(SimulatedDisk, "_do", skip)
    found = [
        repeat(standard_topology(), actions(Kind.DECLARE, Kind.SETTLE, Kind.CUT_POWER, queue=name))
        for name in ("orders", "routed", "log")
    ]
    assert any("the metadata lack after a start" in one for one in found)


def burst(monkeypatch: pytest.MonkeyPatch) -> Sequence[Action]:
    """More small messages at once than a turn may handle, half of which are returned."""
    monkeypatch.setattr(client_actions, "_SIZES", (8,))
    settle, connect = actions(Kind.SETTLE), actions(Kind.CONNECT)
    return [*connect, *settle, *actions(Kind.PUBLISH, queue="private1", count=2_500), *settle]


def test_a_burst_is_worked_through_in_turns_within_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Simulation(standard_topology()).run(burst(monkeypatch))
    assert outcome.tally.returned > TURN_WORK_MAX > outcome.turn_work_max


def test_a_turn_that_does_not_end_at_its_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(self: SimulatedConnection, size: int) -> None:
        def receive() -> None:
            self.server.receive(bytes(self.to_server))
            while self.server.has_more:
                self.server.process_more()

        self.node.measure(receive)
        self.to_server.clear()

    monkeypatch.setattr(SimulatedConnection, "pass_to_server", go_on)
    found = repeat(standard_topology(), burst(monkeypatch))
    assert found.startswith("a turn did ")
    assert int(found.split()[3]) > TURN_WORK_MAX
