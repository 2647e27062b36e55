"""Tells each other who the members are, for one that was away while others joined: one of these may lead.

    control │ MEMBERS  [ index, [ [ number, name, host, cluster port ], … ] ]

Only the metadata say who is a member, and a node gets them from the leader. But of two nodes that with the
smaller number connects to the other: one that was away while the leader joined, or moved to another address,
does not know where it is, and the leader waits for it. So each node tells what it knows at the begin of each
session, and when that changes. One whose metadata are not newer connects to whom it is told of.
"""

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError, PeerNode
from warren.limits_metadata import CLUSTER_MEMBERS_MAX, MEMBER_ID_MAX, MEMBER_NAME_SIZE_MAX, MEMBER_PORT_MAX
from warren.metadata.machine import Metadata


class MemberListPayload(IntEnum):
    """The kinds of payloads of a control connection; the numbers are those on the wire."""

    MEMBERS = 9


_Name = Annotated[str, Meta(min_length=1, max_length=MEMBER_NAME_SIZE_MAX, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]


class _ListedMember(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A member, and where the others reach it."""

    node_id: Annotated[int, Meta(ge=1, le=MEMBER_ID_MAX)]
    name: _Name
    host: _Name
    port: Annotated[int, Meta(ge=1, le=MEMBER_PORT_MAX)]


class _ListedMembers(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The members, as the metadata have them at an index."""

    index: Annotated[int, Meta(ge=0)]
    members: Annotated[tuple[_ListedMember, ...], Meta(max_length=CLUSTER_MEMBERS_MAX)]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_ListedMembers)


class MemberList:
    """The members of the cluster, as this node tells them and is told."""

    def __init__(
        self, metadata: Metadata, links: Mapping[int, NodeLink], connect: Callable[[PeerNode], object]
    ) -> None:
        """`links` has the links to the others; `connect` is called with those that this node is told of."""
        self._metadata = metadata
        self._links = links
        self._connect = connect

    @staticmethod
    def takes(kind: int) -> bool:
        """True if payloads of `kind` are for `received`."""
        return kind == MemberListPayload.MEMBERS

    def tell(self, link: NodeLink) -> None:
        """Tell one of them who the members are."""
        self._tell((link,))

    def tell_all(self) -> None:
        """Tell all of them."""
        self._tell(self._links.values())

    def _tell(self, links: Collection[NodeLink]) -> None:
        members = tuple(
            _ListedMember(record.id, record.name, record.host, record.cluster_port)
            for record in self._metadata.members.by_id.values()
        )
        if members:
            told = _encoder.encode(_ListedMembers(self._metadata.index, members))
            for link in list(links):
                link.send(LinkPurpose.CONTROL, MemberListPayload.MEMBERS, told)

    def received(self, body: bytes) -> None:
        """Take what another one tells. Raises PayloadError."""
        try:
            told = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise PayloadError(f"unknown list of members: {error}") from error
        metadata = self._metadata
        # A change is told while it is applied, before the index is that of the change.
        if told.index >= metadata.index:
            for member in told.members:
                if member.node_id not in metadata.members.removed:
                    self._connect(
                        PeerNode(node_id=member.node_id, name=member.name, host=member.host, port=member.port)
                    )
