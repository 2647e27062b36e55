"""Streams: many consumers read a stream, each from its own offset, and reading removes nothing."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.queues.samples import Host, Reader, sent

from warren.errors import AmqpNotImplemented
from warren.limits import STREAM_WORK_PER_TURN_MAX
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.queues.queue import CHANNEL_ENDED
from warren.queues.stream import StreamQueue
from warren.queues.stream_read_options import StreamReadOptions
from warren.store.store_port import StorePort
from warren.store.streams.recovery import CATALOG, open_streams
from warren.store.streams.stream_log import StreamLogDependencies

SETTINGS = QueueSettings(kind="stream")


class ConfirmRecorder(ConfirmListener):
    """A publisher that records its confirms."""

    def __init__(self) -> None:
        self.due: list[int] = []
        self.reported: list[int] = []

    def expect(self, sequence: int) -> None:
        self.due.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.reported += range(first, last + 1)


class IdlePort(StorePort):
    """Nothing to do: the tests write the store."""

    def commit_due(self) -> None:
        pass


class StreamHarness:
    """A stream on a simulated disk."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.host = Host(1_000)
        self.chance = random.Random(2)
        self.open()

    def open(self, settings: QueueSettings = SETTINGS) -> None:
        """Open the stream, as at a start."""
        files = StreamLogDependencies(disk=self.disk, random_bytes=self.chance.randbytes, report=print)
        found = open_streams(files, IdlePort(), lambda number: number == 7)
        self.store, self.damage = found.store, found.damage
        self.queue = StreamQueue("s", "/", self.host, settings)
        self.queue.attach_store(self.store, 7)

    def publish(self, *bodies: bytes, **properties: object) -> None:
        """Publish and write."""
        for body in bodies:
            self.queue.publish(sent(body, now=self.host.now, **properties), None, 0)
        self.write()

    def write(self) -> None:
        """Write everything to disk."""
        self.store.commit()
        while self.disk.is_busy:
            self.disk.advance()

    def consume(self, start: object = "first", *, prefetch: int = 100, **arguments: object) -> Reader:
        """Add a consumer that begins at `start`."""
        reader = Reader(prefetch=prefetch)
        self.queue.set_read_options(reader, StreamReadOptions({"x-stream-offset": start, **arguments}))
        self.queue.add_consumer(reader)
        return reader

    def settle(self, reader: Reader, count: int) -> None:
        """Acknowledge the `count` oldest deliveries of `reader`."""
        for delivery in reader.unsettled[:count]:
            self.queue.acknowledge(delivery)
        del reader.unsettled[:count]
        if reader.is_parked:
            self.queue.consumer_ready(reader)


@pytest.fixture
def harness() -> StreamHarness:
    return StreamHarness()


def bodies(reader: Reader) -> list[bytes]:
    return [body for body, _ in reader.got]


def offsets(reader: Reader) -> list[object]:
    return [delivery.message.headers()["x-stream-offset"] for delivery in reader.unsettled]


def test_each_consumer_receives_all_messages_from_its_start(harness: StreamHarness) -> None:
    harness.publish(b"a", b"b")
    one, other, third = harness.consume("first"), harness.consume(1), harness.consume("next")
    harness.publish(b"c")
    assert [bodies(reader) for reader in (one, other, third)] == [[b"a", b"b", b"c"], [b"b", b"c"], [b"c"]]
    assert offsets(one) == [0, 1, 2]
    assert not any(redelivered for _, redelivered in one.got)
    assert (harness.queue.message_count, harness.queue.delivered_count) == (3, 6)


def test_messages_are_stored_without_bcc(harness: StreamHarness) -> None:
    reader = harness.consume("first")
    harness.publish(b"a", headers={"BCC": ["hidden"], "n": 1})
    harness.queue.publish_as(sent(b"b", headers={"BCC": ["hidden"], "n": 1}), "p", 1)
    harness.write()
    assert [delivery.message.headers() for delivery in reader.unsettled] == [
        {"n": 1, "x-stream-offset": 0},
        {"n": 1, "x-stream-offset": 1},
    ]


def test_a_message_is_not_delivered_before_it_is_written(harness: StreamHarness) -> None:
    reader = harness.consume()
    harness.queue.publish(sent(b"a"), None, 0)
    assert not reader.got
    assert harness.queue.message_count == 0
    harness.write()
    assert bodies(reader) == [b"a"]


def test_a_publish_is_confirmed_when_it_is_written_persistent_or_not(harness: StreamHarness) -> None:
    reported = ConfirmRecorder()
    harness.queue.publish(sent(b"a", delivery_mode=1), reported, 1)
    harness.queue.publish(sent(b"b", delivery_mode=2), reported, 2)
    assert (reported.due, reported.reported) == ([1, 2], [])
    harness.write()
    assert reported.reported == [1, 2]


def test_prefetch_limits_deliveries_until_an_acknowledgement(harness: StreamHarness) -> None:
    reader = harness.consume(prefetch=2)
    harness.publish(*(bytes((n,)) for n in range(10)))
    assert len(reader.got) == 2
    harness.settle(reader, 1)
    assert len(reader.got) == 3
    for _ in range(10):
        harness.settle(reader, 2)
    assert bodies(reader) == [bytes((n,)) for n in range(10)]


def test_a_slow_consumer_does_not_delay_others(harness: StreamHarness) -> None:
    slow, fast = harness.consume(prefetch=1), harness.consume()
    harness.publish(b"a", b"b", b"c")
    assert (len(slow.got), len(fast.got)) == (1, 3)


def test_a_future_offset_is_waited_for(harness: StreamHarness) -> None:
    harness.publish(b"a")
    reader = harness.consume(2)
    harness.publish(b"b")
    assert not reader.got
    harness.publish(b"c", b"d")
    assert bodies(reader) == [b"c", b"d"]


def test_messages_that_do_not_match_the_filter_are_skipped(harness: StreamHarness) -> None:
    reader = harness.consume(**{"x-stream-filter": "eu"})
    harness.publish(b"a", headers={"x-stream-filter-value": "eu"})
    harness.publish(b"b", headers={"x-stream-filter-value": "us"})
    harness.publish(b"c")
    harness.publish(b"d", headers={"x-stream-filter-value": "eu"})
    assert bodies(reader) == [b"a", b"d"]


def test_a_long_backlog_is_delivered_in_several_turns(harness: StreamHarness) -> None:
    count = STREAM_WORK_PER_TURN_MAX + 500
    harness.publish(*(b"x" for _ in range(2 * count)))
    one, other = harness.consume(prefetch=0), harness.consume(prefetch=0)
    while harness.host.wakes:
        harness.host.wakes.clear()
        harness.queue.expire()
    assert len(one.got) == len(other.got) == 2 * count


def test_a_consumer_that_skips_everything_yields_to_others(harness: StreamHarness) -> None:
    harness.publish(*(b"x" for _ in range(3 * STREAM_WORK_PER_TURN_MAX)), b"last")
    before = harness.host.work
    reader = harness.consume(prefetch=0, **{"x-stream-filter": "nothing", "x-stream-match-unfiltered": False})
    assert harness.host.work - before <= STREAM_WORK_PER_TURN_MAX
    assert harness.host.wakes
    while harness.host.wakes:
        harness.host.wakes.clear()
        harness.queue.expire()
    assert not reader.got
    harness.publish(b"wanted", headers={"x-stream-filter-value": "nothing"})
    assert bodies(reader) == [b"wanted"]


def test_a_paused_stream_delivers_after_it_is_resumed(harness: StreamHarness) -> None:
    reader = harness.consume()
    harness.queue.pause()
    harness.publish(b"a")
    assert not reader.got
    assert harness.queue.is_paused
    harness.queue.resume()
    assert bodies(reader) == [b"a"]


def test_a_cancelled_consumer_receives_nothing_more(harness: StreamHarness) -> None:
    reader = harness.consume()
    assert harness.host.consumer_count == harness.queue.consumer_count == 1
    harness.queue.remove_consumer(reader)
    harness.publish(b"a")
    assert not reader.got
    assert harness.host.consumer_count == harness.queue.consumer_count == 0


def test_requeueing_leaves_a_message_in_the_stream(harness: StreamHarness) -> None:
    reader = harness.consume()
    harness.publish(b"a")
    harness.queue.requeue(reader.unsettled[0])
    harness.queue.reject(reader.unsettled[0])
    assert harness.queue.acknowledged_count == 2
    harness.queue.requeue(reader.unsettled[0], CHANNEL_ENDED)
    assert harness.queue.acknowledged_count == 2
    harness.queue.pump()
    assert bodies(reader) == [b"a"]
    assert harness.queue.message_count == 1


def test_unsupported_operations_are_refused_by_name(harness: StreamHarness) -> None:
    queue = harness.queue
    refused = {
        "basic.get": lambda: queue.get(),
        "queue.purge": queue.clear,
        "automatic acknowledgement": lambda: queue.check_consumer(Reader(no_ack=True)),
    }
    for what, ask in refused.items():
        with pytest.raises(AmqpNotImplemented) as caught:
            ask()
        assert caught.value.message == f"{what} not supported by stream queues queue 's' in vhost '/'"


def test_an_epoch_is_persistent_and_belongs_to_one_stream(harness: StreamHarness) -> None:
    harness.write()
    epoch = harness.queue.epoch
    harness.open()
    assert harness.queue.epoch == epoch
    harness.publish(b"a")
    harness.queue.delete()
    harness.write()
    harness.open()
    assert harness.queue.epoch != epoch


def test_a_stream_begins_with_the_offset_that_it_was_declared_with(harness: StreamHarness) -> None:
    harness.queue.delete()
    harness.write()
    settings = QueueSettings(kind="stream", initial_offset=1_000)
    for _ in range(2):
        # The second time there is an empty file.
        harness.open(settings)
        assert (harness.queue.log.first, harness.queue.log.committed) == (1_000, 1_000)
        harness.write()
    harness.publish(b"one", b"two")
    harness.open(settings)
    log = harness.queue.log
    assert (log.first, log.committed, harness.queue.message_count) == (1_000, 1_002, 2)
    assert harness.damage == []


def test_a_stream_survives_a_restart_and_is_gone_after_a_delete(harness: StreamHarness) -> None:
    harness.publish(b"a", b"b")
    harness.open()
    assert bodies(harness.consume()) == [b"a", b"b"]
    reader = harness.consume()
    assert harness.queue.delete() == 2
    harness.write()
    assert reader.cancels == 1
    assert set(harness.disk.files) == {CATALOG}


def test_max_length_removes_the_oldest_segments_and_readers_continue_behind_them(
    harness: StreamHarness,
) -> None:
    small = QueueSettings(kind="stream", length_bytes_max=20_000, segment_size_max=5_000)
    harness.queue.apply_settings(small)
    parked = harness.consume(prefetch=1)
    for n in range(100):
        harness.publish(n.to_bytes(2, "big") * 500)
    harness.store.maintain(harness.host.now)
    harness.write()
    first = harness.queue.log.first
    assert 0 < first < 90
    assert harness.queue.ready_bytes <= 26_000
    harness.settle(parked, 1)
    assert offsets(parked) == [first]
    assert offsets(harness.consume()) == list(range(first, 100))


def test_max_age_removes_old_segments(harness: StreamHarness) -> None:
    harness.queue.apply_settings(QueueSettings(kind="stream", age_ms_max=60_000, segment_size_max=2_000))
    for n in range(10):
        harness.host.now += 30_000
        harness.publish(bytes((n,)) * 1_500)
    harness.store.maintain(harness.host.now)
    assert harness.queue.log.first == 7


def test_a_peek_shows_offsets_and_changes_nothing(harness: StreamHarness) -> None:
    for n in range(5):
        harness.publish(bytes((n,)))
    seen = harness.queue.peek(1, 3)
    assert [(peeked.place, peeked.message.body) for peeked in seen] == [(n, bytes((n,))) for n in (1, 2, 3)]
    assert harness.queue.peek(5, 3) == []
    assert harness.queue.extent() == [range(5)]
    assert harness.queue.message_count == 5


def test_a_reader_reads_again_from_a_delivery_that_no_client_has_seen(harness: StreamHarness) -> None:
    harness.publish(b"a", b"b", b"c", b"d")
    reader = harness.consume("first")
    other = harness.consume("first")
    assert bodies(reader) == [b"a", b"b", b"c", b"d"]
    for delivery in reader.unsettled[1:]:
        harness.queue.read_again(delivery)
    harness.queue.pump()
    assert bodies(reader) == [b"a", b"b", b"c", b"d", b"b", b"c", b"d"]
    assert offsets(reader) == [0, 1, 2, 3, 1, 2, 3]
    assert bodies(other) == [b"a", b"b", b"c", b"d"]
    harness.queue.remove_consumer(reader)
    harness.queue.read_again(reader.unsettled[1])
    harness.queue.pump()
    assert len(reader.got) == 7
