"""Replicas agree on a log with asynchronous storage, and promise nothing that is not synced."""

import pytest
from msgspec.structs import replace
from tests.unit.replication.raft.group import SETTINGS, Group, Member
from tests.unit.replication.raft.memory_storage import MemoryStorage

from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
    encode_change,
)
from warren.replication.raft.raft_messages import (
    Entry,
    EntryKind,
    HardState,
    MessageKind,
    RaftMessage,
    Snapshot,
)
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready, Role
from warren.replication.raft.trace import ChangeRefusal

THREE = Configuration((1, 2, 3))
GUARDED = replace(SETTINGS, pre_vote=True, check_quorum=True)


def group_of_three(settings: RaftSettings = SETTINGS) -> Group:
    """Return a group that 1 leads in term 1, with index 11 committed everywhere."""
    group = Group(THREE, settings)
    group.elect(1)
    return group


def ready_of(member: Member) -> Ready:
    ready = member.handle_ready()
    assert ready is not None
    return ready


def removal_of(replica: int) -> ConfigurationChange:
    return ConfigurationChange((MemberChange(MemberChangeKind.REMOVED, replica),))


def kinds(messages: tuple[RaftMessage, ...]) -> list[MessageKind]:
    return [message.kind for message in messages]


@pytest.mark.parametrize("voters", [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_what_a_leader_proposes_is_applied_by_all(voters: tuple[int, ...]) -> None:
    group = Group(Configuration(voters))
    group.elect(1)
    assert group[1].propose(b"hello", 5) == 12
    group.settle()
    for member in group.members.values():
        assert [(entry.index, entry.payload) for entry in member.applied] == [(11, b""), (12, b"hello")]
        assert member.replica.hard_state.commit == 12


def test_a_follower_refuses_proposals() -> None:
    group = group_of_three()
    assert group[2].propose(b"hello", 5) == 0


# The persistence contract.


def test_a_vote_is_sent_when_it_is_synced() -> None:
    group = Group(THREE)
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 1, 1, 10, 1))
    ready = ready_of(group.members[2])
    assert ready.messages == ()
    assert kinds(ready.messages_after) == [MessageKind.VOTE_RESPONSE]
    assert (ready.hard_state, ready.must_sync) == (HardState(1, 1, 10), True)


def test_a_candidate_counts_its_own_vote_when_it_is_synced() -> None:
    group = Group(Configuration((1,)))
    group[1].campaign()
    ready_of(group.members[1])
    assert group[1].soft_state.role is Role.CANDIDATE
    group.members[1].write()
    assert group[1].soft_state.role is Role.LEADER


def test_no_message_of_a_term_is_sent_before_the_term_is_synced() -> None:
    group = Group(THREE)
    group[1].campaign()
    ready = ready_of(group.members[1])
    assert ready.messages == ()
    assert kinds(ready.messages_after).count(MessageKind.VOTE) == 2
    # Nor is a heartbeat of a leader of that term answered.
    group[2].step(RaftMessage(MessageKind.HEARTBEAT, 2, 1, 1))
    ready = ready_of(group.members[2])
    assert ready.messages == ()
    assert kinds(ready.messages_after) == [MessageKind.HEARTBEAT_RESPONSE]
    group.members[2].write()
    group[2].step(RaftMessage(MessageKind.HEARTBEAT, 2, 1, 1))
    assert kinds(ready_of(group.members[2]).messages) == [MessageKind.HEARTBEAT_RESPONSE]


def test_a_pre_vote_waits_for_nothing() -> None:
    group = Group(THREE, GUARDED)
    group[1].campaign()
    ready = ready_of(group.members[1])
    assert kinds(ready.messages) == [MessageKind.PRE_VOTE, MessageKind.PRE_VOTE]
    assert (ready.hard_state, ready.must_sync) == (None, False)


def test_the_answer_to_an_append_waits_until_its_entries_are_synced() -> None:
    group = group_of_three()
    group[1].propose(b"a", 1)
    ready_of(group.members[1])
    group.deliver(group.members[1])
    ready = ready_of(group.members[2])
    assert ready.messages == ()
    assert [(message.kind, message.index) for message in ready.messages_after] == [
        (MessageKind.APPEND_RESPONSE, 12)
    ]


def test_the_answer_to_an_empty_append_waits_for_the_entries_before_it() -> None:
    """A database lost data by answering with the last index where the durable one was meant."""
    group = group_of_three()
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (Entry(1, 12),), 11))
    ready_of(group.members[2])
    # The storage is slow; the leader asks again, with nothing to append.
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 12, 1, (), 11))
    group[2].step(RaftMessage(MessageKind.HEARTBEAT, 2, 1, 1, commit=11))
    ready = ready_of(group.members[2])
    assert [(message.kind, message.index) for message in ready.messages] == [
        (MessageKind.HEARTBEAT_RESPONSE, 0)
    ]
    assert [(message.kind, message.index) for message in ready.messages_after] == [
        (MessageKind.APPEND_RESPONSE, 12)
    ]
    assert ready.written is not None
    assert ready.written.index == 12


def test_an_append_behind_what_is_committed_is_answered_with_the_commit_index() -> None:
    """Behind that, the log may be of a deposed leader: nothing that this message says verifies it."""
    group = group_of_three()
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (Entry(1, 12), Entry(1, 13)), 11))
    group.settle([2])
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 3, 2, 10, 1, (Entry(1, 11),), 11))
    follower = group.members[2]
    ready_of(follower)
    follower.write()
    [answer] = [message for message in follower.outbox if message.kind is MessageKind.APPEND_RESPONSE]
    assert (answer.to, answer.index) == (3, 11)


def test_a_leader_does_not_count_itself_before_its_entries_are_synced() -> None:
    group = group_of_three()
    group.isolate(3)
    group[1].propose(b"a", 1)
    ready_of(group.members[1])
    group.deliver(group.members[1])
    group.settle(only=[2])
    # 2 has it on disk, 1 does not: that is one of three.
    assert group[1].hard_state.commit == 11
    group.members[1].write()
    assert group[1].hard_state.commit == 12


def test_what_a_crash_undoes_was_promised_to_nobody() -> None:
    group = group_of_three()
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 3, 2, 11, 1))
    ready_of(group.members[2])
    group.members[2].restart()
    # The vote was not sent, so that another one may be cast in the same term.
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 1, 2, 11, 1))
    group.settle(only=[2])
    assert group.members[2].storage.hard_state == HardState(2, 1, 11)


def test_nothing_is_applied_that_is_not_written() -> None:
    group = group_of_three()
    entry = Entry(1, 12, payload=b"a", size=1)
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (entry,), 12))
    assert group[2].hard_state.commit == 12
    ready = ready_of(group.members[2])
    assert (ready.entries, ready.commit, ready.committed) == ((entry,), 12, ())
    group.members[2].write()
    assert ready_of(group.members[2]).committed == (entry,)


def test_the_commit_index_is_handed_out_with_the_entries_that_it_came_with() -> None:
    group = group_of_three()
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (Entry(1, 12), Entry(1, 13)), 12))
    ready = ready_of(group.members[2])
    assert ready.hard_state == HardState(1, 1, 12)
    assert (ready.commit, [entry.index for entry in ready.entries]) == (12, [12, 13])


def test_an_acknowledgement_of_a_former_term_does_not_count() -> None:
    group = group_of_three()
    follower = group.members[2]
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (Entry(1, 12),), 11))
    first = ready_of(follower)
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 3, 2, 11, 1, (Entry(2, 12),), 11))
    ready_of(follower)
    # A third leader brings back the entry of the first write; its replacement is still being written.
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 3, 11, 1, (Entry(1, 12),), 11))
    ready_of(follower)
    assert first.written is not None
    group[2].written(first.written)
    assert group[2].log.offset == 12
    follower.write()
    follower.write()
    assert group[2].log.offset == 12
    follower.write()
    assert group[2].log.offset == 13
    assert follower.storage.term(12) == 1


# Elections.


def test_a_vote_is_cast_once_in_a_term() -> None:
    group = Group(THREE)
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 1, 1, 10, 1))
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 3, 1, 10, 1))
    first, second = ready_of(group.members[2]).messages_after
    assert (first.to, first.is_rejected) == (1, False)
    assert (second.to, second.is_rejected) == (3, True)


def test_a_voter_that_answers_twice_counts_once() -> None:
    group = Group(Configuration((1, 2, 3, 4, 5)))
    group[1].campaign()
    ready_of(group.members[1])
    group.members[1].write()
    for _ in range(3):
        group[1].step(RaftMessage(MessageKind.VOTE_RESPONSE, 1, 2, 1))
    assert group[1].soft_state.role is Role.CANDIDATE


def test_a_candidate_with_a_shorter_log_is_not_elected() -> None:
    group = group_of_three()
    group.isolate(3)
    group[1].propose(b"a", 1)
    group.settle()
    group.cut.clear()
    group[3].campaign()
    group.settle()
    assert group[3].soft_state.role is not Role.LEADER
    group[2].campaign()
    group.settle()
    assert group[2].soft_state.role is Role.LEADER


def test_a_replica_that_was_cut_off_does_not_depose_the_leader() -> None:
    group = group_of_three(GUARDED)
    group.isolate(3)
    for _ in range(30):
        group[3].tick()
        group.settle()
    assert group[3].hard_state.term == 1
    group.cut.clear()
    group[3].campaign()
    group.settle()
    assert group[1].soft_state.role is Role.LEADER


def test_a_candidate_that_is_behind_learns_of_the_term_from_a_refused_pre_vote() -> None:
    group = Group(THREE, GUARDED)
    group[2].step(RaftMessage(MessageKind.VOTE, 2, 3, 5, 10, 1))
    ready_of(group.members[2])
    group[2].step(RaftMessage(MessageKind.PRE_VOTE, 2, 1, 3, 10, 1))
    (answer,) = ready_of(group.members[2]).messages_after
    assert (answer.kind, answer.to, answer.term) == (MessageKind.PRE_VOTE_RESPONSE, 1, 5)
    assert answer.is_rejected
    group[1].campaign()
    group[1].step(answer)
    assert (group[1].hard_state.term, group[1].soft_state.role) == (5, Role.FOLLOWER)


def test_a_leader_without_a_majority_steps_down() -> None:
    group = group_of_three(GUARDED)
    group.isolate(1)
    for _ in range(2 * GUARDED.election_ticks):
        group[1].tick()
    assert group[1].soft_state.role is Role.FOLLOWER


def test_a_leader_whose_ticks_resume_has_an_election_time_to_hear_of_a_majority() -> None:
    group = group_of_three(GUARDED)
    for _ in range(2 * GUARDED.election_ticks - 1):
        # Nobody has answered since it last looked.
        group[1].tick()
    group[1].resume_ticks()
    group[1].tick()
    assert group[1].leads()
    group.isolate(1)
    for _ in range(2 * GUARDED.election_ticks):
        group[1].tick()
    assert not group[1].leads()


def test_entries_of_former_terms_are_committed_by_one_of_the_own_term_only() -> None:
    storage = MemoryStorage(THREE, 10, 1)
    storage.write(HardState(2, 0, 10), [Entry(1, 11)])
    member = Member(1, storage)
    member.replica.campaign()
    ready_of(member)
    member.write()
    member.replica.step(RaftMessage(MessageKind.VOTE_RESPONSE, 1, 2, 3))
    assert member.replica.soft_state.role is Role.LEADER
    ready_of(member)
    member.write()
    # Entry 11 is on a majority, and yet a leader with an entry of term 2 may replace it.
    member.replica.step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 2, 3, 11))
    assert member.replica.hard_state.commit == 10
    member.replica.step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 2, 3, 12))
    assert member.replica.hard_state.commit == 12


def test_nobody_campaigns_while_a_committed_change_is_not_applied() -> None:
    storage = MemoryStorage(THREE, 10, 1)
    storage.write(HardState(1, 0, 11), [Entry(1, 11, EntryKind.CHANGE)])
    member = Member(1, storage)
    member.replica.campaign()
    assert member.replica.soft_state.role is Role.FOLLOWER


# The configuration.


def test_a_second_change_waits_until_the_first_is_applied() -> None:
    group = group_of_three()
    assert group[1].propose_change(removal_of(3)) == 12
    assert group[1].change_refusal(removal_of(2)) is ChangeRefusal.UNAPPLIED
    assert group[1].propose_change(removal_of(2)) == 13
    group.settle()
    assert group[1].configuration == Configuration((1, 2))
    assert group.members[1].applied[-1].kind is EntryKind.NORMAL


def test_a_change_that_is_committed_and_not_applied_keeps_others_waiting() -> None:
    group = group_of_three()
    group[1].propose_change(removal_of(3))
    ready_of(group.members[1])
    group.members[1].write()
    group[1].step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 2, 1, 12))
    assert group[1].hard_state.commit == 12
    assert group[1].change_refusal(removal_of(2)) is ChangeRefusal.UNAPPLIED
    group.settle()
    assert group[1].change_refusal(removal_of(2)) is None


def test_a_new_leader_takes_its_last_entry_for_a_change_that_may_not_be_applied() -> None:
    group = group_of_three()
    group[2].campaign()
    while group[2].soft_state.role is not Role.LEADER:
        for member in group.members.values():
            member.handle_ready()
            while member.writes:
                member.write()
            group.deliver(member)
    group.isolate(2)
    group[2].propose(b"a", 1)
    assert group[2].change_refusal(removal_of(3)) is None
    group[2].propose_change(removal_of(3))
    assert group[2].change_refusal(removal_of(1)) is ChangeRefusal.UNAPPLIED


def test_a_change_is_appended_only_behind_a_committed_one() -> None:
    group = group_of_three()
    changes = (Entry(1, 12, EntryKind.CHANGE), Entry(1, 13, EntryKind.CHANGE))
    with pytest.raises(AssertionError, match="2 changes of the configuration"):
        group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, changes, 11))


def test_a_replacement_needs_both_majorities_and_leaves_by_itself() -> None:
    group = group_of_three()
    for replica in (4, 5, 6):
        group.add(replica)
    change = ConfigurationChange(
        tuple(
            MemberChange(kind, replica)
            for kind, replicas in ((MemberChangeKind.VOTER, (4, 5, 6)), (MemberChangeKind.REMOVED, (2, 3)))
            for replica in replicas
        )
    )
    for replica in (5, 6):
        group.isolate(replica)
    group[1].propose_change(change)
    group.settle()
    # The new majority of 1, 4, 5 and 6 is not there, so that leaving cannot be committed.
    joint = group[1].configuration
    assert joint.is_joint
    group.members[1].storage.compact(12, joint)
    group.cut.clear()
    group[1].send_heartbeats()
    group.settle()
    assert group[1].configuration == Configuration((1, 4, 5, 6))


def test_a_joint_configuration_is_left_after_a_transfer_that_failed() -> None:
    group = group_of_three()
    group.add(4)
    change = ConfigurationChange(
        (MemberChange(MemberChangeKind.VOTER, 4), MemberChange(MemberChangeKind.REMOVED, 3))
    )
    group[1].propose_change(change)
    group.isolate(3)
    group[1].transfer(3)
    group.settle()
    assert group[1].configuration.is_joint
    assert group[1].transfer_to == 3
    for _ in range(SETTINGS.election_ticks):
        group[1].tick()
    group.settle()
    assert group[1].configuration == Configuration((1, 2, 4))


def test_a_leader_that_is_removed_steps_down() -> None:
    group = group_of_three(replace(SETTINGS, hand_over_before_removal=False))
    group[1].propose_change(removal_of(1))
    group.settle()
    assert group[1].soft_state.role is Role.FOLLOWER
    group[1].campaign()
    assert group[1].soft_state.role is Role.FOLLOWER


def test_a_change_that_a_snapshot_has_overtaken_changes_nothing() -> None:
    group = group_of_three()
    change = Entry(1, 12, EntryKind.CHANGE, encode_change(removal_of(3)))
    group[2].step(RaftMessage(MessageKind.APPEND, 2, 1, 1, 11, 1, (change,), 12))
    ready_of(group.members[2])
    newer = Configuration((1, 2, 3, 4))
    group[2].step(RaftMessage(MessageKind.SNAPSHOT, 2, 1, 1, snapshot=Snapshot(20, 1, newer)))
    assert group[2].apply_change(change) == newer


def test_a_snapshot_that_does_not_know_the_member_is_not_sent() -> None:
    group = group_of_three()
    group.add(4)
    group[1].propose_change(ConfigurationChange((MemberChange(MemberChangeKind.VOTER, 4),)))
    group.settle()
    # The storage's snapshot is of index 10, and 4 has been added at 12.
    assert group[4].hard_state.commit == 0
    group.members[1].storage.compact(12, group[1].configuration)
    group[1].storage_ready()
    group.settle()
    assert group[4].hard_state.commit == 12


def test_an_answer_of_a_replica_that_is_no_member_is_refused() -> None:
    group = group_of_three()
    assert not group[1].step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 9, 1, 12))


# Flow.


def test_a_proposal_beyond_what_may_be_uncommitted_is_refused() -> None:
    group = group_of_three(replace(SETTINGS, uncommitted_bytes_max=100))
    group.isolate(1)
    # One that is too large by itself goes alone.
    assert group[1].propose(b"", 5000) == 12
    assert group[1].propose(b"", 1) == 0
    group.cut.clear()
    group[1].send_heartbeats()
    group.settle()
    assert group[1].propose(b"", 1) == 13


def test_what_is_in_flight_is_bounded_in_bytes() -> None:
    group = group_of_three(replace(SETTINGS, in_flight_bytes_max=100, batch_proposals=False))
    for _ in range(5):
        group[1].propose(b"", 50)
    ready = ready_of(group.members[1])
    assert [message.index for message in ready.messages if message.to == 2] == [11, 12]
    group.deliver(group.members[1])
    group.settle()
    assert group[2].hard_state.commit == 16


def test_what_is_proposed_before_a_ready_is_one_append() -> None:
    group = group_of_three()
    for payload in (b"a", b"b", b"c"):
        group[1].propose(payload, 1)
    ready = ready_of(group.members[1])
    for peer in (2, 3):
        [append] = [message for message in ready.messages if message.to == peer]
        assert [entry.payload for entry in append.entries] == [b"a", b"b", b"c"]
    group.deliver(group.members[1])
    group.settle()
    assert group[2].hard_state.commit == 14


def test_what_was_proposed_is_not_sent_by_a_leader_that_is_none_any_more() -> None:
    group = group_of_three()
    group[1].propose(b"a", 1)
    group[1].step(RaftMessage(MessageKind.HEARTBEAT, 1, 2, 5))
    assert ready_of(group.members[1]).messages == ()


def test_a_member_waits_while_the_storage_is_reading_what_it_needs() -> None:
    group = group_of_three()
    group.isolate(3)
    group[1].propose(b"a", 1)
    group.settle()
    group.cut.clear()
    group.members[1].storage.unreadable_below = 100
    group[1].unreachable(3)
    group[1].send_heartbeats()
    group.settle()
    assert group[3].hard_state.commit == 11
    group.members[1].storage.unreadable_below = 0
    group[1].storage_ready()
    group.settle()
    assert group[3].hard_state.commit == 12


def test_who_is_behind_the_first_entry_gets_a_snapshot_once() -> None:
    group = group_of_three()
    group.isolate(3)
    for _ in range(3):
        group[1].propose(b"a", 1)
    group.settle()
    group.members[1].storage.compact(14, THREE)
    group.cut.clear()
    group[1].unreachable(3)
    group[1].step(RaftMessage(MessageKind.HEARTBEAT_RESPONSE, 1, 3, 1))
    group[1].step(RaftMessage(MessageKind.HEARTBEAT_RESPONSE, 1, 3, 1))
    assert kinds(ready_of(group.members[1]).messages) == [MessageKind.SNAPSHOT]
    group.deliver(group.members[1])
    ready = ready_of(group.members[3])
    # It is acknowledged when it is written.
    assert ready.snapshot is not None
    assert ready.messages == ()
    assert [message.index for message in ready.messages_after] == [14]
    group.settle()
    assert group[1].progress[3].match == 14
    group[1].propose(b"b", 1)
    group.settle()
    assert [entry.index for entry in group.members[3].applied][-1] == 15


# Reads and transfers.


def test_a_read_is_answered_after_a_majority_has_confirmed_the_leader() -> None:
    group = group_of_three()
    group[1].read_index(b"r")
    ready = ready_of(group.members[1])
    assert ready.read_states == ()
    assert kinds(ready.messages) == [MessageKind.HEARTBEAT, MessageKind.HEARTBEAT]
    group.deliver(group.members[1])
    ready_of(group.members[2])
    group.deliver(group.members[2])
    ready = ready_of(group.members[1])
    assert [(read.index, read.context) for read in ready.read_states] == [(11, b"r")]


def test_a_follower_passes_a_read_on_to_the_leader() -> None:
    group = group_of_three()
    group[2].read_index(b"r")
    found = []
    for _ in range(6):
        for member in group.members.values():
            ready = member.handle_ready()
            if ready is not None and member is group.members[2]:
                found += ready.read_states
            while member.writes:
                member.write()
            group.deliver(member)
    assert [(read.index, read.context) for read in found] == [(11, b"r")]


def test_a_transfer_makes_another_one_lead_and_takes_no_proposal_meanwhile() -> None:
    group = group_of_three()
    group[1].transfer(2)
    assert group[1].propose(b"a", 1) == 0
    group.settle()
    assert group[2].soft_state.role is Role.LEADER
    assert group[2].propose(b"a", 1)


def test_a_follower_passes_a_transfer_on_to_the_leader() -> None:
    group = group_of_three()
    group[3].transfer(2)
    group.settle()
    assert group[2].soft_state.role is Role.LEADER


def test_a_transfer_that_takes_too_long_is_given_up() -> None:
    group = group_of_three()
    group.isolate(2)
    group[1].transfer(2)
    for _ in range(SETTINGS.election_ticks):
        group[1].tick()
    assert group[1].propose(b"a", 1) == 12
