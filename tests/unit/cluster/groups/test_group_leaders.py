"""Who leads which group, as nodes tell each other."""

import pytest
from tests.unit.cluster.groups.memory_replica import Pair

from warren.cluster.groups import group_leaders
from warren.cluster.groups.group_leaders import NO_LEADER, GroupLeader, GroupLeaders
from warren.cluster.groups.group_payloads import LEADER_ROW, VERSION, GroupPayload
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import PayloadError

HEAD = bytes((VERSION,))


class Nodes:
    """Two nodes with their tables, 1 and 2."""

    def __init__(self) -> None:
        self.pair = Pair(LinkPurpose.DATA)
        self.changes = 0
        self.one = GroupLeaders(1, self.changed)
        self.two = GroupLeaders(2, lambda: None)
        self.heard: list[tuple[int, GroupLeader]] = []
        self.seen = 0

    def changed(self) -> None:
        self.changes += 1

    def flush(self) -> None:
        """Have node 1 tell node 2."""
        self.one.flush(2, self.pair.channel)
        arrived = self.pair.arrived()
        for kind, body in arrived[self.seen :]:
            assert kind == GroupPayload.LEADERS
            self.two.received(1, body)
        self.seen = len(arrived)


def test_a_leader_is_told_when_a_session_begins_and_when_it_changes() -> None:
    nodes = Nodes()
    nodes.one.opened(7, 3)
    assert nodes.one.leader(7) == GroupLeader(1, 3)
    nodes.flush()
    assert nodes.two.leader(7) == NO_LEADER
    nodes.one.session_began(2)
    nodes.flush()
    assert nodes.two.leader(7) == GroupLeader(1, 3)
    nodes.two.listen(8, lambda number, leader: nodes.heard.append((number, leader)))
    nodes.one.opened(8, 1)
    nodes.one.resigned(7, 3)
    assert nodes.changes == 4
    nodes.flush()
    assert nodes.two.leader(7) == GroupLeader(0, 3)
    assert nodes.two.leader(8) == GroupLeader(1, 1)
    assert nodes.heard == [(8, GroupLeader(1, 1))]


def test_the_highest_term_counts() -> None:
    nodes = Nodes()
    nodes.two.received(1, HEAD + LEADER_ROW.pack(7, 5, 1))
    nodes.two.received(3, HEAD + LEADER_ROW.pack(7, 4, 1))
    assert nodes.two.leader(7) == GroupLeader(1, 5)
    nodes.two.received(3, HEAD + LEADER_ROW.pack(7, 6, 1))
    nodes.two.received(1, HEAD + LEADER_ROW.pack(7, 5, 0))
    assert nodes.two.leader(7) == GroupLeader(3, 6)


def test_a_group_that_leads_again_is_not_told_to_have_resigned() -> None:
    nodes = Nodes()
    nodes.one.session_began(2)
    nodes.one.opened(7, 3)
    nodes.one.opened(7, 5)
    nodes.one.resigned(7, 3)
    nodes.one.resigned(8, 3)
    nodes.flush()
    assert nodes.two.leader(7) == GroupLeader(1, 5)
    assert nodes.two.leader(8) == NO_LEADER


def test_leaders_are_away_until_they_have_told_again_in_another_session() -> None:
    nodes = Nodes()
    nodes.one.session_began(2)
    nodes.one.opened(7, 3)
    nodes.one.opened(8, 3)
    nodes.flush()
    nodes.two.listen(7, lambda number, leader: nodes.heard.append((number, leader)))
    nodes.two.session_lost(1)
    nodes.one.session_lost(2)
    nodes.one.resigned(8, 3)
    nodes.flush()
    nodes.one.session_began(2)
    nodes.flush()
    assert nodes.two.leader(7) == GroupLeader(1, 3)
    assert nodes.two.leader(8) == GroupLeader(1, 3, is_away=True)
    assert nodes.heard == [(7, GroupLeader(1, 3, is_away=True)), (7, GroupLeader(1, 3))]


def test_a_listener_is_not_called_any_more() -> None:
    nodes = Nodes()

    def listener(number: int, leader: GroupLeader) -> None:
        nodes.heard.append((number, leader))

    nodes.two.listen(7, listener)
    nodes.two.ignore(7, listener)
    nodes.two.received(1, HEAD + LEADER_ROW.pack(7, 5, 1))
    assert nodes.heard == []


def test_all_groups_are_told_in_pieces_as_the_link_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_leaders, "_ROWS_MAX", 2)
    nodes = Nodes()
    for number in range(1, 6):
        nodes.one.opened(number, 3)
    nodes.one.session_began(2)
    while nodes.pair.link.is_writable(LinkPurpose.DATA):
        nodes.pair.link.send(LinkPurpose.DATA, GroupPayload.LEADERS, HEAD + LEADER_ROW.pack(9, 1, 1) * 60_000)
    nodes.flush()
    assert nodes.two.leader(1) == NO_LEADER
    nodes.flush()
    assert [nodes.two.leader(number).node for number in range(1, 6)] == [1] * 5
    assert [len(body) for _, body in nodes.pair.arrived()][-3:] == [35, 35, 18]


def test_a_deleted_queue_is_forgotten() -> None:
    nodes = Nodes()
    nodes.one.session_began(2)
    nodes.one.opened(7, 3)
    nodes.one.forget(7)
    nodes.flush()
    assert nodes.one.leader(7) == NO_LEADER
    assert nodes.two.leader(7) == NO_LEADER


def test_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_leaders, "GROUP_LEADERS_MAX", 1)
    nodes = Nodes()
    nodes.two.received(1, HEAD + LEADER_ROW.pack(7, 5, 1))
    with pytest.raises(PayloadError, match="more than 1 groups"):
        nodes.two.received(1, HEAD + LEADER_ROW.pack(8, 5, 1))


@pytest.mark.parametrize("row", [(0, 1, 1), (1, 0, 1), (1, 1 << 63, 1), (1, 1, 2)])
def test_rows_are_checked(row: tuple[int, int, int]) -> None:
    with pytest.raises(PayloadError, match="the leader of group"):
        Nodes().two.received(1, HEAD + LEADER_ROW.pack(*row))
