"""The metadata group over the links: messages of the Raft core, proposals for the leader, and its refusals.

    control │ RAFT      a message, as `journal/message_codec` encodes it
            │ PROPOSAL  a proposal for the leader
            │ REFUSAL   the leader's answer to a proposal that it does not put into the log
    bulk    │ SNAPSHOT  a message, IMAGE … the image of the metadata in it, IMAGE_END

What the Raft core sends is repeated by it, so a message that a link cannot take is dropped. Proposals are
handed over again when the session is lost in which they, or refusals of them, may have been. An image is made
and sent piece by piece, as the link takes it. An answer to a heartbeat that nobody waits for leaves with the
next tick, and so with the ping of that time.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum

from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.journal.codec import CodecError
from warren.journal.journal import Journal
from warren.journal.message_codec import (
    MessageCodec,
    decode_proposal,
    decode_refusal,
    encode_proposal,
    encode_refusal,
)
from warren.journal.proposal import Proposal
from warren.journal.snapshot import JournalSnapshot
from warren.limits_cluster import CLUSTER_IMAGE_PIECES_PER_TURN, CLUSTER_IMAGE_SIZE_MAX
from warren.metadata.commands import Reply
from warren.replication.raft.raft_messages import MessageKind, RaftMessage


class MetadataPayload(IntEnum):
    """The kinds of payloads of the metadata group; the numbers are those on the wire."""

    RAFT = 1
    SNAPSHOT = 2
    PROPOSAL = 3
    REFUSAL = 4
    IMAGE = 5
    IMAGE_END = 6


class MetadataPeers:
    """The way to the other members: port `OtherMembers` of the journal."""

    def __init__(self, codec: MessageCodec) -> None:
        """`begin` follows."""
        self._codec = codec
        # The links to the other members, by their numbers, which `ClusterMember` keeps.
        self.links: dict[int, NodeLink] = {}
        self._journal: Journal | None = None
        # Answers to heartbeats that leave with the next tick, by member.
        self._answers: dict[int, RaftMessage] = {}
        # Members to which a snapshot could not be sent, which is told in a later turn.
        self._unsent: list[int] = []
        # What is left of images that are sent, by member; and those that arrive, behind their messages.
        self._images: dict[int, Iterator[bytes]] = {}
        self._arriving: dict[int, tuple[bytes, bytearray]] = {}

    def begin(self, journal: Journal) -> None:
        """Hand what arrives to `journal` from now on."""
        self._journal = journal

    # Port `OtherMembers`.

    def send(self, messages: Sequence[RaftMessage]) -> None:
        """Send messages of the Raft core, each to the member that it names."""
        for message in messages:
            if message.kind is MessageKind.HEARTBEAT_RESPONSE and not message.context:
                self._answers[message.to] = message
                continue
            purpose = LinkPurpose.CONTROL if message.snapshot is None else LinkPurpose.BULK
            link = self.links.get(message.to)
            is_sent = link is not None and link.is_writable(purpose)
            if link is not None and is_sent:
                self._send(link, message)
            elif message.snapshot is not None:
                self._unsent.append(message.to)

    def forward(self, leader: int, proposal: Proposal) -> None:
        """Send a proposal to the leader, behind all that were sent to it before."""
        link = self.links.get(leader)
        if link is not None:
            link.send(LinkPurpose.CONTROL, MetadataPayload.PROPOSAL, encode_proposal(proposal))

    def refuse(self, proposal: Proposal, reply: Reply) -> None:
        """Tell the member that has sent `proposal` that it is refused, and not in the log."""
        link = self.links.get(proposal.incarnation.node)
        if link is not None:
            link.send(LinkPurpose.CONTROL, MetadataPayload.REFUSAL, encode_refusal(proposal, reply))

    # What the links tell.

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Take a payload of a member. Raises PayloadError if it is none of the metadata group."""
        journal, node = self._journal, link.peer.node_id
        if journal is None:
            return
        try:
            match kind:
                case MetadataPayload.RAFT:
                    self._step(journal, node, body, b"")
                case MetadataPayload.SNAPSHOT:
                    self._arriving[node] = body, bytearray()
                case MetadataPayload.IMAGE:
                    self._add_piece(node, body)
                case MetadataPayload.IMAGE_END:
                    message, image = self._arrived(node)
                    self._step(journal, node, message, bytes(image))
                case MetadataPayload.PROPOSAL:
                    journal.take_forwarded(decode_proposal(body, node))
                case MetadataPayload.REFUSAL:
                    refusal = decode_refusal(body)
                    journal.take_refusal(refusal.incarnation, refusal.serial, refusal.reply)
                case _:
                    raise PayloadError(f"payload of the unknown kind {kind}")
        except CodecError as error:
            raise PayloadError(str(error)) from error

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Note that what was sent, or was to be received, may be lost."""
        if self._journal is None:
            return
        if purpose is LinkPurpose.CONTROL:
            self._journal.forward_again(link.peer.node_id)
        elif purpose is LinkPurpose.BULK:
            self._images.pop(link.peer.node_id, None)
            self._arriving.pop(link.peer.node_id, None)
            self._journal.snapshot_sent(link.peer.node_id, is_done=False)

    def silent(self, link: NodeLink) -> None:
        """Elect another leader if it was this one, and its process has ended."""
        if self._journal is not None and link.is_gone:
            self._journal.process_ended(link.peer.node_id)

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Go on with an image that the link can take more of."""
        if purpose is LinkPurpose.BULK and link.peer.node_id in self._images:
            self._send_pieces(link.peer.node_id)

    def tick(self) -> None:
        """Note that METADATA_TICK_MS have passed."""
        assert self._journal is not None
        for node, answer in self._answers.items():
            link = self.links.get(node)
            if link is not None and link.is_writable(LinkPurpose.CONTROL):
                self._send(link, answer)
        self._answers.clear()
        unsent, self._unsent = self._unsent, []
        for node in unsent:
            self._journal.snapshot_sent(node, is_done=False)
        for node in list(self._images):
            self._send_pieces(node)
        self._journal.tick()

    # --- private -------------------------------------------------------------------------------------

    def _send(self, link: NodeLink, message: RaftMessage) -> None:
        encoded = self._codec.encode(message)
        if message.snapshot is None:
            link.send(LinkPurpose.CONTROL, MetadataPayload.RAFT, encoded)
            return
        image = message.snapshot.payload
        assert isinstance(image, JournalSnapshot), "only what is applied is sent"
        link.send(LinkPurpose.BULK, MetadataPayload.SNAPSHOT, encoded)
        self._images[message.to] = iter(image)
        self._send_pieces(message.to)

    def _send_pieces(self, node: int) -> None:
        """Send the next pieces of an image, as many as a turn may make and the link takes."""
        link = self.links.get(node)
        if link is None:
            del self._images[node]
            return
        pieces = self._images[node]
        for _ in range(CLUSTER_IMAGE_PIECES_PER_TURN):
            if not link.is_writable(LinkPurpose.BULK):
                return
            piece = next(pieces, None)
            if piece is None:
                del self._images[node]
                link.send(LinkPurpose.BULK, MetadataPayload.IMAGE_END, b"")
                return
            link.send(LinkPurpose.BULK, MetadataPayload.IMAGE, piece)

    def _add_piece(self, node: int, piece: bytes) -> None:
        if node not in self._arriving:
            raise PayloadError("a piece of an image without its message")
        _, image = self._arriving[node]
        if len(image) + len(piece) > CLUSTER_IMAGE_SIZE_MAX:
            raise PayloadError(f"an image of the metadata with more than {CLUSTER_IMAGE_SIZE_MAX} bytes")
        image += piece

    def _arrived(self, node: int) -> tuple[bytes, bytearray]:
        if node not in self._arriving:
            raise PayloadError("the end of an image without its message")
        return self._arriving.pop(node)

    def _step(self, journal: Journal, node: int, data: bytes, image: bytes) -> None:
        message = self._codec.decode(data, image)
        if message.sender != node:
            raise PayloadError(f"node {node} sends a message of member {message.sender}")
        journal.step(message)
