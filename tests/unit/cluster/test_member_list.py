"""The members of a cluster, as nodes tell each other: who is told takes only what is not older."""

import msgspec
import pytest
from tests.sim.test_journal_replay import everything

from warren.cluster.member_list import MemberList, MemberListPayload
from warren.cluster.node_link import PayloadError, PeerNode
from warren.limits_metadata import CLUSTER_MEMBERS_MAX
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, RemoveMember
from warren.metadata.proposals import LocalProposals

TWO = [2, "two@h", "h", 25_672]
THREE = [3, "three@h", "h", 25_673]


@pytest.fixture
def metadata() -> Metadata:
    """Those of a node whose cluster has had a second member, which was removed."""
    metadata = Metadata()
    proposals = LocalProposals(metadata, lambda: 0)
    proposals.apply(
        FormCluster(
            cluster_id=bytes(16), name="one@h", host="h", cluster_port=1, incarnation=1, feature_level=1
        )
    )
    proposals.apply(AdmitMember(name="two@h", host="h", cluster_port=2, incarnation=1, feature_level=1))
    proposals.apply(RemoveMember(id=2))
    metadata.index = 7
    return metadata


def told(metadata: Metadata, content: object) -> list[PeerNode]:
    """Those to which a node with these metadata connects when it is told `content`."""
    peers: list[PeerNode] = []
    before = everything(metadata)
    MemberList(metadata, {}, peers.append).received(msgspec.msgpack.encode(content))
    assert everything(metadata) == before
    return peers


@pytest.mark.parametrize("index", [7, 8])
def test_a_node_connects_to_members_that_it_does_not_know_yet(metadata: Metadata, index: int) -> None:
    assert told(metadata, [index, [THREE]]) == [PeerNode(node_id=3, name="three@h", host="h", port=25_673)]


def test_what_is_older_than_the_metadata_is_ignored(metadata: Metadata) -> None:
    assert told(metadata, [6, [THREE]]) == []


def test_a_member_that_was_removed_is_not_connected_again(metadata: Metadata) -> None:
    assert told(metadata, [9, [TWO]]) == []


@pytest.mark.parametrize(
    "content",
    [
        None, 7, [], [7], [-1, []], [7, [], 1], [7, None], [7, [3]],
        [7, [[0, *THREE[1:]]]], [7, [[1 << 16, *THREE[1:]]]], [7, [[3, "", "h", 1]]], [7, [[3, "n", "", 1]]],
        [7, [[3, "a\nb", "h", 1]]], [7, [[3, "n", "h" * 256, 1]]], [7, [[3, "n", "h", 0]]],
        [7, [[3, "n", "h", 1 << 16]]], [7, [THREE] * (CLUSTER_MEMBERS_MAX + 1)],
    ],
)  # fmt: skip
def test_a_malformed_list_is_refused(metadata: Metadata, content: object) -> None:
    with pytest.raises(PayloadError):
        told(metadata, content)


def test_only_lists_of_members_are_taken() -> None:
    assert [kind for kind in range(256) if MemberList.takes(kind)] == [MemberListPayload.MEMBERS]
