"""A replica receives a snapshot with its messages, and installs it."""

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_group_log import FIRST, GROUP, Told, append, begun, bodies, opened, write
from tests.unit.store.test_recovery import published
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read

from warren.model.message import StoredMessage
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, GroupSnapshot, PositionRun
from warren.store.message_store import MessageStore

SNAPSHOT = GroupSnapshot(index=9, term=1, configuration=b"members", machine=b"machine")
Held = list[tuple[int, int, StoredMessage | int]]


def behind() -> tuple[SimulatedDisk, MessageStore, GroupLog, Held]:
    """A group with an entry of two messages, all of it synced."""
    there, store, log = begun()
    messages = append(log, b"old 0", b"old 1")
    write(store, there)
    return there, store, log, [(0, position, message) for position, message in enumerate(messages)]


def receive(log: GroupLog) -> None:
    """Messages at 3 and 1, of 5 positions."""
    log.receive(published(b"new 3"), 0, 3)
    log.receive(published(b"new 1"), 0, 1)


def test_a_snapshot_replaces_entries_and_messages() -> None:
    there, store, log, held = behind()
    log.listener = told = Told()
    receive(log)
    log.install(SNAPSHOT, {0: 5}, held)
    assert told.calls == []
    write(store, there)
    assert told.calls[-1] == log.ticket
    # The space of the old messages is free.
    assert store.segments[1].live == 2
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert (found.snapshot, found.first, found.last, found.untrusted) == (SNAPSHOT, 10, 9, "")
    assert (found.end(0), found.stored(0, 1), found.logical(0, 5)) == (5, 3, 3)
    assert bodies(recovered) == [b"new 1", b"new 3"]
    entry = GroupEntry(index=10, term=1, runs=(PositionRun(0, 5, 1),))
    found.append(entry, [published(b"next")])
    write(recovered.store, there)
    assert bodies(opened(there)) == [b"new 1", b"new 3", b"next"]


def test_what_was_received_is_void_after_a_crash_before_the_snapshot_is_installed() -> None:
    there, store, log, _ = behind()
    receive(log)
    write(store, there)
    there.die()
    recovered = opened(there)
    assert bodies(recovered) == [b"old 0", b"old 1"]
    assert recovered.groups[GROUP].last == 1


def test_what_was_received_is_void_if_it_is_given_up() -> None:
    there, store, log, _ = behind()
    receive(log)
    with pytest.raises(ValueError, match="do not continue"):
        append(log, b"another")
    log.discard_received()
    append(log, b"old 2")
    # Positions 3 and 5 in the store were used.
    assert log.stored(0, 2) == 6
    write(store, there)
    recovered = opened(there)
    assert bodies(recovered) == [b"old 0", b"old 1", b"old 2"]
    assert recovered.groups[GROUP].untrusted == ""


def test_an_untrusted_replica_is_trusted_with_a_snapshot_though_the_file_stays_damaged() -> None:
    there, _, _, _ = behind()
    there.flip_bit(FIRST, there.files[FIRST].current.index(b"old 0"))
    recovered = opened(there)
    log, found = recovered.groups[GROUP], recovered.queues[GROUP][0]
    assert log.untrusted
    log.extend({0: found.end})
    receive(log)
    pairs = zip(found.positions.numbers(), found.locations.numbers(), strict=True)
    log.install(SNAPSHOT, {0: 5}, [(0, position, location) for position, location in pairs])
    write(recovered.store, there)
    again = opened(there)
    assert again.damage
    assert again.groups[GROUP].untrusted == ""
    assert bodies(again) == [b"new 1", b"new 3"]


def test_a_snapshot_must_be_ahead_and_have_room_for_its_messages() -> None:
    _, _, log, held = behind()
    receive(log)
    with pytest.raises(ValueError, match="a message of level 0 is behind snapshot 9"):
        log.install(SNAPSHOT, {0: 3}, held)
    log.install(SNAPSHOT, {0: 5}, held)
    with pytest.raises(ValueError, match="snapshot 9 where 9 is committed"):
        log.install(SNAPSHOT, {0: 5}, [])
