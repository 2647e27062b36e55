"""What a node knows of the others by their pings."""

import pytest
from tests.unit.cluster.link_nodes import Network

from warren.cluster.node_digest import NodeDigest, encode_digest
from warren.cluster.node_link import NodeLink, PayloadError
from warren.cluster.other_nodes import OtherNodes
from warren.flow.alarms import Alarms, Resource
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp
from warren.metadata.proposals import LocalProposals

MEMORY = encode_digest(NodeDigest(alarms=(Resource.MEMORY,), index=1))


class KnownNodes:
    """A node that knows another one, `two`, which is up."""

    def __init__(self) -> None:
        metadata = Metadata()
        self.proposals = LocalProposals(metadata, lambda: 0)
        place = {"host": "here", "cluster_port": 1, "incarnation": 1, "feature_level": 1}
        self.proposals.apply(FormCluster(cluster_id=b"c" * 16, name="one", **place))
        self.proposals.apply(AdmitMember(name="two", **place))
        self.link: NodeLink = Network().pair()[2]
        self.reasons: list[str] = []
        self.reports: list[str] = []
        self.alarms = Alarms(self.reasons.append)
        self.others = OtherNodes(metadata, self.alarms, self.reports.append)

    def up(self) -> None:
        self.proposals.apply(MemberUp(id=2, incarnation=1, host="here", cluster_port=1, feature_level=1))


@pytest.fixture
def known() -> KnownNodes:
    known = KnownNodes()
    known.up()
    return known


def test_alarms_of_a_node_block_publishers_until_it_tells_that_they_are_over(known: KnownNodes) -> None:
    for _ in range(3):
        known.others.pinged(known.link, MEMORY)
    assert known.reasons == ["low on memory"]
    known.others.pinged(known.link, encode_digest(NodeDigest(index=2)))
    assert known.reasons == ["low on memory", ""]
    assert known.reports == [
        "memory alarm of two: publishers wait until it is cleared there",
        "no memory alarm of two any more",
    ]
    assert known.others.digests[2].index == 2


def test_a_node_that_is_gone_has_no_alarm(known: KnownNodes) -> None:
    known.others.pinged(known.link, MEMORY)
    known.others.forget(2)
    known.others.forget(2)
    assert known.reasons == ["low on memory", ""]
    assert not known.others.digests
    # The same digest is not taken for one that is known.
    known.others.pinged(known.link, MEMORY)
    assert known.alarms.reason == "low on memory"


def test_a_node_that_is_not_up_is_not_counted_on(known: KnownNodes) -> None:
    known.proposals.apply(MemberDown(id=2, incarnation=1))
    known.others.pinged(known.link, MEMORY)
    assert not known.reasons
    known.up()
    known.others.pinged(known.link, MEMORY)
    assert known.reasons == ["low on memory"]


def test_an_empty_digest_says_nothing_and_a_malformed_one_is_refused(known: KnownNodes) -> None:
    known.others.pinged(known.link, MEMORY)
    known.others.pinged(known.link, b"")
    with pytest.raises(PayloadError, match="unknown digest"):
        known.others.pinged(known.link, b"\xc1")
    assert known.reasons == ["low on memory"]
