"""What follows from being in the minority, or from not reaching the nodes of a list."""

import pytest
from tests.unit.session.client import Answer

from warren.cluster.cluster_member import TICK_MS
from warren.cluster.minority import NOTICED_MS, Minority
from warren.cluster.partition_handling import PartitionHandling, PartitionMode, PartitionSettings
from warren.errors import InternalError
from warren.limits_cluster import CLUSTER_MINORITY_MS, CLUSTER_PAUSE_MS
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster
from warren.metadata.proposals import LocalProposals
from warren.replication.raft.change import Configuration

SHUT_OUT = "clients are shut out: "
LET_IN = "clients are let in again"


class HandlingNode:
    """Node one of a cluster of three, which shuts its clients out and lets them in."""

    def __init__(self, mode: PartitionMode, *listed: str, heard: tuple[int, ...] = (1, 2, 3)) -> None:
        metadata = Metadata()
        proposals = LocalProposals(metadata, lambda: 0)
        place = {"host": "here", "cluster_port": 1, "incarnation": 1, "feature_level": 1}
        proposals.apply(FormCluster(cluster_id=b"c" * 16, name="one", **place))
        for name in ("two", "three"):
            proposals.apply(AdmitMember(name=name, **place))
        self.heard = set(heard)
        self.leader = 1
        self.barriers: list[Answer] = []
        self.barrier_fails = False
        self.calls: list[str] = []
        self.reports: list[str] = []
        minority = Minority(
            lambda: Configuration((1, 2, 3)), lambda: self.leader, lambda node: node in self.heard
        )
        self.minority = minority
        self.handling = PartitionHandling(
            minority, metadata, self._barrier,
            settings=PartitionSettings(mode=mode, nodes=listed), access=self, report=self.reports.append,
        )  # fmt: skip
        self.tick()

    async def _barrier(self) -> None:
        if self.barrier_fails:
            raise InternalError("no majority")
        answer = Answer()
        self.barriers.append(answer)
        await answer

    def pause(self, reason: str) -> None:
        self.calls.append(f"pause: {reason}")

    def resume(self) -> None:
        self.calls.append("resume")

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.minority.tick(TICK_MS)
            self.handling.tick(TICK_MS)

    def lose(self, *heard: int) -> None:
        """Hear only these for longer than the time after which clients are shut out."""
        self.heard = {1, *heard}
        self.tick(CLUSTER_PAUSE_MS // TICK_MS)


@pytest.mark.parametrize("mode", [PartitionMode.IGNORE, PartitionMode.AUTOHEAL])
def test_a_partition_that_is_ignored_is_reported_only(mode: PartitionMode) -> None:
    node = HandlingNode(mode)
    node.lose()
    node.heard = {1, 2, 3}
    node.tick()
    assert node.calls == []
    assert node.reports == [
        "this node is in the minority: two, three not heard; changes wait for a majority",
        "this node is in the majority again",
    ]


def test_a_node_in_the_minority_pauses_and_resumes_with_the_metadata_of_the_others() -> None:
    node = HandlingNode(PartitionMode.PAUSE_MINORITY)
    node.lose()
    node.tick(5)
    reason = "1 of 3 voters are reached, no majority (pause_minority)"
    assert node.calls == [f"pause: {reason}"]
    assert node.handling.is_paused
    node.heard = {1, 2}
    node.tick(5)
    assert len(node.barriers) == 1
    assert node.handling.is_paused
    node.barriers[0].arrive()
    assert node.calls[1:] == ["resume"]
    assert not node.handling.is_paused
    assert [report for report in node.reports if report.startswith(SHUT_OUT)] == [SHUT_OUT + reason]
    assert node.reports[-1] == LET_IN
    node.tick(5)
    assert len(node.calls) == 2


def test_a_node_that_is_in_the_minority_for_a_moment_shuts_nobody_out() -> None:
    node = HandlingNode(PartitionMode.PAUSE_MINORITY)
    node.heard = {1}
    node.tick(-(-(CLUSTER_MINORITY_MS - NOTICED_MS) // TICK_MS))
    assert node.minority.is_in_minority
    node.tick((CLUSTER_PAUSE_MS - CLUSTER_MINORITY_MS) // TICK_MS - 1)
    assert node.calls == []
    node.heard = {1, 3}
    node.tick(20)
    assert node.calls == []


def test_a_node_that_is_cut_off_again_before_it_has_the_metadata_stays_paused() -> None:
    node = HandlingNode(PartitionMode.PAUSE_MINORITY)
    node.lose()
    node.heard = {1, 2}
    node.tick()
    node.lose()
    node.barriers.pop().arrive()
    assert node.handling.is_paused
    node.heard = {1, 2}
    node.barrier_fails = True
    node.tick(2)
    assert node.handling.is_paused
    node.barrier_fails = False
    node.tick()
    node.barriers.pop().arrive()
    assert node.calls[1:] == ["resume"]


def test_a_node_without_a_leader_pauses_in_the_end() -> None:
    node = HandlingNode(PartitionMode.PAUSE_MINORITY)
    node.leader = 0
    node.lose(2, 3)
    assert node.calls == []
    node.tick(100)
    assert node.calls == ["pause: no leader of the metadata is known (pause_minority)"]
    assert "no leader is known" in node.reports[0]


def test_a_node_pauses_when_all_listed_nodes_are_down() -> None:
    node = HandlingNode(PartitionMode.PAUSE_IF_ALL_DOWN, "two", "elsewhere")
    node.lose(2)
    assert node.calls == []
    node.lose(3)
    assert node.calls == ["pause: none of two, elsewhere is reached (pause_if_all_down)"]
    # It may resume in the minority: the listed node decides.
    node.lose()
    node.heard = {1, 2}
    node.leader = 0
    node.tick()
    assert node.calls[1:] == ["resume"]
    assert node.barriers == []


@pytest.mark.parametrize("listed", [("one",), ("elsewhere",), ()])
def test_a_node_that_is_listed_does_not_pause_nor_if_no_member_is(listed: tuple[str, ...]) -> None:
    node = HandlingNode(PartitionMode.PAUSE_IF_ALL_DOWN, *listed)
    node.lose()
    assert node.calls == []
    assert node.minority.is_in_minority


def test_a_node_that_has_not_met_the_majority_since_its_start_shuts_nobody_out() -> None:
    node = HandlingNode(PartitionMode.PAUSE_MINORITY, heard=(1,))
    node.lose()
    assert (node.calls, node.reports) == ([], [])
    node.heard = {1, 2, 3}
    node.tick()
    node.lose()
    assert len(node.calls) == 1
