"""Messages that are placed in the log of a group before the entry that has them, as a batch is made."""

import random
from collections.abc import Callable

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.unit.store.test_group_log import GROUP, REPLICA, append, begun, bodies, kinds, opened, write
from tests.unit.store.test_recovery import Port, published

from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, PositionRun
from warren.store.message_store import MessageStore
from warren.store.record import CUT, ENTRY, HARD, MESSAGE, STATE
from warren.store.recovery import RecoveryDependencies, open_store

CLASSIC = 2


class Listener(GroupListener):
    """A listener that does as a test says before a batch is made."""

    def __init__(self, log: GroupLog, prepare: Callable[[], object] = lambda: None) -> None:
        self.prepared = 0
        self.told: list[int] = []
        self.action = prepare
        log.listener = self

    def prepare(self) -> None:
        self.prepared += 1
        self.action()

    def shorten(self) -> None:
        """All entries are kept."""

    def written(self, ticket: int) -> None:
        self.told.append(ticket)


def propose(log: GroupLog, *runs: PositionRun) -> None:
    log.append(GroupEntry(index=log.last + 1, term=log.hard.term, runs=runs))


def propose_all(log: GroupLog) -> Callable[[], None]:
    """Propose what was placed in level 0."""
    return lambda: propose(log, PositionRun(0, log.end(0), log.placed_count))


def test_what_was_placed_is_proposed_in_the_batch_that_has_it() -> None:
    there, store, log = begun()
    listener = Listener(log, propose_all(log))
    before = store.segments[1].size
    assert [log.place(published(body), 0) for body in (b"a", b"b")] == [0, 1]
    assert (log.placed_count, log.end(0), listener.prepared) == (2, 0, 0)
    store.commit()
    there.advance()
    assert (log.placed_count, log.end(0), listener.prepared) == (0, 2, 1)
    assert listener.told == [log.ticket], "it was synced by the same batch"
    assert [kind for kind in kinds(there, store, before) if kind in (MESSAGE, ENTRY)] == [
        MESSAGE, MESSAGE, ENTRY,
    ]  # fmt: skip
    recovered = opened(there)
    assert bodies(recovered) == [b"a", b"b"]
    assert [message.body for message in recovered.groups[GROUP].messages(1) if message] == [b"a", b"b"]


@pytest.mark.parametrize("is_group_first", [True, False])
def test_a_message_of_a_classic_queue_and_a_group_is_one_record(*, is_group_first: bool) -> None:
    there, store, log = begun()
    Listener(log, propose_all(log))
    before = store.segments[1].size
    message = published(b"shared")
    if is_group_first:
        log.place(message, 0)
    store.append(message, store.cursor(CLASSIC, 0), 0)
    if not is_group_first:
        log.place(message, 0)
    write(store, there)
    assert kinds(there, store, before).count(MESSAGE) == 1
    recovered = opened(there)
    assert bodies(recovered) == [b"shared"]
    assert [found.body for _, found in messages_in(recovered, CLASSIC)] == [b"shared"]


def test_entries_take_what_was_placed_first_in_order_and_at_every_level() -> None:
    there, store, log = begun()
    for body, level in ((b"a", 0), (b"b", 4), (b"c", 0), (b"d", 0)):
        log.place(published(body), level)
    propose(log, PositionRun(0, 0, 1), PositionRun(4, 0, 1), PositionRun(0, 1, 1))
    propose(log)
    assert log.placed_count == 1
    assert log.place(published(b"e"), 0) == 3
    propose(log, PositionRun(0, 2, 2))
    write(store, there)
    recovered = opened(there)
    assert (bodies(recovered), bodies(recovered, 4)) == ([b"a", b"c", b"d", b"e"], [b"b"])
    found = [message.body for message in recovered.groups[GROUP].messages(1) if message]
    assert found == [b"a", b"b", b"c"]


def test_an_entry_whose_runs_are_not_what_was_placed_is_refused() -> None:
    _, _, log = begun()
    log.place(published(b"a"), 0)
    log.place(published(b"b"), 4)
    for runs in (
        (PositionRun(4, 0, 1), PositionRun(0, 0, 1)), (PositionRun(0, 0, 2),), (PositionRun(0, 1, 1),),
        (PositionRun(0, 0, 1), PositionRun(4, 0, 2)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="positions"):
            propose(log, *runs)
    with pytest.raises(ValueError, match="positions"):
        append(log, b"of another replica")
    propose(log, PositionRun(0, 0, 1), PositionRun(4, 0, 1))


def test_an_entry_of_one_run_has_the_level_of_what_was_placed_and_no_more_than_that() -> None:
    _, _, log = begun()
    log.place(published(b"a"), 0)
    log.place(published(b"b"), 0)
    for run in (PositionRun(4, 0, 1), PositionRun(0, 0, 3)):
        with pytest.raises(ValueError, match="positions"):
            propose(log, run)
    propose(log, PositionRun(0, 0, 1))
    assert (log.place(published(b"c"), 0), log.last_stored) == (2, 2)
    propose(log, PositionRun(0, 1, 2))
    assert (log.placed_count, log.end(0)) == (0, 3)


def test_placed_messages_that_no_entry_takes_are_void() -> None:
    there, store, log = begun()
    append(log, b"a")
    cursor = store.cursor(GROUP, 0)
    void = published(b"void")
    log.place(void, 0)
    log.place(published(b"void"), 4)
    write(store, there)
    log.unplace()
    assert (log.placed_count, void.references) == (0, 1)
    write(store, there)
    assert void.references == 0, "it was released when the CUT was synced"
    assert cursor.has(1)
    assert log.place(published(b"b"), 0) == 1
    propose(log, PositionRun(0, 1, 1))
    assert (log.stored(0, 1), log.logical(0, 2), log.logical(0, 0)) == (2, 1, 0)
    write(store, there)
    recovered = opened(there)
    assert bodies(recovered) == [b"a", b"b"]
    assert bodies(recovered, 4) == []
    assert recovered.groups[GROUP].untrusted == ""
    assert recovered.groups[GROUP].logical(0, 2) == 1


def test_placed_messages_are_void_when_that_is_synced_and_not_with_a_change_before_it() -> None:
    there, store, log = begun()
    append(log, b"a")
    store.commit()
    void = published(b"void")
    log.place(void, 0)
    log.unplace()
    there.advance()
    assert void.references == 1
    write(store, there)
    assert void.references == 0


def test_nothing_is_written_if_there_is_nothing_to_make_void() -> None:
    _, store, log = begun()
    ticket = log.ticket
    log.unplace()
    assert (log.ticket, store.is_idle) == (ticket, True)


def test_a_cut_makes_what_was_placed_void() -> None:
    there, store, log = begun()
    append(log, b"a")
    log.place(published(b"void"), 0)
    log.cut(1)
    assert log.placed_count == 0
    assert log.place(published(b"b"), 0) == 0
    propose(log, PositionRun(0, 0, 1))
    assert log.stored(0, 0) == 2
    write(store, there)
    assert bodies(opened(there)) == [b"b"]


def test_messages_that_wait_for_an_entry_when_power_fails_are_released() -> None:
    there, store, log = begun()
    log.place(published(b"lost"), 0)
    write(store, there)
    there.lose_power()
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert (found.untrusted, found.placed_count, found.end(0), bodies(recovered)) == ("", 0, 0, [])
    assert found.place(published(b"b"), 0) == 0
    assert found.stored(0, 0) == 1


def test_the_port_is_not_called_while_a_store_with_messages_of_no_entry_is_opened() -> None:
    there, store, log = begun()
    log.place(published(b"lost"), 0)
    write(store, there)
    there.lose_power()

    class OpeningPort(Port):
        def commit_due(self) -> None:
            raise AssertionError("a store is opened in a thread")

    recovered = open_store(
        there,
        OpeningPort(),
        RecoveryDependencies(
            random_bytes=random.Random(1).randbytes, has_queue=lambda _: True, progress=lambda *_: None
        ),
    )
    assert recovered.store.has_pending(), "it is written with the first batch"
    [cursor] = [each for (queue, _), each in recovered.store.cursors.items() if queue == GROUP]
    assert cursor.has(0)


def test_only_groups_that_have_asked_are_called_before_a_batch() -> None:
    there, store, log = begun()
    other = GroupLog.create(store, CLASSIC, REPLICA, b"members")
    write(store, there)
    listener, its_listener = Listener(log), Listener(other)
    append(log, b"a")
    write(store, there)
    assert (listener.prepared, its_listener.prepared) == (0, 0)
    log.announce()
    log.announce()
    assert not store.is_idle
    write(store, there)
    assert (listener.prepared, its_listener.prepared) == (1, 0)


def test_what_no_client_waits_for_is_prepared_with_the_next_batch() -> None:
    class DelayingPort(Port):
        def commit_due_later(self) -> None:
            self.reported.append("later")

    there, port = SimulatedDisk(random.Random(0)), DelayingPort()
    store = store_of(there, port)
    log = GroupLog.create(store, GROUP, REPLICA, b"members")
    write(store, there)
    listener = Listener(log)
    port.reported.clear()
    log.announce_later()
    assert port.reported == ["later"]
    log.announce()
    assert port.reported == ["later", "dirty"]
    store.commit()
    assert listener.prepared == 1


def test_what_is_asked_for_while_a_batch_is_prepared_is_prepared_with_the_next_one() -> None:
    there = SimulatedDisk(random.Random(0))
    port = Port()
    store = store_of(there, port)
    log = GroupLog.create(store, GROUP, REPLICA, b"members")
    log.promise(1, REPLICA)
    write(store, there)
    port.reported.clear()

    def propose_and_ask() -> None:
        if listener.prepared == 1:
            propose(log)
            log.announce()

    listener = Listener(log, propose_and_ask)
    log.announce()
    store.commit()
    assert listener.prepared == 1
    assert port.reported == ["dirty"], "what is prepared needs no batch of its own"
    there.advance()
    assert listener.told == [log.ticket], "it does not wait for what was asked for"
    assert port.reported == ["dirty", "dirty"]
    store.commit()
    assert listener.prepared == 2


def test_closing_prepares_what_is_left() -> None:
    there, store, log = begun()
    Listener(log, propose_all(log))
    log.place(published(b"a"), 0)
    closed: list[bool] = []
    store.close(lambda: closed.append(True))
    there.advance()
    assert closed == [True]
    assert bodies(opened(there)) == [b"a"]


def test_a_dropped_group_is_not_called_any_more() -> None:
    there, store, log = begun()
    listener = Listener(log)
    before = store.segments[1].size
    log.place(published(b"a"), 0)
    log.drop()
    write(store, there)
    assert listener.prepared == 0
    assert {HARD, ENTRY, CUT, STATE}.isdisjoint(kinds(there, store, before))


def test_a_new_log_begins_before_its_messages_and_ends_behind_them() -> None:
    there = SimulatedDisk(random.Random(0))
    store = store_of(there, Port())
    log = GroupLog.create(store, GROUP, REPLICA, b"members")
    log.promise(1, REPLICA)
    log.place(published(b"a"), 0)
    propose(log, PositionRun(0, 0, 1))
    write(store, there)
    found = [kind for kind in kinds(there, store) if kind in (MESSAGE, HARD, ENTRY, STATE)]
    assert found == [STATE, MESSAGE, HARD, ENTRY]
    recovered = opened(there)
    assert (bodies(recovered), recovered.groups[GROUP].hard.term) == ([b"a"], 1)


def store_of(there: SimulatedDisk, port: Port) -> MessageStore:
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes, has_queue=lambda _: True, progress=lambda *_: None,
        replicas={},
    )  # fmt: skip
    return open_store(there, port, dependencies).store
