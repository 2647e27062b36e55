"""The sampler of statistics: idle objects cost nothing, and deleted objects are forgotten."""

from typing import cast

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren import limits
from warren.metrics import sampler
from warren.metrics.sampler import (
    CHANNEL_COLUMNS,
    CHURN,
    LINK_COLUMNS,
    QUEUE_COLUMNS,
    UNKNOWN,
    VHOST_COLUMNS,
    Sampler,
    series_of,
)
from warren.model.samples import Samples
from warren.queues.classic import ClassicQueue
from warren.relay.link import Link
from warren.relay.status import Hold, LinkCounters, LinkKey, LinkKind, LinkState, LinkStatus
from warren.wire import methods

STEP = limits.SAMPLE_INTERVAL_MS
T0 = 1_795_208_910_000


class Node:
    """A broker that is sampled, and one client of it."""

    def __init__(self, *queues: str) -> None:
        self.broker = Broker()
        self.client: Client = self.broker.client()
        self.sampler = Sampler(self.broker.server, self.broker.services.metadata, lambda: (0,))
        self.client.ask(*(methods.QueueDeclare(queue=name) for name in queues))
        self.vhost = self.broker.services.vhost

    def queue(self, name: str) -> ClassicQueue:
        return self.vhost.queues[name]

    def sample(self, interval: int) -> int:
        """Take one sample; returns the number of turns that it took."""
        return sum(1 for _ in self.sampler.sample(T0 + interval * STEP))

    def rates(self, owner: object, columns: tuple[str, ...], names: str) -> list[float]:
        series = series_of(owner)  # type: ignore[arg-type]
        assert series is not None
        return [series.rate(self.sampler.time, columns.index(name)) for name in names.split()]


def test_rates_are_computed_over_the_last_interval() -> None:
    node = Node("q")
    node.client.send(*(publication("q", b"a") for _ in range(10)))
    node.sample(1)
    node.client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    node.client.send(*(publication("q", b"a") for _ in range(5)), call(methods.BasicAck(12, True)))
    node.sample(2)
    queue = node.rates(node.queue("q"), QUEUE_COLUMNS, "publish deliver deliver_get ack messages")
    assert queue == [1.0, 3.0, 3.0, 2.4, -1.4]
    vhost = node.rates(node.vhost, VHOST_COLUMNS, "publish deliver ack messages_unacknowledged")
    assert vhost == [1.0, 3.0, 2.4, 0.6]
    (connection,) = node.broker.server.connections
    channel = node.rates(connection.channels[1], CHANNEL_COLUMNS, "publish deliver ack confirm")
    assert channel == [1.0, 3.0, 2.4, 0.0]
    node.sample(3)
    assert node.rates(node.queue("q"), QUEUE_COLUMNS, "publish deliver") == [0.0, 0.0]
    assert node.sampler.total.at(node.sampler.time, VHOST_COLUMNS.index("publish")) == 15


def test_idle_queues_are_not_sampled() -> None:
    node = Node("busy", *(f"idle {number}" for number in range(1000)))
    node.client.send(publication("busy", b"a"))
    node.sample(1)
    assert [queue.history is None for queue in node.vhost.queues.values()] == [False] + [True] * 1000
    rows = node.sampler.row_count
    node.sample(2)
    # The three series of the node itself are always sampled.
    assert node.sampler.row_count == rows + 3


def test_sampling_many_queues_takes_many_turns() -> None:
    node = Node(*(f"q{number}" for number in range(500)))
    node.client.send(*(publication(f"q{number}", b"a") for number in range(500)))
    assert node.sample(1) >= 500 // limits.SAMPLED_PER_TURN


def test_changes_during_a_pass_are_in_this_pass_or_the_next() -> None:
    node = Node(*(f"q{number}" for number in range(300)))
    node.client.send(*(publication(f"q{number}", b"a") for number in range(300)))
    running = node.sampler.sample(T0 + STEP)
    next(running)
    node.client.send(*(publication(f"q{number}", b"a") for number in range(300)))
    for _ in running:
        pass
    node.sample(2)
    sampled = [series_of(queue).last[3] for queue in node.vhost.queues.values()]  # type: ignore[union-attr]
    assert sampled == [2] * 300


def test_the_message_counts_of_a_vhost_are_those_of_its_queues() -> None:
    node = Node("q", "r", "empty")
    node.client.send(*(publication("q", b"a") for _ in range(3)), publication("r", b"b"))
    assert node.sampler.vhost_row(node.vhost)[:3] == (4, 4, 0)
    node.sample(1)
    assert node.sampler.vhost_row(node.vhost)[:3] == (4, 4, 0)
    node.client.send(call(methods.BasicGet(queue="q")), publication("empty", b"c"))
    assert node.sampler.total_row()[:3] == (5, 4, 1)
    node.client.ask(methods.QueueDelete(queue="q"), methods.QueuePurge(queue="r"))
    node.sample(2)
    assert node.sampler.total_row()[:2] == (1, 1)


def test_with_very_many_queues_the_totals_are_those_of_the_last_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "_ADDED_UP_MAX", 2)
    node = Node("a", "b", "c")
    node.client.send(*(publication(name, b"a") for name in "abc"))
    node.sample(1)
    node.client.send(publication("a", b"a"))
    assert node.sampler.total_row()[:3] == (3, 3, 0)
    node.sample(2)
    assert node.sampler.total_row()[:3] == (4, 4, 0)


def test_bytes_of_closed_connections_stay_counted() -> None:
    node = Node("q")
    (connection,) = node.broker.server.connections
    node.sample(1)
    columns = slice(VHOST_COLUMNS.index("recv_oct"), VHOST_COLUMNS.index("send_oct") + 1)
    assert node.sampler.total_row()[columns] == (connection.bytes_received, connection.outbox.total)
    node.client.send(publication("q", b"a"), call(methods.ConnectionClose(200, "", 0, 0), channel=0))
    received, sent = node.sampler.total_row()[columns]
    assert received == connection.bytes_received
    assert 0 < sent <= connection.outbox.total


def test_connections_channels_and_queues_are_counted_when_they_open_and_close() -> None:
    node = Node("q", "r")
    node.client.ask(methods.QueueDeclare(queue="q"), methods.QueueDelete(queue="r"))
    node.client.send(call(methods.ConnectionClose(200, "", 0, 0), channel=0))
    counted = dict(zip(CHURN, node.sampler.churn_row(), strict=True))
    assert counted == {
        "connection_created": 1,
        "connection_closed": 1,
        "channel_created": 1,
        "channel_closed": 1,
        "queue_declared": 3,
        "queue_created": 2,
        "queue_deleted": 1,
    }


def test_the_number_of_samples_of_all_objects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SAMPLES_MAX", 100)
    names = [f"q{number}" for number in range(30)]
    node = Node(*names)
    for interval in range(1, 20):
        node.client.send(*(publication(name, b"a") for name in names))
        node.sample(interval)
        assert node.sampler.row_count <= 100 + len(names) + 10
    assert node.rates(node.queue("q29"), QUEUE_COLUMNS, "publish") == [0.2]


def test_samples_of_idle_objects_are_forgotten() -> None:
    node = Node("q")
    node.client.send(publication("q", b"a"))
    node.sample(1)
    series = series_of(node.queue("q"))
    assert series is not None
    assert len(series) == 1
    for interval in range(2, limits.SAMPLE_RETENTION_MS // STEP + 2):
        node.sample(interval)
    assert len(series) == 0
    assert series.at(node.sampler.time, 0) == 1


def test_passes_are_due_at_whole_intervals() -> None:
    node = Node()
    assert node.sampler.due_in(T0 + 1) == STEP - 1
    assert node.sampler.due_in(T0) == STEP


class CountedLink:
    """A link that has forwarded `forwarded` messages."""

    def __init__(self) -> None:
        self.history: Samples | None = None
        self.forwarded = 0

    def status(self) -> LinkStatus:
        return LinkStatus(
            key=LinkKey(LinkKind.SHOVEL, "/", "s"), state=LinkState.RUNNING, since=T0, reason="",
            last_error="", last_error_code=0, last_error_at=0, next_attempt_at=0, connected_at=T0,
            source_uri="", destination_uri="", counters=LinkCounters(forwarded=self.forwarded), pending=0,
            unconfirmed=0, unconfirmed_since=0, prefetch_count=0, rate_max=None, hold=Hold.NONE, hold_since=0,
            hold_reason="", remaining=-1, remaining_unacked=-1, delivered_at=T0 + 2_000,
            delivered_timestamp=T0, source_ready=-1, source_counted_at=0,
        )  # fmt: skip


def test_links_are_sampled_and_what_is_not_known_of_them_is_kept_as_unknown() -> None:
    broker = Broker()
    link = CountedLink()
    sampler = Sampler(broker.server, broker.services.metadata, lambda: (0,), [cast(Link, link)])
    list(sampler.sample(T0 + STEP))
    link.forwarded = 50
    list(sampler.sample(T0 + 2 * STEP))
    series = series_of(link)
    assert series is not None
    assert series.rate(sampler.time, LINK_COLUMNS.index("forwarded")) == 10.0
    assert series.at(sampler.time, LINK_COLUMNS.index("lag_messages")) == UNKNOWN
    assert series.at(sampler.time, LINK_COLUMNS.index("lag_ms")) == 2_000
    assert series.at(T0, LINK_COLUMNS.index("lag_ms")) == UNKNOWN
    rows = sampler.row_count
    list(sampler.sample(T0 + 3 * STEP))
    # An idle link costs no row; the three series of the node itself are always sampled.
    assert sampler.row_count == rows + 3
