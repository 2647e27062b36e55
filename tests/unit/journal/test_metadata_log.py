"""The log of the metadata group: what it hands to the file, and what its Raft core reads."""

from warren.journal.codec import VoteState, decode_entry, decode_hard_state
from warren.journal.file_format import ENTRY, HARD
from warren.journal.metadata_log import LoggedProposal, LogStart, MetadataLog
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.limits_raft import ENTRY_OVERHEAD_BYTES
from warren.metadata.commands import CommandContext, PutVhost
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryId, EntryKind, HardState
from warren.replication.raft.ready import Ready

ALONE = Configuration((1,))


def log(configuration: Configuration = ALONE) -> MetadataLog:
    """A log behind entry 10 of term 2."""
    start = LogStart(node=1, applied=EntryId(2, 10), hard=VoteState(2, 1), configuration=configuration)
    return MetadataLog(start, lambda index, _: (CommandContext(index=index, now=5), 7), lambda last: last)


def ready(*entries: Entry, hard: HardState | None = None, commit: int = 10) -> Ready:
    return Ready(
        hard_state=hard, entries=entries, snapshot=None, must_sync=True, commit=commit, messages=(),
        messages_after=(), written=None, committed=(), soft_state=None, read_states=(),
    )  # fmt: skip


def proposal(index: int, record: bytes) -> LoggedProposal:
    return LoggedProposal(PutVhost(name="v"), CommandContext(index=index, now=5), record)


def test_term_and_vote_are_in_front_of_the_entries_of_their_term() -> None:
    made = log()
    assert made.write(ready(Entry(3, 11), hard=HardState(3, 1, 10))) == 1
    assert made.write(ready(Entry(3, 12, payload=proposal(12, b"x"), size=1))) == 2
    (hard_kind, hard), (kind, entry), last = made.take_records()
    assert (hard_kind, decode_hard_state(hard), made.hard) == (HARD, VoteState(3, 1), VoteState(3, 1))
    assert (kind, decode_entry(entry).position.term) == (ENTRY, 3)
    assert last == (ENTRY, b"x")
    assert made.take_records() == []


def test_a_commit_index_alone_is_not_written() -> None:
    made = log()
    made.write(ready(hard=HardState(2, 1, 12)))
    assert made.take_records() == []


def test_entries_of_the_core_tell_what_was_committed_as_they_were_appended() -> None:
    made = log()
    made.write(ready(Entry(2, 11), Entry(2, 12, EntryKind.CHANGE, b""), commit=9))
    found = [decode_entry(record) for _, record in made.take_records()]
    assert [entry.command for entry in found] == [EmptyEntry(), MembersChange(b"")]
    assert [entry.position.commit for entry in found] == [9, 9]
    assert [entry.position.number for entry in found] == [7, 7]


def test_entries_are_in_memory_until_they_are_applied() -> None:
    made = log()
    made.write(ready(*(Entry(3, index) for index in range(11, 15))))
    assert (made.first_index(), made.last_index()) == (11, 14)
    made.applied(12)
    assert (made.first_index(), made.last_index(), made.applied_id) == (13, 14, EntryId(3, 12))
    assert [made.term(index) for index in (11, 12, 14, 15)] == [None, 3, 3, None]
    assert [entry.index for entry in made.entries(13, 14, 1_000)] == [13, 14]
    # One is always returned.
    assert [entry.index for entry in made.entries(13, 14, ENTRY_OVERHEAD_BYTES - 1)] == [13]


def test_what_could_not_be_written_is_forgotten() -> None:
    made = log()
    made.write(ready(Entry(3, 11), hard=HardState(3, 1, 10)))
    made.forget_unapplied()
    assert (made.last_index(), made.records_size, made.take_records()) == (10, 0, [])
    # Who has voted knows it.
    assert made.initial() == (HardState(3, 1, 10), Configuration((1,)))


def test_a_node_with_a_learner_is_not_alone() -> None:
    assert log().is_alone
    assert not log(Configuration((1,), learners=(2,))).is_alone


def test_only_empty_entries_need_no_sync() -> None:
    made = log()
    assert not made.has_only_empty_entries
    made.write(ready(Entry(3, 11)))
    assert made.has_only_empty_entries
    made.write(ready(Entry(3, 12, EntryKind.CHANGE, b"")))
    assert not made.has_only_empty_entries
