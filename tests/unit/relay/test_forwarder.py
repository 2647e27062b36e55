"""A forwarder: order, acknowledgements after confirms, refusals, alarms, and a limited number of messages.

Both ends are real clients; what their brokers answer is written by the tests, frame by frame.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.unit.client.broker_pair import BrokerPair
from tests.unit.session.client import Broker, ReceivedMethod, call, frame, parse

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ConnectionListener
from warren.client.errors import BrokerRefused
from warren.flow.rate_limiter import RateLimiter
from warren.limits_relay import LINK_UNCONFIRMED_MAX, REFUSAL_PAUSE_MAX_MS, REFUSAL_PAUSE_MIN_MS
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.relay.forwarder import (
    AckMode,
    DestinationConnectionListener,
    DestinationListener,
    Forwarder,
    ForwardingListener,
    SourceConnectionListener,
)
from warren.relay.status import Hold
from warren.wire import methods
from warren.wire.properties import BasicProperties


class RecordedForwarding(ForwardingListener):
    """What a forwarder told its owner; messages go to the queue `to`."""

    def __init__(self) -> None:
        self.completions = 0
        self.source_errors: list[BrokerRefused] = []
        self.destination_errors: list[BrokerRefused] = []
        self.is_wanted: Callable[[Message], bool] = lambda message: True
        # Pauses in ms, and what follows them.
        self.timers: list[tuple[int, Callable[[], None]]] = []

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        if not self.is_wanted(message):
            return None
        return Message(encode_address("", "to"), message.property_list, message.content, 0)

    def call_later(self, pause_ms: int, action: Callable[[], None]) -> None:
        self.timers.append((pause_ms, action))

    def completed(self) -> None:
        self.completions += 1

    def source_ended(self, error: BrokerRefused) -> None:
        self.source_errors.append(error)

    def destination_ended(self, error: BrokerRefused) -> None:
        self.destination_errors.append(error)


class WrittenBroker:
    """One open connection with one channel, whose broker says what the test writes."""

    def __init__(self, listener: ConnectionListener, channel_listener: ChannelListener) -> None:
        self.broker = Broker()
        self.pair = BrokerPair(self.broker, listener=listener)
        self.client = self.pair.client
        self.channel: ClientChannel
        drive(self._open(channel_listener))
        self.pair.exchange()
        assert self.channel.is_open

    async def _open(self, listener: ChannelListener) -> None:
        await self.client.open()
        self.channel = await self.client.open_channel(listener)

    def write(self, *data: bytes) -> None:
        """Have the broker send `data` in one read."""
        self.client.receive(b"".join(data))
        while self.client.has_more:
            self.client.process_more()

    def read(self) -> list[ReceivedMethod]:
        """What the client has sent since the last call."""
        sent = parse(b"".join(bytes(part) for part in self.client.take_output()))
        self.client.output_written()
        return sent


def delivery(tag: int, body: bytes, *, is_redelivered: bool = False, **properties: object) -> bytes:
    """The frames of one delivery."""
    deliver = methods.BasicDeliver(
        consumer_tag="c", delivery_tag=tag, redelivered=is_redelivered, exchange="", routing_key="from"
    )
    return call(deliver) + frame(2, 1, BasicProperties(**properties).encode(len(body))) + frame(3, 1, body)


class Relay:
    """A forwarder between two brokers whose answers the test writes."""

    def __init__(self, ack_mode: AckMode = AckMode.ON_CONFIRM, *, remaining: int = -1) -> None:
        self.owner = RecordedForwarding()
        self.source: WrittenBroker
        broker = Broker()
        self.clock = broker.clock
        self.forwarder = forwarder = Forwarder(ack_mode, self.owner, broker.clock.turn, remaining)
        self.source = WrittenBroker(SourceConnectionListener(self.owner), forwarder)
        self.destination = WrittenBroker(
            DestinationConnectionListener(forwarder, self.owner), DestinationListener(forwarder, self.owner)
        )
        forwarder.attach_destination(self.destination.client, self.destination.channel)
        forwarder.attach_source(self.source.client, self.source.channel)
        self.tag = 0

    def deliver(self, *bodies: bytes) -> None:
        """Deliver messages with these bodies in one read."""
        data = []
        for body in bodies:
            self.tag += 1
            data.append(delivery(self.tag, body))
        self.source.write(*data)

    def published(self) -> list[bytes]:
        """The bodies that arrived at the destination since the last call."""
        sent = self.destination.read()
        assert all(isinstance(one.method, methods.BasicPublish) for one in sent)
        return [one.body for one in sent]

    def settled(self) -> list[tuple[str, int, bool]]:
        """What the source was told since the last call: the method, its tag, and whether all up to it."""
        found = []
        for one in self.source.read():
            assert isinstance(one.method, methods.BasicAck | methods.BasicNack)
            found.append((one.method.name, one.method.delivery_tag, one.method.multiple))
            assert isinstance(one.method, methods.BasicAck) or one.method.requeue
        return found

    def confirm(self, tag: int, *, multiple: bool = False) -> None:
        self.destination.write(call(methods.BasicAck(delivery_tag=tag, multiple=multiple)))

    def refuse(self, tag: int, *, multiple: bool = False) -> None:
        self.destination.write(call(methods.BasicNack(delivery_tag=tag, multiple=multiple)))


ACK, NACK = "basic.ack", "basic.nack"


def test_nothing_is_acknowledged_before_its_confirm_and_then_all_at_once() -> None:
    relay = Relay()
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2", b"3"]
    assert relay.settled() == []
    relay.confirm(1)
    relay.confirm(2)
    assert relay.settled() == [(ACK, 2, True)]
    assert relay.forwarder.unconfirmed_count == 1


def test_confirms_out_of_order_acknowledge_up_to_the_first_gap() -> None:
    relay = Relay()
    relay.deliver(b"1", b"2", b"3", b"4")
    relay.confirm(3)
    relay.confirm(2)
    assert relay.settled() == []
    assert relay.forwarder.unconfirmed_count == 2
    relay.confirm(1)
    assert relay.settled() == [(ACK, 3, True)]
    relay.confirm(4, multiple=True)
    assert relay.settled() == [(ACK, 4, True)]
    assert relay.forwarder.confirmed_count == 4


def test_on_publish_acknowledges_what_was_published() -> None:
    relay = Relay(AckMode.ON_PUBLISH)
    relay.deliver(b"1", b"2")
    assert relay.settled() == [(ACK, 2, True)]
    assert relay.published() == [b"1", b"2"]


def test_without_acknowledgements_the_source_is_told_nothing() -> None:
    relay = Relay(AckMode.NO_ACK)
    relay.owner.is_wanted = lambda message: message.body != b"2"
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"3"]
    assert relay.settled() == []
    assert relay.forwarder.dropped_count == 1


def test_a_dropped_message_is_acknowledged_without_its_neighbours() -> None:
    relay = Relay()
    relay.owner.is_wanted = lambda message: message.body != b"2"
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"3"]
    assert relay.settled() == [(ACK, 2, False)]
    relay.confirm(2, multiple=True)
    assert relay.settled() == [(ACK, 3, True)]


def test_a_run_of_dropped_messages_is_acknowledged_at_once() -> None:
    relay = Relay()
    relay.owner.is_wanted = lambda message: False
    relay.deliver(b"1", b"2", b"3")
    assert relay.settled() == [(ACK, 3, True)]


def test_a_destination_with_an_alarm_gets_nothing_and_the_source_is_not_read() -> None:
    relay = Relay()
    relay.destination.write(call(methods.ConnectionBlocked(reason="low on memory"), 0))
    assert relay.forwarder.hold() == (Hold.ALARM, relay.clock.now)
    relay.deliver(b"1", b"2")
    assert relay.source.client.is_reading_paused
    assert relay.published() == []
    assert relay.forwarder.waiting_count == 2
    relay.destination.write(call(methods.ConnectionUnblocked(), 0))
    assert not relay.source.client.is_reading_paused
    assert relay.published() == [b"1", b"2"]
    assert relay.forwarder.hold() == (Hold.NONE, 0)


def test_a_full_socket_of_the_destination_stops_reading_the_source() -> None:
    relay = Relay()
    relay.destination.client.pause_output()
    relay.deliver(b"1", b"2")
    assert relay.source.client.is_reading_paused
    assert relay.forwarder.hold()[0] is Hold.FULL
    relay.destination.client.resume_output()
    assert relay.published() == [b"1", b"2"]
    assert not relay.source.client.is_reading_paused


def test_a_message_does_not_overtake_those_that_wait_when_the_socket_has_room_again() -> None:
    relay = Relay()
    relay.destination.client.pause_output()
    relay.deliver(b"1")
    relay.destination.client.outbox.is_paused = False
    relay.deliver(b"2")
    relay.destination.client.output_written()
    assert relay.published() == [b"1", b"2"]


def test_a_refused_message_returns_to_its_queue_and_the_destination_is_given_time() -> None:
    relay = Relay()
    relay.deliver(b"1", b"2")
    relay.published()
    relay.refuse(1)
    relay.refuse(2)
    assert relay.settled() == [(NACK, 1, False), (NACK, 2, False)]
    relay.deliver(b"1", b"2")
    assert relay.published() == []
    assert relay.forwarder.hold()[0] is Hold.REFUSED
    ((pause_ms, retry),) = relay.owner.timers
    assert pause_ms == REFUSAL_PAUSE_MIN_MS
    retry()
    assert relay.published() == [b"1"]
    relay.confirm(3)
    assert relay.published() == [b"2"]
    assert relay.forwarder.hold() == (Hold.NONE, 0)


def test_a_destination_that_refuses_everything_is_asked_less_and_less_often() -> None:
    relay = Relay()
    pauses = []
    relay.deliver(b"m")
    for sequence in range(1, 13):
        assert relay.published() == [b"m"]
        relay.refuse(sequence)
        assert relay.settled() == [(NACK, sequence, False)]
        relay.deliver(b"m")
        assert relay.published() == []
        pause_ms, retry = relay.owner.timers.pop()
        assert not relay.owner.timers
        pauses.append(pause_ms)
        retry()
    assert pauses[:3] == [100, 200, 400]
    assert pauses[-1] == REFUSAL_PAUSE_MAX_MS
    relay.published()
    relay.confirm(13)
    relay.deliver(b"m")
    relay.refuse(14)
    assert relay.owner.timers.pop()[0] == REFUSAL_PAUSE_MIN_MS


def test_several_are_refused_at_once() -> None:
    relay = Relay()
    relay.deliver(b"1", b"2", b"3")
    relay.confirm(2)
    relay.refuse(3, multiple=True)
    assert relay.settled() == [(NACK, 1, False), (NACK, 3, False), (ACK, 2, True)]
    assert (relay.forwarder.rejected_count, relay.forwarder.confirmed_count) == (2, 1)


def test_a_limited_number_of_messages_is_forwarded_and_then_all_is_done() -> None:
    relay = Relay(remaining=2)
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2"]
    relay.confirm(1)
    assert relay.owner.completions == 0
    assert relay.forwarder.unsettled_remaining == 1
    relay.confirm(2)
    assert relay.owner.completions == 1
    assert relay.settled() == [(ACK, 2, True)]


def test_a_refused_one_of_a_limited_number_is_replaced_by_the_next() -> None:
    relay = Relay(remaining=1)
    relay.deliver(b"1", b"2")
    relay.refuse(1)
    assert relay.owner.completions == 0
    relay.owner.timers.pop()[1]()
    assert relay.published() == [b"1", b"2"]
    relay.confirm(2)
    assert relay.owner.completions == 1


@pytest.mark.parametrize("ack_mode", AckMode)
def test_dropped_messages_count_for_a_limited_number(ack_mode: AckMode) -> None:
    relay = Relay(ack_mode, remaining=2)
    relay.owner.is_wanted = lambda message: False
    relay.deliver(b"1", b"2")
    assert relay.owner.completions == 1


def test_a_finished_forwarder_settles_what_it_has_published() -> None:
    relay = Relay()
    relay.deliver(b"1")
    relay.forwarder.finish()
    relay.deliver(b"2")
    assert relay.published() == [b"1"]
    assert relay.owner.completions == 0
    relay.confirm(1)
    assert relay.owner.completions == 1
    assert relay.settled() == [(ACK, 1, True)]


def test_a_limited_rate_publishes_when_its_time_has_come() -> None:
    relay = Relay()
    relay.forwarder.rate_limiter = RateLimiter(2, relay.clock.now / 1000)
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1"]
    assert relay.forwarder.hold()[0] is Hold.RATE
    for body in (b"2", b"3"):
        ((pause_ms, wake),) = relay.owner.timers
        assert 490 <= pause_ms <= 510
        relay.owner.timers.clear()
        relay.clock.now += pause_ms
        wake()
        assert relay.published() == [body]
    assert not relay.source.client.is_reading_paused


def test_no_more_than_the_limit_is_unconfirmed_without_a_prefetch() -> None:
    relay = Relay()
    relay.forwarder._unconfirmed_max = 2
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2"]
    assert relay.forwarder.hold()[0] is Hold.UNCONFIRMED
    relay.confirm(1)
    assert relay.published() == [b"3"]
    assert LINK_UNCONFIRMED_MAX >= 65_535


def test_the_ends_of_both_sides_are_told() -> None:
    relay = Relay()
    relay.source.write(call(methods.BasicCancel(consumer_tag="c", no_wait=True)))
    assert [error.text for error in relay.owner.source_errors] == [
        "the source has cancelled the consumer 'c'"
    ]
    relay.destination.write(call(methods.ChannelClose(404, "NOT_FOUND - no exchange 'x'", 60, 40)))
    assert [(error.code, error.text) for error in relay.owner.destination_errors] == [
        (404, "404 NOT_FOUND - no exchange 'x'")
    ]
    relay.source.client.lost()
    assert len(relay.owner.source_errors) == 3


def test_an_unconfirmed_publish_says_since_when() -> None:
    relay = Relay()
    assert relay.forwarder.unconfirmed_since == 0
    relay.clock.now = 5_000
    relay.deliver(b"1", b"2")
    relay.clock.now = 6_000
    assert relay.forwarder.unconfirmed_since == 5_000
    relay.confirm(1)
    assert relay.forwarder.unconfirmed_since == 6_000
    relay.confirm(2)
    assert relay.forwarder.unconfirmed_since == 0


# --- any order of events ------------------------------------------------------------------------


class Source:
    """The queue of the source: what is ready, what is outstanding, and what was acknowledged."""

    def __init__(self, count: int, prefetch: int, is_no_ack: bool) -> None:
        self.ready = list(range(count))
        self.outstanding: dict[int, int] = {}
        self.acked: list[int] = []
        self.redelivered: set[int] = set()
        self.prefetch = prefetch
        self.is_no_ack = is_no_ack

    def deliver(self, relay: Relay, most: int) -> None:
        data = []
        while most and self.ready and (not self.prefetch or len(self.outstanding) < self.prefetch):
            most -= 1
            number = self.ready.pop(0)
            relay.tag += 1
            if not self.is_no_ack:
                self.outstanding[relay.tag] = number
            data.append(delivery(relay.tag, b"%d" % number, is_redelivered=number in self.redelivered))
        if data:
            relay.source.write(*data)

    def settle(self, relay: Relay) -> None:
        """Process what the forwarder has settled; as RabbitMQ, refuse tags that are not outstanding."""
        for name, tag, is_multiple in relay.settled():
            assert tag in self.outstanding, f"{name} of the unknown delivery tag {tag}"
            tags = [one for one in self.outstanding if one <= tag] if is_multiple else [tag]
            for one in tags:
                number = self.outstanding.pop(one)
                if name == ACK:
                    self.acked.append(number)
                else:
                    self.requeue([number])

    def requeue(self, numbers: list[int]) -> None:
        self.redelivered.update(numbers)
        self.ready = sorted(self.ready + numbers)

    def lost(self) -> None:
        """The connection of the consumer has ended."""
        self.requeue(list(self.outstanding.values()))
        self.outstanding.clear()


class Destination:
    """What was published, and is confirmed or not."""

    def __init__(self) -> None:
        self.received: list[int] = []
        # Sequences of this connection that are not settled, and their messages.
        self.unsettled: dict[int, int] = {}
        self.sequence = 0
        self.stored: list[int] = []
        self.refused = False

    def receive(self, relay: Relay) -> None:
        for body in relay.published():
            self.sequence += 1
            self.unsettled[self.sequence] = int(body)
            self.received.append(int(body))

    def settle(self, relay: Relay, at: int, *, is_multiple: bool, is_acked: bool) -> None:
        if not self.unsettled:
            return
        sequence = sorted(self.unsettled)[at % len(self.unsettled)]
        for one in [one for one in self.unsettled if one == sequence or (is_multiple and one < sequence)]:
            number = self.unsettled.pop(one)
            if is_acked:
                self.stored.append(number)
            else:
                self.refused = True
        (relay.confirm if is_acked else relay.refuse)(sequence, multiple=is_multiple)


# The messages of the source.
COUNT = 40
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.integers(1, 20)),
        st.tuples(st.sampled_from(("ack", "ack many", "nack", "nack many")), st.integers(0, 20)),
        st.tuples(st.sampled_from(("block", "unblock", "full", "room", "timer", "crash")), st.just(0)),
    ),
    max_size=40,
)


class Circumstances(Struct, frozen=True):
    """What does not change during a test."""

    mode: AckMode
    prefetch: int
    # Messages whose number leaves 1 when divided by it are dropped; 0 drops none.
    dropped: int
    rate: float | None
    remaining: int


class ForwardingModel:
    """A forwarder between a source and a destination whose state the test knows."""

    count = 40

    def __init__(self, circumstances: Circumstances) -> None:
        self.given = circumstances
        self.is_on_confirm = circumstances.mode is AckMode.ON_CONFIRM
        self.source = Source(self.count, circumstances.prefetch, circumstances.mode is AckMode.NO_ACK)
        self.destination = Destination()
        self.has_crashed = False
        self.relay = self.connect()

    def connect(self) -> Relay:
        relay = Relay(self.given.mode, remaining=self.given.remaining)
        relay.owner.is_wanted = lambda message: not self.is_dropped(int(message.body))
        if self.given.rate is not None:
            relay.forwarder.rate_limiter = RateLimiter(self.given.rate, relay.clock.now / 1000)
        self.destination.unsettled.clear()
        self.destination.sequence = 0
        return relay

    def is_dropped(self, number: int) -> bool:
        return bool(self.given.dropped) and number % self.given.dropped == 1

    def step(self, kind: str, number: int) -> None:
        relay = self.relay
        if kind == "deliver" and not relay.source.client.is_reading_paused:
            self.source.deliver(relay, number)
        elif kind in ("ack", "ack many", "nack", "nack many") and self.is_on_confirm:
            self.destination.settle(
                relay, number, is_multiple=kind.endswith("many"), is_acked=kind.startswith("ack")
            )
        elif kind == "block":
            relay.destination.write(call(methods.ConnectionBlocked(reason="alarm"), 0))
        elif kind == "unblock":
            relay.destination.write(call(methods.ConnectionUnblocked(), 0))
        elif kind == "full":
            relay.destination.client.pause_output()
        elif kind == "room":
            relay.destination.client.resume_output()
        elif kind == "timer":
            timers, relay.owner.timers = relay.owner.timers, []
            for pause_ms, action in timers:
                relay.clock.now += pause_ms
                action()
        # A limited number is counted anew by each run.
        elif kind == "crash" and self.given.remaining < 0:
            self.has_crashed = True
            self.source.settle(relay)
            self.source.lost()
            self.relay = self.connect()
        self.destination.receive(self.relay)
        self.source.settle(self.relay)
        self.check()

    def check(self) -> None:
        source, destination = self.source, self.destination
        if self.is_on_confirm:
            early = {one for one in source.acked if not self.is_dropped(one)} - set(destination.stored)
            assert not early, f"{early} were acknowledged and are not confirmed"
        if not source.is_no_ack:
            held = {*source.ready, *source.outstanding.values(), *source.acked}
            assert held == set(range(self.count))
        if not destination.refused and not self.has_crashed:
            assert destination.received == sorted(set(destination.received))
        assert self.relay.forwarder.waiting_count <= 20

    def finish(self) -> None:
        """Let everything be forwarded."""
        for _ in range(400):
            for kind, number in (
                ("unblock", 0),
                ("room", 0),
                ("timer", 0),
                ("deliver", 20),
                ("ack many", -1),
            ):
                self.step(kind, number)
            is_empty = not self.source.ready and not self.source.outstanding
            if self.relay.owner.completions or (is_empty and not self.relay.forwarder.waiting_count):
                return

    def check_end(self) -> None:
        """Check that all messages, or as many as were asked for, have been forwarded."""
        source, destination = self.source, self.destination
        done = destination.stored if self.is_on_confirm else destination.received
        if self.given.remaining >= 0:
            assert self.relay.owner.completions
            assert len(done) + self.relay.forwarder.dropped_count == self.given.remaining
            assert source.is_no_ack or len(source.acked) == self.given.remaining
            return
        assert not source.ready
        assert not source.outstanding
        if self.is_on_confirm or not self.has_crashed:
            assert set(done) == {number for number in range(self.count) if not self.is_dropped(number)}


class Run:
    """One run of random steps between a source with `COUNT` messages and a destination."""

    def __init__(
        self, mode: AckMode, *, prefetch: int, dropped: int, rate: float | None, remaining: int
    ) -> None:
        self.mode, self.dropped, self.rate, self.remaining = mode, dropped, rate, remaining
        self.source, self.destination = Source(COUNT, prefetch, mode is AckMode.NO_ACK), Destination()
        self.has_crashed = False
        self.relay = self.connect()

    def connect(self) -> Relay:
        relay = Relay(self.mode, remaining=self.remaining)
        relay.owner.is_wanted = lambda message: not self.is_dropped(int(message.body))
        if self.rate is not None:
            relay.forwarder.rate_limiter = RateLimiter(self.rate, relay.clock.now / 1000)
        self.destination.unsettled.clear()
        self.destination.sequence = 0
        return relay

    def is_dropped(self, number: int) -> bool:
        return bool(self.dropped) and number % self.dropped == 1

    def step(self, kind: str, number: int) -> None:
        """Perform one step, exchange what it caused, and check the invariants."""
        relay = self.relay
        if kind == "deliver" and not relay.source.client.is_reading_paused:
            self.source.deliver(relay, number)
        elif kind in ("ack", "ack many", "nack", "nack many") and self.mode is AckMode.ON_CONFIRM:
            self.destination.settle(
                relay, number, is_multiple=kind.endswith("many"), is_acked=kind.startswith("ack")
            )
        elif kind == "block":
            relay.destination.write(call(methods.ConnectionBlocked(reason="alarm"), 0))
        elif kind == "unblock":
            relay.destination.write(call(methods.ConnectionUnblocked(), 0))
        elif kind == "full":
            relay.destination.client.pause_output()
        elif kind == "room":
            relay.destination.client.resume_output()
        elif kind == "timer":
            self.run_timers()
        elif kind == "crash" and self.remaining < 0:
            self.crash()
        self.destination.receive(self.relay)
        self.source.settle(self.relay)
        self.check()

    def run_timers(self) -> None:
        timers, self.relay.owner.timers = self.relay.owner.timers, []
        for pause_ms, action in timers:
            self.relay.clock.now += pause_ms
            action()

    def crash(self) -> None:
        self.has_crashed = True
        self.source.settle(self.relay)
        self.source.lost()
        self.relay = self.connect()

    def check(self) -> None:
        source, destination = self.source, self.destination
        if self.mode is AckMode.ON_CONFIRM:
            confirmed = destination.stored
            early = [one for one in source.acked if not self.is_dropped(one) and one not in confirmed]
            assert not early, f"{early} were acknowledged and are not confirmed"
        if self.mode is not AckMode.NO_ACK:
            held = set(source.ready) | set(source.outstanding.values()) | set(source.acked)
            assert held == set(range(COUNT))
        if not destination.refused and not self.has_crashed:
            assert destination.received == sorted(set(destination.received))
        assert self.relay.forwarder.waiting_count <= 20

    def finish(self) -> None:
        """Let everything that waits go on, until nothing is left or the requested number is forwarded."""
        for _ in range(400):
            for kind in ("unblock", "room", "timer", "deliver", "ack many"):
                self.step(kind, 20 if kind == "deliver" else -1)
            is_empty = not self.source.ready and not self.source.outstanding
            if self.relay.owner.completions or (is_empty and not self.relay.forwarder.waiting_count):
                return


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    prefetch=st.sampled_from((0, 1, 7)),
    mode=st.sampled_from(AckMode),
    dropped=st.sampled_from((0, 2, 3)),
    rate=st.sampled_from((None, 5)),
)
def test_nothing_is_lost_or_acknowledged_early_under_any_order_of_events(
    steps: list[tuple[str, int]], *, prefetch: int, mode: AckMode, dropped: int, rate: float | None
) -> None:
    run = Run(mode, prefetch=prefetch, dropped=dropped, rate=rate, remaining=-1)
    for kind, number in steps:
        run.step(kind, number)
    run.finish()
    assert not run.source.ready
    assert not run.source.outstanding
    expected = {number for number in range(COUNT) if not run.is_dropped(number)}
    if mode is AckMode.ON_CONFIRM:
        assert set(run.destination.stored) == expected
    elif not run.has_crashed:
        assert set(run.destination.received) == expected


@settings(max_examples=150, deadline=None)
@given(
    steps=STEPS,
    prefetch=st.sampled_from((0, 1, 7)),
    mode=st.sampled_from(AckMode),
    dropped=st.sampled_from((0, 2, 3)),
    rate=st.sampled_from((None, 5)),
)
def test_the_requested_number_is_forwarded_and_settled_under_any_order_of_events(
    steps: list[tuple[str, int]], *, prefetch: int, mode: AckMode, dropped: int, rate: float | None
) -> None:
    run = Run(mode, prefetch=prefetch, dropped=dropped, rate=rate, remaining=10)
    for kind, number in steps:
        run.step(kind, number)
    run.finish()
    done = run.destination.stored if mode is AckMode.ON_CONFIRM else run.destination.received
    assert run.relay.owner.completions
    assert len(done) + run.relay.forwarder.dropped_count == 10
    assert mode is AckMode.NO_ACK or len(run.source.acked) == 10
