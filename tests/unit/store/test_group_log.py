"""The Raft log of one replica in the log of a virtual host."""

import random
import re
from collections.abc import Sequence

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small
from tests.unit.store.test_recovery import Port, published

from warren.limits_raft import GROUP_COMMANDS_SIZE_MAX, GROUP_TAIL_SIZE_MAX
from warren.model.message import StoredMessage
from warren.store.disk import DeleteFile, SyncDirectory
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, GroupHardState, GroupSnapshot, PositionRun
from warren.store.message_store import MessageStore
from warren.store.record import CUT, ENTRY, HARD, HEAD_SIZE, KIND_AT, MESSAGE, RELEASE, STATE, is_intact
from warren.store.recovery import RecoveredStore, RecoveryDependencies, StoreEnd, open_store
from warren.store.segment import HEAD_SIZE as SEGMENT_HEAD_SIZE
from warren.store.segment import StoreFileError
from warren.store.survey import survey_store

GROUP, REPLICA = 1, 7
FIRST = "00000001.segment"


class Told(GroupListener):
    """What a driver of the group is told."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def prepare(self) -> None:
        """Nothing is placed."""

    def shorten(self) -> None:
        """All entries are kept."""

    def written(self, ticket: int) -> None:
        self.calls.append(ticket)


def opened(
    there: SimulatedDisk,
    queues: tuple[int, ...] = (1, 2),
    replicas: dict[int, int] | None = None,
    missing: Sequence[StoreFileError] = (),
) -> RecoveredStore:
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes, has_queue=queues.__contains__, progress=lambda *_: None,
        replicas=replicas or {}, missing=[*missing],
    )  # fmt: skip
    return open_store(there, Port(), dependencies)


def begun() -> tuple[SimulatedDisk, MessageStore, GroupLog]:
    """A store with a new group in term 1, all of it synced."""
    there = SimulatedDisk(random.Random(0))
    store = opened(there).store
    log = GroupLog.create(store, GROUP, REPLICA, b"members")
    log.promise(1, 2)
    write(store, there)
    return there, store, log


def write(store: MessageStore, there: SimulatedDisk) -> None:
    while not store.is_idle:
        store.commit()
        there.advance()


def append(log: GroupLog, *bodies: bytes, commands: bytes = b"", level: int = 0) -> list[StoredMessage]:
    messages = [published(body) for body in bodies]
    runs = (PositionRun(level, log.end(level), len(bodies)),) if bodies else ()
    entry = GroupEntry(
        index=log.last + 1, term=log.hard.term, commit=log.hard.commit, runs=runs, commands=commands
    )
    log.append(entry, messages)
    return messages


def committed(log: GroupLog) -> None:
    """An empty entry that says that everything before it is committed."""
    log.append(GroupEntry(index=log.last + 1, term=log.hard.term, commit=log.last), [])


def kinds(there: SimulatedDisk, store: MessageStore, at: int = SEGMENT_HEAD_SIZE) -> list[int]:
    """The kinds of the records in the first segment."""
    data, seed = bytes(there.files[FIRST].current), store.segments[1].seed
    found = []
    while size := is_intact(data, at, seed):
        found.append(data[at + KIND_AT])
        at += size
    return found


def bodies(recovered: RecoveredStore, level: int = 0) -> list[bytes]:
    return [message.body for _, message in messages_in(recovered, GROUP, level)]


def test_a_log_is_recovered_as_it_was_written() -> None:
    there, store, log = begun()
    append(log, b"a", b"b", commands=b"first")
    append(log, b"c", commands=b"second")
    write(store, there)
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert (found.number, found.replica, found.untrusted) == (GROUP, REPLICA, "")
    assert found.hard == GroupHardState(1, 2, 0)
    assert found.snapshot == GroupSnapshot(configuration=b"members")
    assert (found.first, found.last, found.term(0), found.term(2)) == (1, 2, 0, 1)
    assert found.entries(1, 2, 1_000) == log.entries(1, 2, 1_000)
    assert [message.body for message in found.messages(1) if message] == [b"a", b"b"]
    assert bodies(recovered) == [b"a", b"b", b"c"]
    assert recovered.end is StoreEnd.CLEAN


def test_the_hard_state_stands_before_the_entries_and_these_behind_their_messages() -> None:
    there, store, log = begun()
    before = store.segments[1].size
    [message] = append(log, b"a")
    store.release(message, store.cursor(GROUP, 0), 0)
    append(log, b"b")
    log.promise(2, 0)
    log.cut(2)
    log.promise(3, 1)
    write(store, there)
    batch = [kind for kind in kinds(there, store, before) if kind in (MESSAGE, RELEASE, HARD, ENTRY, CUT)]
    assert batch[:6] == [MESSAGE, RELEASE, HARD, ENTRY, ENTRY, CUT]
    assert opened(there).groups[GROUP].hard == GroupHardState(3, 1, 0)


def test_a_snapshot_stands_behind_what_it_has_as_settled() -> None:
    there, store, log = begun()
    [message] = append(log, b"a")
    committed(log)
    write(store, there)
    before = store.segments[1].size
    store.release(message, store.cursor(GROUP, 0), 0)
    log.compact(GroupSnapshot(index=1, term=1, machine=b"nothing"))
    write(store, there)
    assert kinds(there, store, before)[1:] == [RELEASE, STATE]
    found = opened(there).groups[GROUP]
    assert (found.first, found.last, found.snapshot.machine) == (2, 2, b"nothing")
    assert found.end(0) == 1


def test_a_listener_is_told_when_changes_are_synced_and_not_before() -> None:
    there, store, log = begun()
    log.listener = told = Told()
    append(log, b"a")
    store.commit()
    append(log, b"b")
    assert told.calls == []
    there.advance()
    assert told.calls == [3]
    log.cut(2)
    assert log.ticket == 5
    write(store, there)
    assert told.calls == [3, 5]


def test_messages_of_a_torn_batch_are_released_and_their_positions_not_used_again() -> None:
    there, store, log = begun()
    append(log, b"a")
    write(store, there)
    append(log, b"b", b"c")
    write(store, there)
    # The entry was not written, its messages were.
    data = there.files[FIRST].current
    end = store.segments[1].size - HEAD_SIZE - log.entries(2, 2, 0)[0].size
    data[end:] = bytes(len(data) - end)
    there.forget_synced()
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert (found.last, found.untrusted, recovered.damage) == (1, "", [])
    assert recovered.end is StoreEnd.CLEAN
    assert bodies(recovered) == [b"a"]
    assert survey_store(there)[GROUP].messages == 1
    append(found, b"d")
    assert (found.end(0), found.stored(0, 1)) == (2, 3)
    write(recovered.store, there)
    again = opened(there)
    assert bodies(again) == [b"a", b"d"]
    assert [message.body for message in again.groups[GROUP].messages(2) if message] == [b"d"]


def test_after_a_cut_the_same_positions_have_other_messages() -> None:
    there, store, log = begun()
    append(log, b"a")
    append(log, b"b", b"c")
    write(store, there)
    log.cut(2)
    append(log, b"B")
    write(store, there)
    assert (log.stored(0, 0), log.stored(0, 1), log.end(0)) == (0, 3, 2)
    for _ in range(2):
        recovered = opened(there)
        found = recovered.groups[GROUP]
        assert [position for position, _ in messages_in(recovered, GROUP)] == [0, 3]
        assert [message.body for message in found.messages(2) if message] == [b"B"]


def test_messages_of_void_entries_are_released_when_the_cut_is_synced_and_not_before() -> None:
    there, store, log = begun()
    append(log, b"a")
    write(store, there)
    log.promise(2, 0)
    store.commit()
    log.cut(1)
    there.advance()
    assert not store.cursor(GROUP, 0).has(0)
    write(store, there)
    assert store.cursor(GROUP, 0).has(0)


@pytest.mark.usefixtures("small")
def test_a_segment_with_the_state_of_a_group_is_freed_once_the_state_is_written_elsewhere() -> None:
    there, store, log = begun()
    [kept] = append(log, b"kept", commands=b"command")
    write(store, there)
    cursor = store.cursor(2, 0)
    for position in range(40):
        store.append(message := published(bytes(900)), cursor, position)
        write(store, there)
        store.release(message, cursor, position)
    write(store, there)
    store.release(kept, store.cursor(GROUP, 0), 0)
    for _ in range(3):
        store.maintain()
        write(store, there)
    assert FIRST not in there.names()
    assert len([name for name in there.names() if name.endswith(".segment")]) <= 3
    found = opened(there).groups[GROUP]
    assert found.untrusted == ""
    assert found.hard == GroupHardState(1, 2, 0)
    assert [entry.commands for entry in found.entries(1, 1, 0)] == [b"command"]
    assert found.messages(1) == [None]


def test_a_settled_message_of_an_entry_is_none() -> None:
    there, store, log = begun()
    first, _ = append(log, b"a", b"b")
    write(store, there)
    store.release(first, store.cursor(GROUP, 0), 0)
    assert [message and message.body for message in log.messages(1)] == [None, b"b"]
    write(store, there)
    assert [message and message.body for message in opened(there).groups[GROUP].messages(1)] == [None, b"b"]


def test_the_contents_of_an_entry_are_messages_until_they_are_written() -> None:
    there, store, log = begun()
    first, second = append(log, b"a", b"b")
    assert log.contents(1) == [first, second]
    write(store, there)
    assert log.contents(1) == [first.location, second.location]
    store.release(first, store.cursor(GROUP, 0), 0)
    assert log.contents(1) == [0, second.location]


def test_entries_are_read_up_to_a_size_and_one_at_least() -> None:
    _, _, log = begun()
    for _ in range(3):
        append(log, commands=bytes(100))
    size = log.entries(1, 1, 0)[0].size
    assert [entry.index for entry in log.entries(1, 3, 0)] == [1]
    assert [entry.index for entry in log.entries(1, 3, 2 * size)] == [1, 2]
    assert [entry.index for entry in log.entries(2, 3, 10 * size)] == [2, 3]
    with pytest.raises(IndexError):
        log.entries(1, 4, 0)
    with pytest.raises(IndexError):
        log.term(4)


def test_what_does_not_continue_the_log_is_refused() -> None:
    _, _, log = begun()
    append(log, b"a")
    for entry, count in (
        (GroupEntry(index=3, term=1), 0),
        (GroupEntry(index=1, term=1), 0),
        (GroupEntry(index=2, term=0), 0),
        (GroupEntry(index=2, term=2), 0),
        (GroupEntry(index=2, term=1, runs=(PositionRun(0, 0, 1),)), 1),
        (GroupEntry(index=2, term=1, runs=(PositionRun(0, 1, 2),)), 1),
        (GroupEntry(index=2, term=1, commands=bytes(GROUP_COMMANDS_SIZE_MAX + 1)), 0),
    ):
        with pytest.raises(ValueError, match=re.compile("entry|commands")):
            log.append(entry, [published(b"x")] * count)
    assert log.last == 1


def test_a_vote_is_not_taken_back() -> None:
    _, _, log = begun()
    for term, vote in ((0, 0), (1, 3), (1, 0)):
        with pytest.raises(ValueError, match="vote"):
            log.promise(term, vote)
    log.promise(1, 2)
    log.promise(2, 0)
    log.promise(2, 3)
    assert log.hard == GroupHardState(2, 3, 0)


def test_committed_entries_are_not_cut() -> None:
    _, _, log = begun()
    append(log, b"a")
    committed(log)
    with pytest.raises(ValueError, match="committed"):
        log.cut(1)
    log.cut(2)


def test_a_snapshot_is_of_an_entry_that_exists_and_of_its_term() -> None:
    _, _, log = begun()
    append(log)
    for index, term in ((2, 1), (1, 2)):
        with pytest.raises(ValueError, match="snapshot"):
            log.compact(GroupSnapshot(index=index, term=term))


def test_forgotten_entries_are_on_disk_until_a_snapshot_replaces_them() -> None:
    there, store, log = begun()
    for body in (b"a", b"b", b"c"):
        append(log, body, commands=body)
    write(store, there)
    log.forget(2)
    assert (log.first, log.last, log.term(2)) == (3, 3, 1)
    for index in (1, 2):
        with pytest.raises(IndexError):
            log.messages(index)
    found = opened(there).groups[GROUP]
    assert [entry.commands for entry in found.entries(1, 3, 1_000)] == [b"a", b"b", b"c"]
    with pytest.raises(ValueError, match="snapshot 1 of entries 3 to 3"):
        log.compact(GroupSnapshot(index=1, term=1))
    log.compact(GroupSnapshot(index=2, term=1, machine=b"machine"))
    assert (log.first, log.snapshot_ends, log.tail_size) == (3, {0: 2}, log.entries(3, 3, 0)[0].size)
    write(store, there)
    recovered = opened(there)
    found = recovered.groups[GROUP]
    assert (found.first, found.last, found.snapshot, found.snapshot_ends) == (3, 3, log.snapshot, {0: 2})
    assert bodies(recovered) == [b"a", b"b", b"c"]


def test_nothing_is_forgotten_while_a_state_is_due() -> None:
    there, store, log = begun()
    append(log, b"a")
    log.write_state()
    log.forget(1)
    assert log.first == 1
    write(store, there)
    log.forget(1)
    assert log.first == 2
    append(log, b"b")
    write(store, there)
    assert [entry.index for entry in opened(there).groups[GROUP].entries(1, 2, 1_000)] == [1, 2]


def test_a_cut_behind_forgotten_entries_counts_from_them() -> None:
    there, store, log = begun()
    append(log, b"a")
    append(log, b"b")
    committed(log)
    append(log, b"void")
    write(store, there)
    log.forget(2)
    log.cut(4)
    append(log, b"c")
    write(store, there)
    assert (log.first, log.last) == (3, 4)
    recovered = opened(there)
    assert bodies(recovered) == [b"a", b"b", b"c"]
    assert (recovered.groups[GROUP].first, recovered.groups[GROUP].last) == (1, 4)


def test_entries_are_bounded_until_a_snapshot() -> None:
    _, _, log = begun()
    size = GROUP_COMMANDS_SIZE_MAX
    for _ in range(GROUP_TAIL_SIZE_MAX // (size + 100)):
        append(log, commands=bytes(size))
    assert not log.has_space(size)
    append(log)
    with pytest.raises(ValueError, match="too large"):
        append(log, commands=bytes(size))
    log.compact(GroupSnapshot(index=log.last, term=1))
    append(log, commands=bytes(size))


def test_a_group_whose_queue_does_not_exist_is_gone() -> None:
    there, _, _ = begun()
    assert opened(there, (2,)).groups == {}


def test_the_records_of_a_dropped_group_are_not_kept() -> None:
    there, store, log = begun()
    append(log, b"a")
    log.drop()
    write(store, there)
    assert opened(there, (2,)).groups == {}


def test_no_batch_follows_for_a_group_that_was_dropped_before_it_has_prepared() -> None:
    there, port = SimulatedDisk(random.Random(0)), Port()
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes, has_queue=lambda _: True, progress=lambda *_: None
    )
    store = open_store(there, port, dependencies).store
    log = GroupLog.create(store, GROUP, REPLICA, b"members")
    log.announce()
    log.drop()
    port.is_dirty = False
    store.commit()
    write(store, there)
    assert not port.is_dirty


# --- untrusted replicas --------------------------------------------------------------------------


def test_a_replica_without_any_record_was_never_written_if_nothing_is_lost() -> None:
    there = SimulatedDisk(random.Random(0))
    opened(there)
    assert opened(there, replicas={GROUP: REPLICA}).groups == {}


def test_a_replica_without_any_record_is_untrusted_if_something_is_lost() -> None:
    missing = [StoreFileError("vhosts", 0, "the directory is missing")]
    found = opened(SimulatedDisk(random.Random(0)), replicas={GROUP: REPLICA}, missing=missing).groups[GROUP]
    reason = "none of its records was found: vhosts, byte 0: the directory is missing"
    assert (found.replica, found.untrusted) == (REPLICA, reason)


def test_messages_of_a_replica_without_any_record_make_it_untrusted() -> None:
    there = SimulatedDisk(random.Random(0))
    store = opened(there).store
    store.append(published(b"a"), store.cursor(GROUP, 0), 0)
    write(store, there)
    recovered = opened(there, replicas={GROUP: REPLICA})
    assert recovered.groups[GROUP].untrusted == "none of its records was found"
    assert bodies(recovered) == [b"a"]


def test_the_records_of_another_replica_are_untrusted() -> None:
    there, _, _ = begun()
    found = opened(there, replicas={GROUP: 8}).groups[GROUP]
    assert (found.replica, found.untrusted) == (8, "the records are those of replica 7, not 8")


def test_a_replica_whose_state_is_lost_keeps_the_number_that_it_had() -> None:
    there, store, log = begun()
    before_entry = store.written
    append(log, b"a")
    write(store, there)
    # Its state and its hard state, each of which says the number.
    at, end, seed = SEGMENT_HEAD_SIZE, before_entry & 0xFFFF_FFFF, store.segments[1].seed
    while at < end:
        size = is_intact(bytes(there.files[FIRST].current), at, seed)
        there.flip_bit(FIRST, at + size - 1)
        at += size
    found = opened(there, replicas={GROUP: REPLICA}).groups[GROUP]
    assert found.untrusted.endswith("its state is missing")
    assert found.replica == REPLICA


def test_damage_anywhere_makes_a_replica_untrusted_and_stays_on_record() -> None:
    there, store, log = begun()
    append(log, b"a")
    message = published(b"other")
    store.append(message, store.cursor(2, 0), 0)
    write(store, there)
    there.flip_bit(FIRST, there.files[FIRST].current.index(b"other"))
    recovered = opened(there)
    assert recovered.end is StoreEnd.DAMAGED
    reason = recovered.groups[GROUP].untrusted
    assert reason.startswith(f"{FIRST}, byte ")
    # Other queues of the store have what can be read.
    assert bodies(recovered) == [b"a"]
    write(recovered.store, there)
    assert opened(there).groups[GROUP].untrusted == reason


def test_rot_in_the_last_batch_is_not_taken_for_a_torn_end() -> None:
    there, store, log = begun()
    append(log, b"a")
    write(store, there)
    there.die()
    there.flip_bit(FIRST, store.segments[1].size - 1)
    found = opened(there).groups[GROUP]
    assert found.last == 0
    assert "record is damaged" in found.untrusted or "lost" in found.untrusted


def test_a_lost_catalog_makes_a_replica_untrusted_and_later_starts_know_it() -> None:
    there, store, log = begun()
    append(log, b"a")
    write(store, there)
    there.unreadable["catalog"] = range(1)
    recovered = opened(there)
    reason = recovered.groups[GROUP].untrusted
    assert "catalog" in reason
    there.unreadable.clear()
    write(recovered.store, there)
    again = opened(there)
    assert (again.damage, again.groups[GROUP].untrusted) == ([], reason)


def test_an_entry_without_its_message_makes_a_replica_untrusted() -> None:
    there, store, log = begun()
    [message] = append(log, b"a")
    # What must not happen: the message is neither written nor settled.
    message.references = 0
    write(store, there)
    recovered = opened(there)
    assert recovered.damage == []
    assert recovered.groups[GROUP].untrusted == "message 0 of entry 1 is missing"


def test_damage_before_a_replica_was_born_does_not_concern_it() -> None:
    there = SimulatedDisk(random.Random(0))
    store = opened(there).store
    store.append(published(b"other"), store.cursor(2, 0), 0)
    write(store, there)
    store = opened(there).store
    log = GroupLog.create(store, GROUP, REPLICA, b"")
    append(log)
    write(store, there)
    there.flip_bit(FIRST, there.files[FIRST].current.index(b"other"))
    recovered = opened(there)
    assert recovered.damage
    assert recovered.groups[GROUP].untrusted == ""


def test_a_lost_segment_makes_a_replica_untrusted() -> None:
    there, store, log = begun()
    append(log, b"a")
    write(store, there)
    opened(there)
    there.perform([DeleteFile(FIRST), SyncDirectory()])
    found = opened(there, replicas={GROUP: REPLICA}).groups[GROUP]
    assert found.untrusted == f"none of its records was found: {FIRST}, byte 0: the file is missing"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, 4_096)
