"""The only member of a group may have an entry that counts as written at once; nobody else may."""

import pytest
from tests.unit.replication.raft.group import Group

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryId


def appended(group: Group, payload: bytes) -> Entry | None:
    """Append an entry at once, and give it to the storage as the caller has to."""
    appended = group[1].append_alone()
    if appended is None:
        return None
    entry = Entry(appended.term, appended.index, payload=payload, size=len(payload))
    group.members[1].storage.log.append(entry)
    return entry


def test_an_entry_of_the_only_member_is_committed_and_applied_at_once() -> None:
    group = Group(Configuration((1,)))
    group.elect(1)
    assert appended(group, b"a") == Entry(1, 12, payload=b"a", size=1)
    log = group[1].log
    assert (log.last_id(), log.commit, log.applied) == (EntryId(1, 12), 12, 12)
    assert group[1].hard_state.commit == 12
    assert group[1].progress[1].match == 12


def test_entries_that_are_written_follow_those_that_are_not() -> None:
    group = Group(Configuration((1,)))
    group.elect(1)
    for number in range(3):
        assert appended(group, b"at once") is not None
        assert group[1].propose(b"written", 7) == 13 + 2 * number
        # Something waits for its sync, so this has to wait for it too.
        assert appended(group, b"later") is None
        group.settle()
    member = group.members[1]
    assert [entry.index for entry in member.applied] == [11, 13, 15, 17]
    assert [entry.index for entry in member.storage.log] == list(range(11, 18))


@pytest.mark.parametrize("configuration", [Configuration((1,), learners=(2,)), Configuration((1, 2))])
def test_with_another_member_every_entry_waits_for_its_sync(configuration: Configuration) -> None:
    group = Group(configuration)
    group.elect(1)
    group.settle()
    assert group[1].append_alone() is None


def test_who_does_not_lead_appends_nothing() -> None:
    group = Group(Configuration((1,)))
    assert group[1].append_alone() is None
    group[1].campaign()
    assert group[1].append_alone() is None
