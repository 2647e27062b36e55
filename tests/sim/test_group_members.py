"""Groups of quorum queues follow the metadata, while nodes end and leaders change, by seeds and by steps."""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.group_members import Group, GroupMembers

from warren.limits_cluster import GROUP_CHANGE_IDLE_MS, GROUP_CHANGES_MAX, GROUPS_EXAMINED_PER_TURN
from warren.metadata.commands import Outcome, SetPolicy
from warren.replication.raft.change import Configuration

STEPS = 300
ACTIONS = {
    "tick": 20, "turn": 20, "replicate": 60, "apply": 40, "behind": 10, "elect": 4, "down": 3, "up": 5,
    "add": 8, "remove": 8, "replace": 3, "declare": 3, "delete": 1, "refuse": 2, "allow": 4,
    "policy": 1, "forget": 1,
}  # fmt: skip


def act(simulation: GroupMembers, chance: random.Random) -> None:
    """Do one thing, if it is possible now."""
    members = simulation.metadata.members.by_id
    (name,) = chance.choices(list(ACTIONS), list(ACTIONS.values()))
    node = chance.choice(list(members))
    if not simulation.by_number:
        if simulation.is_up(node):
            simulation.declare(node)
        else:
            simulation.bring_up(node)
        return
    group = chance.choice(list(simulation))
    replica = chance.choice(group.configuration.members)
    having = [member.node for member in simulation.record(group).replicas]
    match name:
        case "tick":
            simulation.tick()
        case "turn":
            simulation.turn()
        case "replicate":
            simulation.replicate(group, replica)
        case "apply":
            simulation.take_effect(group)
        case "behind":
            simulation.fall_behind(group, replica)
        case "elect":
            simulation.elect(group, chance.randrange(8))
        case "down" if simulation.is_up(node):
            simulation.take_down(node)
        case "up" if not simulation.is_up(node):
            simulation.bring_up(node)
        case "add":
            simulation.change(group, (node,), ())
        case "remove" if len(having) > 1:
            simulation.change(group, (), (node,))
        case "replace" if len(having) > 1 and node not in having:
            simulation.change(group, (node,), tuple(having[:-1]))
        case "declare" if simulation.is_up(node):
            simulation.declare(node, chance.choice((None, 3)))
        case "delete":
            simulation.delete(group)
        case "refuse" | "allow":
            simulation.nodes[node].is_refusing = name == "refuse"
        case "policy":
            target(simulation, chance.randrange(1, 6))
        case "forget" if not simulation.is_up(node) and len(members) > 3 and node not in homes(simulation):
            simulation.forget(node)
        case _:
            pass


def homes(simulation: GroupMembers) -> set[int]:
    """The nodes that have a replica, or are the only ones that are to have one."""
    found = {group.nodes[replica] for group in simulation for replica in group.configuration.members}
    for group in simulation:
        replicas = simulation.record(group).replicas
        found |= {member.node for member in replicas if len(replicas) == 1}
    return found


def target(simulation: GroupMembers, size: int) -> None:
    """Set a policy with a target size for all queues."""
    simulation.apply(
        SetPolicy(
            vhost="/",
            name="all",
            pattern="",
            apply_to="all",
            priority=0,
            definition={"target-group-size": size},
        )
    )


@pytest.mark.seeds(SEEDS)
def test_in_the_end_every_group_has_the_members_that_the_metadata_say(seed: int) -> None:
    chance = random.Random(seed)
    simulation = GroupMembers(chance, chance.randrange(1, 6))
    for _ in range(STEPS):
        act(simulation, chance)
    simulation.settle()
    up = len(simulation.metadata.members.by_id)
    for group in simulation:
        wanted = simulation.wanted(group)
        assert group.configuration == Configuration(voters=tuple(sorted(wanted)))
        assert len(wanted) >= min(up, simulation.target(group) or 1)


def test_a_queue_of_one_member_is_grown_to_its_target_one_after_the_other() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    group = simulation.declare(1, target=3)
    simulation.turn()
    assert [member.node for member in simulation.record(group).members] == [1, 2]
    assert group.configuration.voters == (1,)
    simulation.settle()
    assert [member.node for member in simulation.record(group).members] == [1, 2, 3]
    assert group.configuration == Configuration(voters=(1, 2, 3))


def test_a_queue_without_a_target_keeps_its_size() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    group = simulation.declare(1)
    simulation.settle()
    assert group.configuration == Configuration(voters=(1,))


def test_a_queue_with_more_members_than_its_target_keeps_them() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    group = simulation.declare(1, target=3)
    simulation.settle()
    simulation.change(group, (), (3,))
    target(simulation, 1)
    simulation.settle()
    # The argument says 3, and counts more than the policy.
    assert len(group.configuration.voters) == 3
    other = simulation.declare(2)
    simulation.change(other, (1, 3), ())
    simulation.settle()
    assert len(other.configuration.voters) == 3


def test_a_leader_that_is_not_wanted_hands_over_before_it_is_removed() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    group = simulation.declare(1)
    simulation.change(group, (2, 3), ())
    simulation.change(group, (), (1,))
    simulation.settle()
    assert group.leader == 2
    assert group.configuration == Configuration(voters=(2, 3))


def test_a_replica_that_has_everything_stays_until_what_replaces_it_is_up() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    group = simulation.declare(1)
    simulation.change(group, (2,), ())
    simulation.settle()
    simulation.take_down(3)
    simulation.change(group, (3,), (2,))
    settle_without(simulation, group)
    assert group.configuration.voters == (1, 2)
    simulation.settle()
    assert group.configuration.voters == (1, 3)


def test_a_replica_on_a_node_that_is_silent_is_removed_before_a_new_one_is_added() -> None:
    simulation = GroupMembers(random.Random(0), 4)
    group = simulation.declare(1)
    simulation.change(group, (2, 3), ())
    simulation.settle()
    simulation.take_down(3)
    simulation.change(group, (4,), (3,))
    simulation.turn()
    assert group.pending is not None
    simulation.take_effect(group)
    assert group.configuration.voters == (1, 2)
    settle_without(simulation, group)
    assert group.configuration.voters == (1, 2, 4)


def test_groups_that_wait_for_a_node_take_no_place_of_others() -> None:
    simulation = GroupMembers(random.Random(0), 3)
    simulation.take_down(3)
    waiting = [simulation.declare(1) for _ in range(2 * GROUP_CHANGES_MAX)]
    for group in waiting:
        simulation.change(group, (3,), ())
    simulation.tick()
    simulation.tick()
    assert simulation.nodes[1].reconciler.is_idle
    other = simulation.declare(1)
    simulation.change(other, (2,), ())
    settle_without(simulation, other)
    assert other.configuration.voters == (1, 2)
    simulation.settle()
    assert all(group.configuration.voters == (1, 2) for group in waiting)


def test_at_most_so_many_groups_are_changed_at_a_time_and_none_keeps_its_place_for_ever() -> None:
    simulation = GroupMembers(random.Random(0), 2)
    groups = [simulation.declare(1) for _ in range(GROUP_CHANGES_MAX + 1)]
    for group in groups:
        simulation.change(group, (2,), ())
    simulation.turn()
    for group in groups:
        simulation.take_effect(group)
    *busy, last = groups
    assert all(group.configuration.learners for group in busy)
    assert not last.configuration.learners
    simulation.nodes[1].reconciler.tick(GROUP_CHANGE_IDLE_MS)
    simulation.take_effect(last)
    assert last.configuration.learners


def test_a_turn_looks_at_a_part_of_all_that_is_due() -> None:
    simulation = GroupMembers(random.Random(0), 1)
    for _ in range(2 * GROUPS_EXAMINED_PER_TURN):
        simulation.declare(1)
    simulation.tick()
    simulation.tick()
    reconciler = simulation.nodes[1].reconciler
    assert reconciler.is_idle
    target(simulation, 3)
    simulation.turn()
    assert not reconciler.is_idle
    simulation.tick()
    assert reconciler.is_idle


def test_the_last_member_is_not_removed() -> None:
    simulation = GroupMembers(random.Random(0), 1)
    group = simulation.declare(1)
    assert simulation.change(group, (), (1,)).outcome is Outcome.REFUSED


def settle_without(simulation: GroupMembers, group: Group) -> None:
    """Let a group change as far as it can with the nodes that are up."""
    for _ in range(20):
        for replica in group.configuration.members:
            simulation.replicate(group, replica)
        simulation.take_effect(group)
        simulation.tick()
