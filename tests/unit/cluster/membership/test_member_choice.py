"""The node that gets one more replica of a quorum queue."""

from warren.cluster.membership.member_choice import next_member
from warren.metadata.commands import DeclareQueue, PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp, SetMemberDraining
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord


class FourNodes:
    """A cluster of four nodes that are up, with quorum queues."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.proposals = LocalProposals(self.metadata, lambda: 0)
        self.proposals.apply(
            FormCluster(
                cluster_id=b"c" * 16, name="n1", host="h", cluster_port=1, incarnation=1, feature_level=1
            )
        )
        for id in (2, 3, 4):
            self.proposals.apply(
                AdmitMember(name=f"n{id}", host="h", cluster_port=id, incarnation=1, feature_level=1)
            )
            self.proposals.apply(MemberUp(id=id, incarnation=1, host="h", cluster_port=id, feature_level=1))
        self.proposals.apply(PutVhost(name="/"))

    def declare(self, name: str, *nodes: int) -> QueueRecord:
        """Declare a quorum queue with replicas on these nodes."""
        self.proposals.apply(
            DeclareQueue(
                vhost="/",
                name=name,
                durable=True,
                arguments={"x-queue-type": "quorum"},
                home=nodes[0],
                members=nodes,
            )
        )
        return self.metadata.vhosts.by_name["/"].topology.queues[name]


def test_the_node_with_the_fewest_replicas_gets_the_next_one() -> None:
    nodes = FourNodes()
    nodes.declare("other", 2, 3)
    assert next_member(nodes.metadata, nodes.declare("q", 1, 2)) == 4


def test_a_node_that_is_down_or_drained_gets_none() -> None:
    nodes = FourNodes()
    queue = nodes.declare("q", 1)
    nodes.proposals.apply(MemberDown(id=2, incarnation=1))
    nodes.proposals.apply(SetMemberDraining(id=3, is_draining=True))
    assert next_member(nodes.metadata, queue) == 4
    nodes.proposals.apply(MemberDown(id=4, incarnation=1))
    assert next_member(nodes.metadata, queue) is None


def test_a_queue_on_all_nodes_has_no_next_one() -> None:
    nodes = FourNodes()
    assert next_member(nodes.metadata, nodes.declare("q", 1, 2, 3, 4)) is None
