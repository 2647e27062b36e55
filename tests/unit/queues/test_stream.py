"""A stream: many read it, each from where it wants, and it stays as it is."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.queues.samples import Host, Reader, sent

from warren.errors import AmqpNotImplemented
from warren.limits import STREAM_WORK_PER_TURN_MAX
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.queues.stream import StreamQueue
from warren.queues.stream_read_options import StreamReadOptions
from warren.store.message_store import StorePort
from warren.store.streams.recovery import CATALOG, open_streams
from warren.store.streams.stream_log import StreamLogDependencies

SETTINGS = QueueSettings(kind="stream")


class Told(ConfirmListener):
    """Who publishes."""

    def __init__(self) -> None:
        self.due: list[int] = []
        self.told: list[int] = []

    def expect(self, sequence: int) -> None:
        self.due.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.told += range(first, last + 1)


class Quiet(StorePort):
    """The tests write when they want to."""

    def commit_due(self) -> None:
        pass


class World:
    """A stream on a simulated disk."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.host = Host(1_000)
        self.chance = random.Random(2)
        self.open()

    def open(self, settings: QueueSettings = SETTINGS) -> None:
        """The stream as it is after a start."""
        files = StreamLogDependencies(disk=self.disk, random_octets=self.chance.randbytes, report=print)
        self.store = open_streams(files, Quiet(), lambda number: number == 7).store
        self.queue = StreamQueue("s", "/", self.host, settings)
        self.queue.attach_store(self.store, 7)

    def publish(self, *bodies: bytes, **properties: object) -> None:
        """Publish and write."""
        for body in bodies:
            self.queue.publish(sent(body, now=self.host.now, **properties), None, 0)
        self.write()

    def write(self) -> None:
        """Have it on the disk."""
        self.store.commit()
        while self.disk.is_busy:
            self.disk.advance()

    def consume(self, start: object = "first", *, prefetch: int = 100, **arguments: object) -> Reader:
        """A consumer that begins at `start`."""
        reader = Reader(prefetch=prefetch)
        self.queue.set_read_options(reader, StreamReadOptions({"x-stream-offset": start, **arguments}))
        self.queue.add_consumer(reader)
        return reader

    def settle(self, reader: Reader, count: int) -> None:
        """Have `reader` acknowledge what it has had longest."""
        for delivery in reader.unsettled[:count]:
            self.queue.acknowledge(delivery)
        del reader.unsettled[:count]
        if reader.is_parked:
            self.queue.consumer_ready(reader)


@pytest.fixture
def world() -> World:
    return World()


def bodies(reader: Reader) -> list[bytes]:
    return [body for body, _ in reader.got]


def offsets(reader: Reader) -> list[object]:
    return [delivery.message.headers()["x-stream-offset"] for delivery in reader.unsettled]


def test_each_consumer_gets_everything_from_where_it_begins(world: World) -> None:
    world.publish(b"a", b"b")
    one, other, third = world.consume("first"), world.consume(1), world.consume("next")
    world.publish(b"c")
    assert [bodies(reader) for reader in (one, other, third)] == [[b"a", b"b", b"c"], [b"b", b"c"], [b"c"]]
    assert offsets(one) == [0, 1, 2]
    assert not any(redelivered for _, redelivered in one.got)
    assert (world.queue.message_count, world.queue.delivered_count) == (3, 6)


def test_the_keys_of_bcc_are_not_kept(world: World) -> None:
    reader = world.consume("first")
    world.publish(b"a", headers={"BCC": ["hidden"], "n": 1})
    world.queue.publish_as(sent(b"b", headers={"BCC": ["hidden"], "n": 1}), "p", 1)
    world.write()
    assert [delivery.message.headers() for delivery in reader.unsettled] == [
        {"n": 1, "x-stream-offset": 0},
        {"n": 1, "x-stream-offset": 1},
    ]


def test_nothing_is_handed_out_before_it_is_written(world: World) -> None:
    reader = world.consume()
    world.queue.publish(sent(b"a"), None, 0)
    assert not reader.got
    assert world.queue.message_count == 0
    world.write()
    assert bodies(reader) == [b"a"]


def test_a_publish_is_confirmed_when_it_is_written_persistent_or_not(world: World) -> None:
    told = Told()
    world.queue.publish(sent(b"a", delivery_mode=1), told, 1)
    world.queue.publish(sent(b"b", delivery_mode=2), told, 2)
    assert (told.due, told.told) == ([1, 2], [])
    world.write()
    assert told.told == [1, 2]


def test_prefetch_holds_back_and_an_acknowledgement_makes_room(world: World) -> None:
    reader = world.consume(prefetch=2)
    world.publish(*(bytes((n,)) for n in range(10)))
    assert len(reader.got) == 2
    world.settle(reader, 1)
    assert len(reader.got) == 3
    for _ in range(10):
        world.settle(reader, 2)
    assert bodies(reader) == [bytes((n,)) for n in range(10)]


def test_one_that_is_slow_holds_nobody_up(world: World) -> None:
    slow, fast = world.consume(prefetch=1), world.consume()
    world.publish(b"a", b"b", b"c")
    assert (len(slow.got), len(fast.got)) == (1, 3)


def test_an_offset_to_come_is_waited_for(world: World) -> None:
    world.publish(b"a")
    reader = world.consume(2)
    world.publish(b"b")
    assert not reader.got
    world.publish(b"c", b"d")
    assert bodies(reader) == [b"c", b"d"]


def test_what_a_filter_does_not_want_is_passed_over(world: World) -> None:
    reader = world.consume(**{"x-stream-filter": "eu"})
    world.publish(b"a", headers={"x-stream-filter-value": "eu"})
    world.publish(b"b", headers={"x-stream-filter-value": "us"})
    world.publish(b"c")
    world.publish(b"d", headers={"x-stream-filter-value": "eu"})
    assert bodies(reader) == [b"a", b"d"]


def test_a_long_backlog_is_handed_out_turn_by_turn(world: World) -> None:
    count = STREAM_WORK_PER_TURN_MAX + 500
    world.publish(*(b"x" for _ in range(2 * count)))
    one, other = world.consume(prefetch=0), world.consume(prefetch=0)
    while world.host.wakes:
        world.host.wakes.clear()
        world.queue.expire()
    assert len(one.got) == len(other.got) == 2 * count


def test_one_that_passes_everything_over_leaves_others_their_turns(world: World) -> None:
    world.publish(*(b"x" for _ in range(3 * STREAM_WORK_PER_TURN_MAX)), b"last")
    before = world.host.work
    reader = world.consume(prefetch=0, **{"x-stream-filter": "nothing", "x-stream-match-unfiltered": False})
    assert world.host.work - before <= STREAM_WORK_PER_TURN_MAX
    assert world.host.wakes
    while world.host.wakes:
        world.host.wakes.clear()
        world.queue.expire()
    assert not reader.got
    world.publish(b"wanted", headers={"x-stream-filter-value": "nothing"})
    assert bodies(reader) == [b"wanted"]


def test_a_paused_stream_hands_out_when_it_goes_on(world: World) -> None:
    reader = world.consume()
    world.queue.pause()
    world.publish(b"a")
    assert not reader.got
    assert world.queue.is_paused
    world.queue.resume()
    assert bodies(reader) == [b"a"]


def test_a_consumer_that_has_gone_gets_nothing_more(world: World) -> None:
    reader = world.consume()
    assert world.host.consumer_count == world.queue.consumer_count == 1
    world.queue.remove_consumer(reader)
    world.publish(b"a")
    assert not reader.got
    assert world.host.consumer_count == world.queue.consumer_count == 0


def test_what_comes_back_stays_where_it_is(world: World) -> None:
    reader = world.consume()
    world.publish(b"a")
    world.queue.requeue(reader.unsettled[0])
    world.queue.reject(reader.unsettled[0])
    world.queue.pump()
    assert bodies(reader) == [b"a"]
    assert world.queue.message_count == 1


def test_what_streams_do_not_have_is_refused_by_name(world: World) -> None:
    queue = world.queue
    refused = {
        "basic.get": lambda: queue.get(),
        "queue.purge": queue.purge,
        "basic.nack and basic.reject": queue.check_return,
        "automatic acknowledgement": lambda: queue.check_consumer(Reader(no_ack=True)),
    }
    for what, ask in refused.items():
        with pytest.raises(AmqpNotImplemented) as caught:
            ask()
        assert caught.value.message == f"{what} not supported by stream queues queue 's' in vhost '/'"


def test_an_epoch_is_kept_and_belongs_to_one_stream(world: World) -> None:
    world.write()
    epoch = world.queue.epoch
    world.open()
    assert world.queue.epoch == epoch
    world.publish(b"a")
    world.queue.delete()
    world.write()
    world.open()
    assert world.queue.epoch != epoch


def test_a_stream_is_there_after_a_start_and_gone_after_a_delete(world: World) -> None:
    world.publish(b"a", b"b")
    world.open()
    assert bodies(world.consume()) == [b"a", b"b"]
    reader = world.consume()
    assert world.queue.delete() == 2
    world.write()
    assert reader.cancels == 1
    assert set(world.disk.files) == {CATALOG}


def test_what_is_too_much_goes_from_the_front_and_readers_go_on_behind_it(world: World) -> None:
    small = QueueSettings(kind="stream", length_bytes_max=20_000, segment_size_max=5_000)
    world.queue.apply_settings(small)
    parked = world.consume(prefetch=1)
    for n in range(100):
        world.publish(n.to_bytes(2, "big") * 500)
    world.store.maintain(world.host.now)
    world.write()
    first = world.queue.log.first
    assert 0 < first < 90
    assert world.queue.ready_octets <= 26_000
    world.settle(parked, 1)
    assert offsets(parked) == [first]
    assert offsets(world.consume()) == list(range(first, 100))


def test_what_is_too_old_goes(world: World) -> None:
    world.queue.apply_settings(QueueSettings(kind="stream", age_ms_max=60_000, segment_size_max=2_000))
    for n in range(10):
        world.host.now += 30_000
        world.publish(bytes((n,)) * 1_500)
    world.store.maintain(world.host.now)
    assert world.queue.log.first == 7


def test_a_peek_shows_offsets_and_changes_nothing(world: World) -> None:
    for n in range(5):
        world.publish(bytes((n,)))
    seen = world.queue.peek(1, 3)
    assert [(peeked.place, peeked.message.body) for peeked in seen] == [(n, bytes((n,))) for n in (1, 2, 3)]
    assert world.queue.peek(5, 3) == []
    assert world.queue.extent() == [range(5)]
    assert world.queue.message_count == 5
