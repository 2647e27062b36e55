"""The demand of a queue: what it is, and that every change of it is reported, once in a turn."""

from collections.abc import Callable

import pytest
from tests.unit.queues.samples import Host, Reader, made, sent

from warren.queues.classic import ClassicQueue
from warren.queues.demand import QueueDemand


class Watched:
    """A queue whose demand is observed, and the turns of its event loop."""

    def __init__(self, **settings: object) -> None:
        self.host = Host()
        self.queue: ClassicQueue = made(self.host, **settings)
        self.actions: list[Callable[[int], None]] = []
        # For each report: whether the queue is hungry, and the number of its ready messages.
        self.reports: list[tuple[bool, int]] = []
        self.demand = QueueDemand(self.queue, self.actions.append, self.report)

    def report(self) -> None:
        self.reports.append((self.demand.is_hungry(), self.demand.ready_count))

    def turn(self) -> list[tuple[bool, int]]:
        """The reports of one turn."""
        actions, self.actions[:] = list(self.actions), []
        assert len(actions) <= 1
        for action in actions:
            action(self.host.now)
        reports, self.reports = self.reports, []
        return reports

    def consume(self, **settings: int) -> Reader:
        reader = Reader(**settings)
        self.queue.add_consumer(reader)
        return reader

    def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.queue.publish(sent("m"), None, 0)

    def acknowledge(self, reader: Reader) -> None:
        """As a channel does: settle, and then report that the consumer is ready if it was parked."""
        self.queue.acknowledge(reader.unsettled.pop())
        if reader.is_parked:
            self.queue.consumer_ready(reader)


def test_a_queue_without_consumers_is_not_hungry() -> None:
    watched = Watched()
    assert (watched.demand.is_hungry(), watched.demand.has_consumer()) == (False, False)


def test_a_new_consumer_makes_an_empty_queue_hungry() -> None:
    watched = Watched()
    watched.consume()
    assert watched.turn() == [(True, 0)]
    assert watched.demand.has_consumer()


def test_a_new_consumer_of_a_full_queue_leaves_it_hungry_if_it_takes_all() -> None:
    watched = Watched()
    watched.publish(3)
    assert watched.turn() == [(False, 3)]
    watched.consume(prefetch=4)
    assert watched.turn() == [(True, 0)]


def test_a_consumer_that_is_removed_ends_the_hunger() -> None:
    watched = Watched()
    reader = watched.consume()
    watched.turn()
    watched.queue.remove_consumer(reader)
    assert watched.turn() == [(False, 0)]
    assert not watched.demand.has_consumer()


def test_a_consumer_that_holds_all_it_may_is_not_hungry_until_it_acknowledges() -> None:
    watched = Watched()
    reader = watched.consume(prefetch=1)
    watched.turn()
    watched.publish()
    assert watched.turn() == [(False, 0)]
    assert watched.demand.has_consumer()
    watched.acknowledge(reader)
    assert watched.turn() == [(True, 0)]


def test_a_consumer_that_becomes_ready_without_an_acknowledgement_is_reported() -> None:
    watched = Watched()
    reader = watched.consume()
    reader.is_open = False
    watched.turn()
    assert not watched.demand.is_hungry()
    # As a channel does when its socket has room again, or after channel.flow.
    reader.is_open = True
    watched.queue.unpark(reader)
    watched.queue.pump()
    assert watched.turn() == [(True, 0)]


def test_the_backlog_is_reported_when_it_begins_grows_and_ends() -> None:
    watched = Watched()
    watched.publish()
    assert watched.turn() == [(False, 1)]
    watched.publish(2)
    assert watched.turn() == [(False, 3)]
    watched.queue.clear()
    assert watched.turn() == [(False, 0)]


def test_a_message_that_is_got_returned_or_expires_is_reported() -> None:
    watched = Watched(message_ttl_ms=1000)
    watched.publish()
    watched.turn()
    delivery = watched.queue.get()
    assert delivery is not None
    assert watched.turn() == [(False, 0)]
    watched.queue.requeue(delivery)
    assert watched.turn() == [(False, 1)]
    watched.host.now += 1001
    watched.queue.expire()
    assert watched.turn() == [(False, 0)]


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_thousand_messages_through_a_consumer_are_one_report_in_a_turn(no_ack: bool) -> None:
    watched = Watched()
    watched.consume(no_ack=no_ack)
    watched.turn()
    for _ in range(2):
        watched.publish(1000)
        assert watched.turn() == [(True, 0)]
    assert watched.turn() == []


def test_consumers_of_negative_priority_demand_nothing() -> None:
    watched = Watched()
    watched.consume(priority=-1)
    assert watched.turn() == [(False, 0)]
    assert not watched.demand.has_consumer()
    watched.consume(priority=0)
    assert watched.turn() == [(True, 0)]


def test_a_consumer_of_negative_priority_stays_ready_beside_a_busy_one() -> None:
    watched = Watched()
    low = watched.consume(priority=-1)
    busy = watched.consume(prefetch=1)
    watched.publish()
    assert watched.turn() == [(False, 0)]
    watched.publish()
    assert (len(busy.got), len(low.got)) == (1, 1)


def test_of_a_single_active_consumer_only_the_active_one_counts() -> None:
    watched = Watched(single_active_consumer=True)
    active = watched.consume(prefetch=1)
    watched.consume()
    watched.publish()
    assert watched.turn() == [(False, 0)]
    watched.acknowledge(active)
    assert watched.turn() == [(True, 0)]


def test_a_paused_queue_is_not_hungry() -> None:
    watched = Watched()
    watched.consume()
    watched.turn()
    watched.queue.pause()
    assert watched.turn() == [(False, 0)]
    watched.queue.resume()
    assert watched.turn() == [(True, 0)]


def test_a_parked_sole_consumer_gets_its_messages_after_it_was_observed() -> None:
    watched = Watched()
    reader = watched.consume(prefetch=1)
    for number in range(1, 5):
        watched.publish()
        watched.turn()
        assert len(reader.got) == number
        watched.acknowledge(reader)
        assert watched.turn() == [(True, 0)]


def test_the_statistics_still_reach_the_host() -> None:
    watched = Watched()
    watched.publish()
    watched.turn()
    assert watched.queue.has_changed
    assert watched.host.take_dirty() == [watched.queue]
    watched.queue.is_dirty = False
    assert not watched.queue.has_changed
    watched.publish()
    assert watched.host.take_dirty() == [watched.queue]


def test_after_its_close_nothing_is_reported() -> None:
    watched = Watched()
    watched.publish()
    watched.demand.close()
    assert watched.turn() == []
    watched.queue.is_dirty = False
    watched.publish()
    watched.consume()
    assert watched.turn() == []


def test_a_queue_that_nobody_observes_asks_for_no_turn() -> None:
    host = Host()
    queue = made(host)
    reader = Reader(prefetch=1)
    queue.add_consumer(reader)
    queue.publish(sent("m"), None, 0)
    assert queue.demand_listener is None
    assert queue.has_changed
