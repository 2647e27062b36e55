"""Nodes whose groups elect, replicate, sleep and wake over links that fail, driven by seeds."""

from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.group_nodes import FIRST_GROUP, GroupNode, GroupNodes
from tests.sim.segments import make_small

from warren.cluster import link_session
from warren.cluster.groups import (
    group_ticks,
    parted_channel,
    replica_outbox,
    snapshot_receiver,
    snapshot_sender,
)
from warren.limits_raft import GROUP_COMPACTED_ENTRIES
from warren.queues.quorum import group

STEPS = 350
# Small sizes, with which everything passes in several pieces.
PART, PAYLOAD, WINDOW = 1_000, 2_500, 6_000
SMALL = {
    (link_session, "CLUSTER_PART_SIZE_MAX"): PART,
    (link_session, "CLUSTER_PAYLOAD_SIZE_MAX"): PAYLOAD,
    (link_session, "CLUSTER_WINDOW_SIZE"): WINDOW,
    (link_session, "_WINDOW_MIN"): PART + link_session.CLUSTER_PART_OVERHEAD,
    (parted_channel, "GROUP_PART_SIZE"): PAYLOAD,
    (replica_outbox, "GROUP_PAYLOAD_SIZE"): 500,
    (replica_outbox, "GROUP_READ_SIZE"): 2_000,
    (group_ticks, "GROUP_COMPARED_MS"): 1_000,
    (snapshot_sender, "GROUP_CHUNK_SIZE"): 200,
    (snapshot_sender, "GROUP_CHUNK_ROWS_MAX"): 3,
    (snapshot_sender, "GROUP_TRANSFER_SIZE_PER_TICK"): 1_000,
    (snapshot_sender, "GROUP_TRANSFERS_MAX"): 2,
    (snapshot_receiver, "GROUP_READ_SIZE"): 100,
}
SEGMENT_SIZE = 8_192
FAULTS = {
    "cut": 6, "cut late": 3, "silence": 2, "hold": 6, "part": 2, "refuse": 1, "crash": 3, "start": 4,
    "hand over": 3,
}  # fmt: skip


@pytest.mark.seeds(SEEDS // 4)
def test_groups_agree_again_after_failures_and_fall_asleep(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZE)
    # Every third time entries are replaced by snapshots soon, so that who was away needs one.
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", GROUP_COMPACTED_ENTRIES if seed % 3 else 4)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    if seed % 2:
        for (module, name), size in SMALL.items():
            monkeypatch.setattr(module, name, size)
    nodes = GroupNodes(seed, 5 if seed % 4 == 0 else 3)
    nodes.settle()
    for _ in range(STEPS):
        act(nodes)
        nodes.step()
    nodes.check_end()
    nodes.fall_asleep()


@pytest.mark.seeds(SEEDS // 4)
def test_a_snapshot_arrives_as_a_whole_or_not_at_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZE)
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", 2)
    monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    for (module, name), size in SMALL.items():
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(snapshot_sender, "GROUP_TRANSFER_SIZE_PER_TICK", 400)
    nodes = GroupNodes(seed, 3, 1)
    nodes.settle()
    chance = nodes.chance
    late = chance.choice([node for node in nodes.running() if node is not nodes.leader(FIRST_GROUP).node])
    for is_away in (False, True):
        for _ in range(40):
            nodes.publish(FIRST_GROUP, 60)
            if chance.random() < 0.4:
                nodes.consume(FIRST_GROUP)
            nodes.step(is_calm=True)
        if not is_away:
            nodes.crash(late, is_power_lost=chance.random() < 0.5)
    late.start()
    for _ in range(200):
        if chance.random() < 0.1:
            nodes.consume(FIRST_GROUP)
        if chance.random() < 0.05:
            fail(nodes, chance.choice(("cut", "silence", "hold", "hand over", "crash", "start", "part")))
        nodes.step()
    nodes.check_end()
    nodes.fall_asleep()
    assert all(node.traffic.transfer_count == 0 for node in nodes.running())


def act(nodes: GroupNodes) -> None:
    """Do what chance says."""
    chance = nodes.chance
    number = chance.choice(list(nodes.members))
    if chance.random() < 0.3:
        nodes.publish(number, chance.choice((0, 0, 100, 2_000)))
    if chance.random() < 0.2:
        nodes.consume(number)
    if chance.random() < 0.06:
        fail(nodes, chance.choices(list(FAULTS), list(FAULTS.values()))[0])


def fail(nodes: GroupNodes, name: str) -> None:
    """Have something fail, or a node start again."""
    network, chance = nodes.network, nodes.chance
    down = [node for node in nodes.nodes.values() if not node.is_up]

    def crash() -> None:
        if not down:
            nodes.crash(chance.choice(nodes.running()), is_power_lost=chance.random() < 0.5)

    def start() -> None:
        for node in down:
            node.start()

    def refuse() -> None:
        nodes.refused_until = network.time + chance.randint(1, 500)

    def hand_over() -> None:
        for member in nodes.leaders(chance.choice(list(nodes.members))):
            member.group.driver.hand_over()
            member.group.driver.flush()

    kinds: dict[str, Callable[[], None]] = {
        "cut": lambda: network.cut(is_told_late=False),
        "cut late": lambda: network.cut(is_told_late=True),
        "silence": network.silence,
        "hold": lambda: network.hold(1_000),
        "part": lambda: network.part(chance.choice([100, 1_500, 6_000])),
        "refuse": refuse,
        "crash": crash,
        "start": start,
        "hand over": hand_over,
    }
    kinds[name]()


def slept(nodes: int = 3, groups: int = 3) -> GroupNodes:
    """Nodes of which all groups sleep."""
    made = GroupNodes(1, nodes, groups)
    made.settle()
    made.fall_asleep()
    return made


def awake_groups(node: GroupNode) -> list[int]:
    return [number for number, member in node.members.items() if not member.is_asleep]


def test_groups_that_sleep_send_nothing() -> None:
    nodes = slept()
    assert all(not awake_groups(node) for node in nodes.running())
    counters = [link.counters for node in nodes.running() for link in node.links.values()]
    before = [counter.frames_sent for counter in counters]
    nodes.run_for(2_000)
    # Pings, and what was obeyed of the last payloads, of each connection.
    assert all(now.frames_sent - then <= 15 for now, then in zip(counters, before, strict=True))
    assert all(not awake_groups(node) for node in nodes.running())


def test_a_publish_wakes_its_group_alone() -> None:
    nodes = slept()
    nodes.publish(7)
    nodes.run_for(300)
    assert [awake_groups(node) for node in nodes.running()] == [[7]] * 3
    nodes.check_end()
    nodes.fall_asleep()


def test_groups_wake_when_their_leader_is_cut_off_and_elect_another_one() -> None:
    nodes = slept()
    leader = nodes.leader(7)
    nodes.network.part(1)
    nodes.refused_until = nodes.network.time + 60_000
    # All connections are silent, and nobody can connect.
    for _ in range(200):
        nodes.step()
    assert awake_groups(leader.node)
    assert all(awake_groups(node) for node in nodes.running())
    nodes.check_end()
    nodes.fall_asleep()


def test_groups_follow_another_leader_soon_when_a_process_has_ended() -> None:
    nodes = slept()
    leader = nodes.leader(7)
    nodes.crash(leader.node, is_power_lost=False)
    nodes.run_for(1_200)
    assert nodes.leaders(7)
    nodes.check_end()
    nodes.fall_asleep()
