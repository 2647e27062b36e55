"""A property test: a classic queue behaves as one sorted list, and loses or duplicates no message."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.queues.samples import Host, Reader, made, sent

from warren.queues.queue import Delivery


class QueueMachine(RuleBasedStateMachine):
    """A queue with consumers that acknowledge in any order, beside a model of it."""

    @initialize(length_max=st.none() | st.integers(0, 5), ttl=st.none() | st.integers(1, 20))
    def start(self, length_max: int | None, ttl: int | None) -> None:
        self.host = Host()
        self.length_max = length_max
        self.ttl = ttl
        self.queue = made(self.host, dead=True, length_max=length_max, message_ttl_ms=ttl)
        self.readers: list[Reader] = []
        self.got: list[Delivery] = []
        self.taken: list[Delivery] = []
        # The publishing time of each message by number, and its present state.
        self.published: list[int] = []
        self.settled: set[int] = set()

    def unsettled(self) -> list[int]:
        held = self.got + self.taken + [one for reader in self.readers for one in reader.unsettled]
        return [int(one.message.body) for one in held]

    def dead(self) -> list[int]:
        return [int(body) for body, _ in self.host.dead]

    def ready(self) -> list[int]:
        gone = {*self.unsettled(), *self.settled, *self.dead()}
        return [number for number in range(len(self.published)) if number not in gone]

    @rule()
    def publish(self) -> None:
        self.published.append(self.host.now)
        self.queue.publish(sent(f"{len(self.published) - 1}", now=self.host.now), None, 0)

    @rule(prefetch=st.integers(1, 3), priority=st.integers(0, 1))
    def consume(self, prefetch: int, priority: int) -> None:
        if len(self.readers) < 4:
            self.readers.append(Reader(prefetch=prefetch, priority=priority))
            self.queue.add_consumer(self.readers[-1])

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 9))
    def cancel(self, which: int) -> None:
        reader = self.readers.pop(which % len(self.readers))
        self.queue.remove_consumer(reader)
        self.got += reader.unsettled

    @rule()
    def get(self) -> None:
        self.release()
        waiting = self.ready()
        delivery = self.queue.get()
        assert (delivery is None) == (not waiting or self.queue.is_paused)
        if delivery is not None:
            assert int(delivery.message.body) == waiting[0]
            self.got.append(delivery)

    @precondition(lambda self: self.queue.message_count)
    @rule(which=st.integers(0, 99))
    def take(self, which: int) -> None:
        self.release()
        waiting = self.ready()
        peeked = self.queue.peek(0, len(waiting) + 1)
        assert [int(one.message.body) for one in peeked] == waiting
        if waiting:
            self.taken.append(self.queue.take(peeked[which % len(peeked)]))
            assert int(self.taken[-1].message.body) == waiting[which % len(peeked)]

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 99), is_dirty=st.booleans())
    def end_taking(self, which: int, is_dirty: bool) -> None:
        delivery = self.taken.pop(which % len(self.taken))
        if is_dirty:
            self.settled.add(int(delivery.message.body))
            self.queue.release(delivery)
        else:
            self.queue.give_back(delivery)
            self.queue.pump()

    @precondition(lambda self: self.got or any(reader.unsettled for reader in self.readers))
    @rule(which=st.integers(0, 99), how=st.sampled_from(["acknowledge", "requeue", "reject"]))
    def settle(self, which: int, how: str) -> None:
        owners = [(None, one) for one in self.got]
        owners += [(reader, one) for reader in self.readers for one in reader.unsettled]
        reader, delivery = owners[which % len(owners)]
        (self.got if reader is None else reader.unsettled).remove(delivery)
        if how == "acknowledge":
            self.settled.add(int(delivery.message.body))
        getattr(self.queue, how)(delivery)
        self.queue.pump()
        if reader is not None:
            self.queue.consumer_ready(reader)

    @rule(passes=st.integers(0, 15))
    def let_time_pass(self, passes: int) -> None:
        self.host.now += passes
        self.release()

    @rule(is_paused=st.booleans())
    def pause_or_resume(self, is_paused: bool) -> None:
        handed_out = len(self.unsettled())
        if is_paused:
            self.queue.pause()
            assert len(self.unsettled()) == handed_out
        else:
            self.queue.resume()
        self.release()

    @rule()
    def purge(self) -> None:
        waiting = self.ready()
        assert self.queue.clear() == len(waiting)
        self.settled.update(waiting)

    def release(self) -> None:
        """Wake the queue if it asked for it."""
        if self.host.wakes and self.host.wakes[-1] <= self.host.now:
            self.queue.expire()

    @invariant()
    def counts_are_right(self) -> None:
        if not hasattr(self, "queue"):
            return
        waiting, held = self.ready(), self.unsettled()
        assert self.queue.message_count == len(waiting)
        assert self.queue.unacked_count == len(held)
        assert self.queue.ready_bytes == sum(len(f"{number}") for number in waiting)
        assert self.queue.unacked_bytes == sum(len(f"{number}") for number in held)
        assert len(set(held)) == len(held)
        assert not set(held) & {*self.settled, *self.dead()}
        assert self.length_max is None or len(waiting) <= self.length_max

    @invariant()
    def no_consumer_is_ready_while_a_message_is_ready(self) -> None:
        if hasattr(self, "queue") and self.queue.message_count and not self.queue.is_paused:
            assert not any(reader.is_ready() for reader in self.readers)

    @invariant()
    def nothing_waits_beyond_its_time(self) -> None:
        if hasattr(self, "queue") and self.ttl is not None:
            assert all(self.published[one] + self.ttl > self.host.now for one in self.ready())


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
