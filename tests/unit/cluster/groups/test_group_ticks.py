"""Groups that have nothing to do sleep, cost nothing, and wake when they have to."""

from collections.abc import Sequence

import pytest
from tests.unit.cluster.groups.memory_replica import MemoryReplica, Pair

from warren.cluster.groups.group_payloads import NUMBER, SLEEP_ROW, VERSION, GroupPayload
from warren.cluster.groups.group_ticks import GroupTicks
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import PayloadError
from warren.limits_raft import GROUP_COMPARED_MS, GROUP_SLEEP_TICKS

HEAD = bytes((VERSION,))
NODES = {1: 1, 2: 2}


class Ticked:
    """Node 1 of two, with some replicas."""

    def __init__(self, *replicas: MemoryReplica) -> None:
        self.pair = Pair(LinkPurpose.CONTROL)
        self.replicas = replicas
        self.places = {replica.number: ReplicaPlace(replica, NODES) for replica in replicas}
        self.ticks = GroupTicks(1, {2: self.pair.link}, self.places, lambda _: self.pair.channel)
        for place in self.places.values():
            self.ticks.begin(place)

    def tick(self, count: int) -> None:
        """Tick, and keep the link alive."""
        for _ in range(count):
            self.ticks.tick()
        self.pair.network.run(50)

    def sent(self) -> Sequence[tuple[int, bytes]]:
        """What has arrived at the other node."""
        return self.pair.arrived()


def quiet(number: int = 7, *, leader: int = 1) -> MemoryReplica:
    """A replica that has nothing to do."""
    replica = MemoryReplica(number, leader=leader)
    replica.commit = 4
    return replica


def slept(*replicas: MemoryReplica) -> Ticked:
    """Replicas that sleep; their calls until then are forgotten."""
    ticked = Ticked(*replicas)
    ticked.tick(GROUP_SLEEP_TICKS + 1)
    assert ticked.ticks.awake_count == 0
    for replica in replicas:
        replica.calls.clear()
    return ticked


def test_a_leader_without_work_sleeps_and_says_so() -> None:
    replica = quiet()
    ticked = Ticked(replica)
    ticked.tick(GROUP_SLEEP_TICKS)
    assert replica.calls == ["tick"] * GROUP_SLEEP_TICKS
    assert ticked.sent() == []
    ticked.tick(1)
    assert replica.calls == ["tick"] * GROUP_SLEEP_TICKS
    assert ticked.sent() == [(GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(7, 3, 4))]
    ticked.tick(5)
    assert replica.calls == ["tick"] * GROUP_SLEEP_TICKS


def test_groups_that_fall_asleep_together_say_so_in_one_payload() -> None:
    ticked = Ticked(quiet(7), quiet(8), quiet(9))
    ticked.tick(GROUP_SLEEP_TICKS + 1)
    [(_, body)] = ticked.sent()
    assert body == HEAD + b"".join(SLEEP_ROW.pack(number, 3, 4) for number in (7, 8, 9))


def test_work_begins_the_time_anew() -> None:
    replica = quiet()
    ticked = Ticked(replica)
    ticked.tick(GROUP_SLEEP_TICKS)
    ticked.ticks.worked(ticked.places[7])
    ticked.tick(GROUP_SLEEP_TICKS - 1)
    replica.commit += 1
    ticked.tick(GROUP_SLEEP_TICKS)
    assert ticked.ticks.awake_count == 1
    ticked.tick(1)
    assert ticked.ticks.awake_count == 0


def test_a_leader_with_something_to_do_does_not_sleep() -> None:
    replica = quiet()
    replica.commit = 0
    ticked = Ticked(replica)
    ticked.tick(3 * GROUP_SLEEP_TICKS)
    assert ticked.ticks.awake_count == 1


def test_a_leader_does_not_sleep_while_a_member_is_silent() -> None:
    ticked = Ticked(quiet())
    ticked.pair.network.is_down = True
    ticked.pair.network.cut()
    ticked.pair.network.run(2_000)
    ticked.tick(3 * GROUP_SLEEP_TICKS)
    assert ticked.ticks.awake_count == 1


def test_a_leader_does_not_sleep_if_it_does_not_know_where_a_member_is() -> None:
    ticked = Ticked(quiet())
    ticked.places[7].nodes = {1: 1}
    ticked.tick(3 * GROUP_SLEEP_TICKS)
    assert ticked.ticks.awake_count == 1


def test_a_follower_sleeps_when_its_leader_says_so() -> None:
    replica = quiet(leader=2)
    ticked = Ticked(replica)
    ticked.tick(3 * GROUP_SLEEP_TICKS)
    assert ticked.ticks.awake_count == 1
    ticked.ticks.received(2, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(7, 3, 4))
    assert ticked.ticks.awake_count == 0
    assert ticked.sent() == []


@pytest.mark.parametrize("disagrees", ["term", "log", "leader"])
def test_a_follower_that_does_not_agree_says_wake(disagrees: str) -> None:
    replica = quiet(leader=1 if disagrees == "leader" else 2)
    replica.is_agreeing = disagrees != "log"
    ticked = Ticked(replica)
    ticked.ticks.received(2, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(7, 4 if disagrees == "term" else 3, 4))
    assert ticked.ticks.awake_count == 1
    assert ticked.sent() == [(GroupPayload.WAKE, HEAD + NUMBER.pack(7))]


def test_another_node_that_is_no_member_changes_nothing() -> None:
    ticked = slept(quiet())
    ticked.ticks.received(3, GroupPayload.WAKE, HEAD + NUMBER.pack(7))
    ticked.ticks.received(2, GroupPayload.WAKE, HEAD + NUMBER.pack(8))
    assert ticked.ticks.awake_count == 0
    ticked.ticks.received(3, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(7, 3, 4))
    assert [kind for kind, _ in ticked.sent()] == [GroupPayload.SLEEP]


def test_a_group_wakes_once_and_its_ticks_resume() -> None:
    replica = quiet()
    ticked = slept(replica)
    ticked.ticks.received(2, GroupPayload.WAKE, HEAD + NUMBER.pack(7))
    ticked.ticks.wake(ticked.places[7])
    assert replica.calls == ["resume"]
    ticked.tick(1)
    assert replica.calls == ["resume", "tick"]


def test_a_node_that_is_silent_wakes_what_it_leads_and_what_is_led_for_it() -> None:
    ours, theirs, others = quiet(7), quiet(8, leader=2), quiet(9)
    ticked = Ticked(ours, theirs, others)
    ticked.places[9].nodes = {1: 1, 2: 1}
    ticked.ticks.received(2, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(8, 3, 4))
    ticked.tick(GROUP_SLEEP_TICKS + 1)
    assert ticked.ticks.awake_count == 0
    ticked.ticks.wake_with(2)
    assert [number for number, place in ticked.places.items() if place.is_awake] == [7, 8]


def test_members_follow_an_ended_leader_one_after_the_other() -> None:
    """Replica 1 is the first of two for even groups."""
    nodes = {1: 1, 2: 2, 3: 3}
    replicas = quiet(6, leader=3), quiet(7, leader=3)
    ticked = Ticked(*replicas)
    for place in ticked.places.values():
        place.nodes = nodes
        ticked.ticks.leader_ended(place)
    assert [replica.leader for replica in replicas] == [0, 0]
    ticked.tick(1)
    assert [replica.calls for replica in replicas] == [["leader ended", "tick"], ["tick"]]
    ticked.tick(2)
    assert [replica.calls.count("leader ended") for replica in replicas] == [1, 1]


def test_nobody_campaigns_when_another_one_leads_already() -> None:
    replica = quiet(7, leader=3)
    ticked = Ticked(replica)
    ticked.places[7].nodes = {1: 1, 2: 2, 3: 3}
    ticked.ticks.leader_ended(ticked.places[7])
    replica._leader = 2
    ticked.tick(3)
    replica._leader = 0
    ticked.tick(3)
    assert "leader ended" not in replica.calls


def test_ten_thousand_sleeping_groups_cost_no_call() -> None:
    replicas = [quiet(number) for number in range(1, 10_001)]
    ticked = slept(*replicas)
    sent = len(ticked.sent())
    ticked.tick(20)
    assert not any(replica.calls for replica in replicas)
    assert len(ticked.sent()) == sent


def test_a_difference_wakes_the_group_on_both_nodes() -> None:
    """Node 2 has group 8 asleep with another leader, and does not have 9."""
    ticked = slept(quiet(7), quiet(8), quiet(9))
    before = len(ticked.sent())
    ticked.ticks.compare(GROUP_COMPARED_MS - 1)
    assert len(ticked.sent()) == before
    ticked.ticks.compare(1)
    [(kind, digest)] = ticked.sent()[before:]
    assert kind == GroupPayload.DIGEST

    pair = Pair(LinkPurpose.CONTROL)
    places = {number: ReplicaPlace(quiet(number, leader=2 if number == 8 else 1), NODES) for number in (7, 8)}
    other = GroupTicks(2, {1: pair.link}, places, lambda _: pair.channel)
    for place in places.values():
        other.begin(place)
    other.received(1, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(7, 3, 4))
    places[8].nodes = {1: 2, 2: 1}
    other.received(1, GroupPayload.SLEEP, HEAD + SLEEP_ROW.pack(8, 3, 4))
    assert other.awake_count == 0
    other.received(1, GroupPayload.DIGEST, digest)
    [(kind, sleeping)] = pair.arrived()
    assert kind == GroupPayload.SLEEPING
    ticked.ticks.received(2, GroupPayload.SLEEPING, sleeping)
    assert [number for number, place in ticked.places.items() if place.is_awake] == [8, 9]
    assert ticked.sent()[-1] == (GroupPayload.WAKE, HEAD + NUMBER.pack(8) + NUMBER.pack(9))
    other.received(1, *ticked.sent()[-1])
    assert [number for number, place in places.items() if place.is_awake] == [8]


def test_one_node_of_a_pair_begins_the_comparison() -> None:
    ticked = slept(quiet())
    ticked.ticks.compare(GROUP_COMPARED_MS)
    assert [kind for kind, _ in ticked.sent()] == [GroupPayload.SLEEP, GroupPayload.DIGEST]
    places = {7: ReplicaPlace(quiet(), NODES)}
    other = GroupTicks(2, {1: ticked.pair.link}, places, lambda _: ticked.pair.channel)
    other.begin(places[7])
    for _ in range(GROUP_SLEEP_TICKS + 1):
        other.tick()
    other.compare(GROUP_COMPARED_MS)
    assert other.awake_count == 0
    assert [kind for kind, _ in ticked.sent()].count(GroupPayload.DIGEST) == 1


def test_a_group_that_ends_is_not_ticked_nor_compared() -> None:
    replica, other = quiet(7), quiet(8)
    ticked = Ticked(replica, other)
    ticked.ticks.end(ticked.places.pop(7))
    ticked.tick(GROUP_SLEEP_TICKS + 1)
    assert replica.calls == []
    ticked.ticks.end(ticked.places.pop(8))
    ticked.ticks.compare(GROUP_COMPARED_MS)
    [digest] = [body for kind, body in ticked.sent() if kind == GroupPayload.DIGEST]
    assert digest == HEAD + bytes(len(digest) - 1)


def test_unknown_payloads_are_refused() -> None:
    with pytest.raises(PayloadError, match="payload of the unknown kind 44"):
        Ticked().ticks.received(2, GroupPayload.RESULT, b"")
