"""A forwarder under any order of deliveries, confirms, refusals, alarms, pauses and crashes."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.unit.relay.written_broker import ACK, WrittenRelay, delivery
from tests.unit.session.client import call

from warren.flow.rate_limiter import RateLimiter
from warren.relay.forwarder import (
    AckMode,
)
from warren.wire import methods


class Source:
    """The queue of the source: what is ready, what is outstanding, and what was acknowledged."""

    def __init__(self, count: int, prefetch: int, is_no_ack: bool) -> None:
        self.ready = list(range(count))
        self.outstanding: dict[int, int] = {}
        self.acked: list[int] = []
        self.redelivered: set[int] = set()
        self.prefetch = prefetch
        self.is_no_ack = is_no_ack

    def deliver(self, relay: WrittenRelay, most: int) -> None:
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

    def settle(self, relay: WrittenRelay) -> None:
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

    def receive(self, relay: WrittenRelay) -> None:
        for body in relay.published():
            self.sequence += 1
            self.unsettled[self.sequence] = int(body)
            self.received.append(int(body))

    def settle(self, relay: WrittenRelay, at: int, *, is_multiple: bool, is_acked: bool) -> None:
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

    def connect(self) -> WrittenRelay:
        relay = WrittenRelay(self.given.mode, remaining=self.given.remaining)
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
            forwarder = self.relay.forwarder
            refused = forwarder.rejected_count
            assert len(done) + forwarder.dropped_count + refused == self.given.remaining
            assert source.is_no_ack or len(source.acked) == self.given.remaining - refused
            return
        assert not source.ready
        assert not source.outstanding
        if self.is_on_confirm or not self.has_crashed:
            assert set(done) == {number for number in range(self.count) if not self.is_dropped(number)}


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    circumstances=st.builds(
        Circumstances,
        mode=st.sampled_from(AckMode),
        prefetch=st.sampled_from((0, 1, 7)),
        dropped=st.sampled_from((0, 2, 3)),
        rate=st.sampled_from((None, 5)),
        remaining=st.sampled_from((-1, -1, 10)),
    ),
)
def test_nothing_is_lost_or_acknowledged_early_under_any_order_of_events(
    steps: list[tuple[str, int]], circumstances: Circumstances
) -> None:
    model = ForwardingModel(circumstances)
    for kind, number in steps:
        model.step(kind, number)
    model.finish()
    model.check_end()
