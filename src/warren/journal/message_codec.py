"""Encodes what the members of the metadata group send one another, as MessagePack.

    message  │ [ kind, to, sender, term, index, log term, [ entry, … ], commit, whether it is refused, hint,
             │   whether a vote is forced, context, snapshot or nil ]
    entry    │ [ kind, term, index, payload ]
    snapshot │ [ index, term, [ voter, … ], [ voter of the outgoing majority, … ], [ learner, … ],
             │   [ voter that becomes a learner, … ], whether a joint configuration is left by itself ]
    proposal │ [ incarnation, serial, user, command ]
    refusal  │ [ incarnation, serial, outcome, text ]

The payload of an entry is the record of the log (`codec`), a change of the members, or empty. Secrets in it
are not encrypted as they are in the file, since each node has a key of its own. The image of a snapshot goes
beside its message, since it may be large. The proposer's node is that of the link.
"""

import msgspec
from msgspec import Struct

from warren.journal.codec import CodecError, decode_command, decode_entry, encode_command, encode_entry
from warren.journal.metadata_log import LoggedProposal
from warren.journal.parameter_cipher import Cipher
from warren.journal.proposal import Proposal
from warren.journal.received_metadata import read_image
from warren.metadata.commands import MetadataCommand, Outcome, Reply, SetParameter
from warren.metadata.incarnation import Incarnation
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryKind, MessageKind, RaftMessage, Snapshot


class _Entry(Struct, frozen=True, array_like=True):
    kind: EntryKind
    term: int
    index: int
    payload: bytes


class _Snapshot(Struct, frozen=True, array_like=True):
    index: int
    term: int
    voters: tuple[int, ...]
    outgoing: tuple[int, ...]
    learners: tuple[int, ...]
    learners_next: tuple[int, ...]
    auto_leave: bool


class _Message(Struct, frozen=True, array_like=True):
    kind: MessageKind
    to: int
    sender: int
    term: int
    index: int
    log_term: int
    entries: tuple[_Entry, ...]
    commit: int
    is_rejected: bool
    hint: int
    is_forced: bool
    context: bytes
    snapshot: _Snapshot | None


class _Proposal(Struct, frozen=True, array_like=True):
    incarnation: int
    serial: int
    user: str
    command: bytes


class Refusal(Struct, frozen=True, array_like=True):
    """The leader's refusal of a proposal of one run of a node."""

    incarnation: int
    serial: int
    outcome: Outcome
    text: str

    @property
    def reply(self) -> Reply:
        """The reply to the proposal."""
        return Reply(self.outcome, self.text)


class MessageCodec:
    """Encodes for, and decodes on, a node whose file encrypts secrets with `cipher`."""

    def __init__(self, cipher: Cipher | None) -> None:
        self._cipher = cipher

    def encode(self, message: RaftMessage) -> bytes:
        """Encode a message, without the image of its snapshot."""
        snapshot = message.snapshot
        entries = tuple(map(self._encoded_entry, message.entries))
        return _ENCODER.encode(
            _Message(
                message.kind, message.to, message.sender, message.term, message.index, message.log_term,
                entries, message.commit, message.is_rejected, message.hint, message.is_forced,
                message.context, None if snapshot is None else _encoded_snapshot(snapshot),
            )
        )  # fmt: skip

    def decode(self, data: bytes, image: bytes = b"") -> RaftMessage:
        """Return what `encode` was given; CodecError if it is no message, or the image no metadata."""
        try:
            found = msgspec.msgpack.decode(data, type=_Message)
        except msgspec.MsgspecError as error:
            raise CodecError(f"unknown message: {error}") from error
        snapshot = None if found.snapshot is None else _decoded_snapshot(found.snapshot, image)
        return RaftMessage(
            found.kind, found.to, found.sender, term=found.term, index=found.index, log_term=found.log_term,
            entries=tuple(map(self._decoded_entry, found.entries)), commit=found.commit, snapshot=snapshot,
            is_rejected=found.is_rejected, hint=found.hint, is_forced=found.is_forced, context=found.context,
        )  # fmt: skip

    def _encoded_entry(self, entry: Entry) -> _Entry:
        logged = entry.payload
        if not isinstance(logged, LoggedProposal):
            assert isinstance(logged, bytes), "the core makes empty entries and changes"
            return _Entry(entry.kind, entry.term, entry.index, logged)
        record = logged.record
        if isinstance(logged.command, SetParameter):
            record = encode_entry(logged.command, logged.context, decode_entry(record).position)
        return _Entry(entry.kind, entry.term, entry.index, record)

    def _decoded_entry(self, entry: _Entry) -> Entry:
        payload = entry.payload
        if entry.kind is EntryKind.CHANGE or not payload:
            return Entry(entry.term, entry.index, entry.kind, payload, size=len(payload))
        logged = decode_entry(payload)
        if not isinstance(logged.command, MetadataCommand) or logged.context.index != entry.index:
            raise CodecError(f"entry {entry.index} has the payload of another one")
        record = payload
        if isinstance(logged.command, SetParameter):
            record = encode_entry(logged.command, logged.context, logged.position, self._cipher)
        proposal = LoggedProposal(logged.command, logged.context, record)
        return Entry(entry.term, entry.index, entry.kind, proposal, size=len(record))


def encode_proposal(proposal: Proposal) -> bytes:
    """Encode a proposal."""
    command = encode_command(proposal.command)
    return _ENCODER.encode(_Proposal(proposal.incarnation.number, proposal.serial, proposal.user, command))


def decode_proposal(data: bytes, node: int) -> Proposal:
    """Return the proposal that `node` has encoded; CodecError if it is none."""
    try:
        found = msgspec.msgpack.decode(data, type=_Proposal)
    except msgspec.MsgspecError as error:
        raise CodecError(f"unknown proposal: {error}") from error
    incarnation = Incarnation(node, found.incarnation)
    return Proposal(decode_command(found.command), found.user, incarnation, found.serial)


def encode_refusal(proposal: Proposal, reply: Reply) -> bytes:
    """Encode the refusal of a proposal."""
    return _ENCODER.encode(Refusal(proposal.incarnation.number, proposal.serial, reply.outcome, reply.text))


def decode_refusal(data: bytes) -> Refusal:
    """Return a refusal; CodecError if it is none."""
    try:
        return msgspec.msgpack.decode(data, type=Refusal)
    except msgspec.MsgspecError as error:
        raise CodecError(f"unknown refusal: {error}") from error


def _encoded_snapshot(snapshot: Snapshot) -> _Snapshot:
    members = snapshot.configuration
    return _Snapshot(
        snapshot.index, snapshot.term, members.voters, members.outgoing, members.learners,
        members.learners_next, members.auto_leave,
    )  # fmt: skip


def _decoded_snapshot(found: _Snapshot, image: bytes) -> Snapshot:
    configuration = Configuration(
        found.voters, found.outgoing, found.learners, found.learners_next, found.auto_leave
    )
    return Snapshot(found.index, found.term, configuration, read_image(image))


_ENCODER = msgspec.msgpack.Encoder()
