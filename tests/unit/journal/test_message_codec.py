"""What members of the metadata group send one another, encoded and decoded."""

import pytest

from warren.journal.codec import CodecError, LogPosition, VoteState, decode_entry, encode_entry
from warren.journal.message_codec import (
    MessageCodec,
    decode_proposal,
    decode_refusal,
    encode_proposal,
    encode_refusal,
)
from warren.journal.metadata_log import LoggedProposal
from warren.journal.parameter_cipher import Cipher
from warren.journal.proposal import Proposal
from warren.journal.received_metadata import ReceivedMetadata, read_image
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.metadata.commands import (
    CommandContext,
    DeclareQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
    SetParameter,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryKind, MessageKind, RaftMessage, Snapshot

CODEC = MessageCodec(None)
URI = "amqp://user:secret@host"
UPSTREAM = SetParameter(vhost="v", component="federation-upstream", name="u", value={"uri": URI})


class Key(Cipher):
    """A cipher that shows the name of its node."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def encrypt(self, data: bytes) -> bytes:
        return self._name + data[::-1]

    def decrypt(self, data: bytes) -> bytes | None:
        return data.removeprefix(self._name)[::-1] if data.startswith(self._name) else None


def logged(index: int, command: MetadataCommand, cipher: Cipher | None = None) -> Entry:
    context = CommandContext(
        index=index, now=5, user="u", incarnation=Incarnation(3, 9), serial=4, is_accepted=True
    )
    record = encode_entry(command, context, LogPosition(2, index - 1, 1), cipher)
    return Entry(2, index, payload=LoggedProposal(command, context, record), size=len(record))


def image_of(*commands: MetadataCommand) -> JournalSnapshot:
    metadata = Metadata()
    for command in commands:
        LocalProposals(metadata, lambda: 5).apply(command)
    place = SnapshotPlace(index=9, term=2, now=77, hard=VoteState(3, 1), configuration=Configuration((1, 2)))
    return JournalSnapshot(metadata, place, SnapshotOrigin(bytes(8), 0, bytes(8)))


@pytest.mark.parametrize("kind", list(MessageKind))
def test_a_message_is_decoded_as_it_was(kind: MessageKind) -> None:
    message = RaftMessage(
        kind, 2, 1, term=7, index=40, log_term=6, commit=39, is_rejected=True, hint=8, is_forced=True,
        entries=(Entry(6, 41), Entry(7, 42, EntryKind.CHANGE, b"x", size=1), logged(43, PutVhost(name="v"))),
        context=b"read",
    )  # fmt: skip
    assert CODEC.decode(CODEC.encode(message)) == message


def test_a_secret_passes_between_nodes_that_encrypt_it_with_keys_of_their_own() -> None:
    ours, theirs = Key(b"ours"), Key(b"theirs")
    entry = logged(5, UPSTREAM, ours)
    message = RaftMessage(MessageKind.APPEND, 2, 1, entries=(entry,))
    found = MessageCodec(theirs).decode(MessageCodec(ours).encode(message)).entries[0].payload
    assert isinstance(found, LoggedProposal)
    assert found.command == UPSTREAM
    assert decode_entry(found.record, theirs).command == UPSTREAM
    assert b"secret" not in found.record
    assert decode_entry(found.record, theirs).position == LogPosition(2, 4, 1)


def test_a_snapshot_comes_with_its_image() -> None:
    image = image_of(PutVhost(name="v"), DeclareQueue(vhost="v", name="q", durable=True))
    configuration = Configuration((1, 2), outgoing=(1,), learners=(3,), learners_next=(4,), auto_leave=True)
    message = RaftMessage(MessageKind.SNAPSHOT, 2, 1, snapshot=Snapshot(9, 2, configuration, image))
    found = CODEC.decode(CODEC.encode(message), b"".join(image)).snapshot
    assert found is not None
    assert (found.index, found.term, found.configuration) == (9, 2, configuration)
    assert isinstance(found.payload, ReceivedMetadata)
    assert found.payload.now == 77
    vhost = found.payload.metadata.vhost("v")
    assert vhost is not None
    assert list(vhost.topology.queues) == ["q"]


def test_an_image_that_is_not_complete_is_refused() -> None:
    data = b"".join(image_of(PutVhost(name="v")))
    for damaged in (b"", data[:10], data[:-1], data[:60] + b"\0" + data[61:]):
        with pytest.raises(CodecError):
            read_image(damaged)


def test_what_is_no_message_is_refused() -> None:
    data = CODEC.encode(RaftMessage(MessageKind.APPEND, 2, 1, entries=(logged(5, PutVhost(name="v")),)))
    for end in range(len(data)):
        with pytest.raises(CodecError):
            CODEC.decode(data[:end])
    moved = RaftMessage(MessageKind.APPEND, 2, 1, entries=(Entry(2, 6, payload=logged(5, UPSTREAM).payload),))
    with pytest.raises(CodecError, match="entry 6 has the payload of another one"):
        CODEC.decode(CODEC.encode(moved))


def test_a_proposal_is_that_of_the_node_of_the_link() -> None:
    proposal = Proposal(UPSTREAM, "someone", Incarnation(3, 9), 12)
    assert decode_proposal(encode_proposal(proposal), 3) == proposal
    assert decode_proposal(encode_proposal(proposal), 4).incarnation == Incarnation(4, 9)
    with pytest.raises(CodecError):
        decode_proposal(encode_proposal(proposal)[:-1], 3)


def test_a_refusal_names_the_proposal_and_the_reason() -> None:
    proposal = Proposal(UPSTREAM, "someone", Incarnation(3, 9), 12)
    reply = Reply(Outcome.REFUSED, "too many")
    found = decode_refusal(encode_refusal(proposal, reply))
    assert (found.incarnation, found.serial, found.reply) == (9, 12, reply)
    with pytest.raises(CodecError):
        decode_refusal(b"\x94\x01\x02\xa1x\xa0")
