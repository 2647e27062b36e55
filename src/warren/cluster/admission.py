"""Admission of a node to the cluster: it asks a member over a link of its own, and is told its number.

    joins │ REQUEST  [ host, cluster port ]                           name, start and level are in the HELLO
          │ ANSWER   [ refusal, number, cluster id, [ [ number, name, host, cluster port ], … ],
          │            null or [ name, seed ] of a node that is in no cluster ]

The member has the others agree before it answers. A node that was admitted and has not heard the answer asks
again: while its record says that it was never up, and has its name and its address, the answer is the same.
"""

from collections.abc import Callable
from enum import IntEnum

import msgspec
from msgspec import Struct

from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.errors import AmqpError
from warren.limits_cluster import (
    CLUSTER_HOST_SIZE_MAX,
    CLUSTER_NODE_NAME_SIZE_MAX,
    CLUSTER_REFUSAL_SIZE_MAX,
)
from warren.metadata.commands import Outcome, Reply
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster
from warren.metadata.proposals import Proposals
from warren.metadata.records import MemberRecord
from warren.model.coroutine_driver import drive


class AdmissionPayload(IntEnum):
    """The kinds of payloads; the numbers are those on the wire."""

    REQUEST = 1
    ANSWER = 2


class KnownMember(Struct, frozen=True, array_like=True):
    """A member, and where the others reach it."""

    node_id: int
    name: str
    host: str
    port: int


class AdmissionRequest(Struct, frozen=True, array_like=True):
    """Where the members reach the node that asks."""

    host: str
    port: int


class BlankNode(Struct, frozen=True, array_like=True):
    """A node that is in no cluster yet, and the one that it takes for the seed; empty: the least name."""

    name: str
    seed: str


class AdmissionAnswer(Struct, frozen=True, array_like=True):
    """The answer to a request: the number of the new member, or why it is none."""

    # Empty if it is one.
    refusal: str = ""
    node_id: int = 0
    cluster_id: bytes = b""
    members: tuple[KnownMember, ...] = ()
    # Of a node that has no cluster into which it could admit another one.
    blank: BlankNode | None = None


class Admission:
    """What a member does with nodes that ask."""

    def __init__(
        self,
        metadata: Metadata,
        proposals: Proposals,
        form: Callable[[], FormCluster],
        *,
        while_blank: AdmissionAnswer | None = None,
    ) -> None:
        """`form` makes the command by which this node, which has met no other, becomes the first member.

        `while_blank` is what it answers until then; without it, the first request has it begin a cluster.
        """
        self._metadata = metadata
        self._proposals = proposals
        self._form = form
        self._while_blank = while_blank

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Take a payload of a node that is in no cluster. Raises PayloadError."""
        if kind != AdmissionPayload.REQUEST:
            raise PayloadError(f"payload of the unknown kind {kind}")
        try:
            request = msgspec.msgpack.decode(body, type=AdmissionRequest)
        except msgspec.MsgspecError as error:
            raise PayloadError(f"unknown request: {error}") from error
        if not (0 < len(request.host) <= CLUSTER_HOST_SIZE_MAX and 0 < request.port < 1 << 16):
            raise PayloadError("a request without an address")
        drive(self._answer(link, request))

    async def form(self) -> Reply:
        """Begin a cluster, of which this node is the first member."""
        return await self._proposals.propose(self._form())

    async def _answer(self, link: NodeLink, request: AdmissionRequest) -> None:
        try:
            answer = await self._admitted(link, request)
        except AmqpError as error:
            answer = AdmissionAnswer(refusal=str(error))
        link.send(LinkPurpose.JOIN, AdmissionPayload.ANSWER, msgspec.msgpack.encode(answer))

    async def _admitted(self, link: NodeLink, request: AdmissionRequest) -> AdmissionAnswer:
        """Have the node admitted, in a cluster that begins with this node if it is in none."""
        members = self._metadata.members
        if not members.by_id:
            if self._while_blank is not None:
                return self._while_blank
            formed = await self.form()
            if formed.outcome is Outcome.REFUSED:
                return AdmissionAnswer(refusal=formed.text)
        hello = link.hello
        assert hello is not None, "a payload comes after the HELLO"
        command = AdmitMember(
            name=hello.name, host=request.host, cluster_port=request.port,
            incarnation=hello.incarnation, feature_level=hello.feature_level,
        )  # fmt: skip
        reply = await self._proposals.propose(command)
        record = members.named(hello.name)
        if reply.outcome is not Outcome.DONE and not _is_same(record, request):
            return AdmissionAnswer(refusal=reply.text or "the node cannot be admitted")
        assert record is not None
        known = [
            KnownMember(member.id, member.name, member.host, member.cluster_port)
            for member in members.by_id.values()
            if member.id != record.id
        ]
        return AdmissionAnswer("", record.id, members.cluster_id, tuple(known))


def ask(link: NodeLink, request: AdmissionRequest) -> None:
    """Ask the member at the other end of `link`; again when the session is lost."""
    link.send(LinkPurpose.JOIN, AdmissionPayload.REQUEST, msgspec.msgpack.encode(request))


def read_answer(kind: int, body: bytes) -> AdmissionAnswer:
    """Return the answer in a payload. Raises PayloadError if it is none."""
    if kind != AdmissionPayload.ANSWER:
        raise PayloadError(f"payload of the unknown kind {kind}")
    try:
        answer = msgspec.msgpack.decode(body, type=AdmissionAnswer)
    except msgspec.MsgspecError as error:
        raise PayloadError(f"unknown answer: {error}") from error
    if answer.blank is not None and not (_is_name(answer.blank.name) and _is_name(answer.blank.seed or "-")):
        raise PayloadError("an answer with a name that no node has")
    text = "".join(one if one.isprintable() else "?" for one in answer.refusal[:CLUSTER_REFUSAL_SIZE_MAX])
    return msgspec.structs.replace(answer, refusal=text)


def _is_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name.encode()) <= CLUSTER_NODE_NAME_SIZE_MAX


def _is_same(record: MemberRecord | None, request: AdmissionRequest) -> bool:
    """True if a record is that of a node which was admitted and has not begun yet."""
    return (
        record is not None
        and not record.is_up
        and (record.host, record.cluster_port) == (request.host, request.port)
    )
