"""Quorum queues of three and five members, driven by seeds."""

from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.quorum_members import QuorumMembers
from tests.sim.segments import make_small

from warren.limits_raft import GROUP_COMPACTED_ENTRIES
from warren.queues.quorum import group, recent_entries
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)

STEPS = 500
SEGMENT_SIZES = (8_192, 600)
WEIGHTS: dict[Callable[[QuorumMembers], None], int] = {
    QuorumMembers.publish: 12, QuorumMembers.consume: 2, QuorumMembers.settle: 8, QuorumMembers.deliver: 60,
    QuorumMembers.lose: 1, QuorumMembers.tick: 30, QuorumMembers.write: 40, QuorumMembers.crash: 1,
    QuorumMembers.start: 4, QuorumMembers.isolate: 1, QuorumMembers.heal: 2, QuorumMembers.hand_over: 1,
    QuorumMembers.settle_stale: 2,
}  # fmt: skip


@pytest.mark.seeds(SEEDS)
def test_members_come_and_go_and_none_that_was_confirmed_is_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(seed, monkeypatch, QuorumMembers(seed, 1 if seed % 5 == 0 else 3, 2), {QuorumMembers.change: 6})


@pytest.mark.seeds(SEEDS)
def test_members_have_the_same_messages_and_none_that_was_confirmed_is_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(seed, monkeypatch, QuorumMembers(seed, 5 if seed % 7 == 0 else 3), {})


def test_who_is_added_to_the_only_member_knows_it() -> None:
    simulation = QuorumMembers(1, 1, 1)
    leader = simulation.settle_all()
    simulation.publish()
    added = ConfigurationChange((MemberChange(MemberChangeKind.VOTER, 2),))
    assert leader.group.propose_change(added)
    simulation.check_end()
    configurations = {member.group.driver.replica.configuration for member in simulation.members.values()}
    assert configurations == {Configuration(voters=(1, 2))}


def test_who_leads_again_after_all_it_had_published_was_void_knows_where_its_messages_are() -> None:
    simulation = QuorumMembers(1)
    leader = simulation.settle_all()
    others = [number for number in simulation.members if number != leader.number]
    simulation.cut = {(leader.number, other) for other in others} | {
        (other, leader.number) for other in others
    }
    for _ in range(8):
        simulation.publish()
    leader.write(None)
    while not any(simulation.members[other].group.is_open for other in others):
        for other in others:
            simulation.members[other].group.tick()
        simulation.pass_turn()
    following = simulation.settle_all()
    assert following is not leader
    following.group.transfer(leader.number)
    assert simulation.settle_all() is leader
    simulation.publish()
    simulation.consume()
    simulation.settle_all()
    [delivery] = [each for reader in leader.readers for each in reader.unsettled]
    assert (delivery.position, leader.log.logical(0, delivery.position)) == (leader.log.stored(0, 0), 0)
    assert delivery.position > 0
    simulation.check_end()


def test_a_member_that_was_cut_off_gets_entries_that_were_replaced_to_free_a_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", 4)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    simulation = QuorumMembers(1)
    leader = simulation.settle_all()
    cut = next(member for member in simulation.members.values() if member is not leader)
    simulation.cut = {(leader.number, cut.number), (cut.number, leader.number)}

    def publish(count: int) -> None:
        for _ in range(count):
            simulation.publish()
            for _ in range(3):
                simulation.pass_turn()

    publish(6)
    assert leader.log.snapshot.index < leader.group.driver.applied
    leader.group.shorten()
    assert leader.log.snapshot.index == leader.group.driver.applied
    publish(1)
    assert simulation.settle_all() is leader
    assert simulation.snapshot_count == 0
    simulation.check_end()


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_who_is_added_to_the_only_member_knows_it_after_that_one_has_restarted(is_power_lost: bool) -> None:
    simulation = QuorumMembers(1, 1, 1)
    leader = simulation.settle_all()
    simulation.publish()
    simulation.settle_all()
    simulation.cut = {(1, 2), (2, 1)}
    added = ConfigurationChange((MemberChange(MemberChangeKind.LEARNER, 2),))
    assert leader.group.propose_change(added)
    simulation.pass_turn()
    changed = Configuration(voters=(1,), learners=(2,))
    assert leader.group.driver.replica.configuration == changed
    leader.stop(is_power_lost=is_power_lost)
    simulation.check_end()
    configurations = {member.group.driver.replica.configuration for member in simulation.members.values()}
    assert configurations == {changed}


@pytest.mark.parametrize("entry_count", [10, 40])
def test_who_lacks_few_entries_needs_no_snapshot(entry_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", 4)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    monkeypatch.setattr(recent_entries, "RECENT_ENTRIES_MAX", 20)
    simulation = QuorumMembers(1)
    leader = simulation.settle_all()
    away = next(member for member in simulation.members.values() if member is not leader)
    simulation.cut = {
        pair for pair in ((1, 2), (1, 3), (2, 3), (2, 1), (3, 1), (3, 2)) if away.number in pair
    }
    for _ in range(entry_count):
        simulation.publish()
        simulation.consume()
        simulation.settle()
        simulation.pass_turn()
    assert leader.log.snapshot.index > away.log.last
    simulation.check_end()
    assert simulation.snapshot_count == (entry_count > 20)


def play(
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    simulation: QuorumMembers,
    more: dict[Callable[[QuorumMembers], None], int],
) -> None:
    """Do what chance says, with `more` weights, until all agree in the end."""
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    # Every third time entries are replaced by snapshots soon, so that who was away needs one.
    kept = GROUP_COMPACTED_ENTRIES if seed % 3 else 4
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", kept)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    simulation.settle_all()
    weights = WEIGHTS | more
    for action in simulation.chance.choices(list(weights), list(weights.values()), k=STEPS):
        action(simulation)
        simulation.check_terms()
    simulation.check_end()
