"""Every command of the stream protocol as a class, but Publish and Deliver: `publishing` and `delivery`.

What a client asks has a correlation number, which the answer repeats.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

from warren.wire.streams import fields as kinds
from warren.wire.streams.codes import ANSWER, Key, Malformed
from warren.wire.streams.fields import Broker, Failure, Kind, Offset, Placement, Reader, Version
from warren.wire.streams.frames import framed

U8 = Annotated[int, kinds.U8]
U16 = Annotated[int, kinds.U16]
U32 = Annotated[int, kinds.U32]
U64 = Annotated[int, kinds.U64]
Text = Annotated[str, kinds.TEXT]
Octets = Annotated[bytes, kinds.OCTETS]
Texts = Annotated[tuple[str, ...], kinds.TEXTS]
Sequences = Annotated[tuple[int, ...], kinds.SEQUENCES]
Pairs = Annotated[dict[str, str], kinds.PAIRS]
LatePairs = Annotated[dict[str, str], kinds.LATE_PAIRS]
Start = Annotated[Offset, kinds.OFFSET]
LateStart = Annotated[Offset, kinds.LATE_OFFSET]
Versions = Annotated[tuple[Version, ...], kinds.VERSIONS]
Brokers = Annotated[tuple[Broker, ...], kinds.BROKERS]
Placements = Annotated[tuple[Placement, ...], kinds.PLACEMENTS]
Failures = Annotated[tuple[Failure, ...], kinds.FAILURES]
Counters = Annotated[tuple[tuple[str, int], ...], kinds.COUNTERS]


class Command:
    """One command: what it is called on the wire, and its fields in order."""

    __slots__ = ()
    key: ClassVar[int]
    # Whether a correlation number comes first.
    is_correlated: ClassVar[bool] = True

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """The command whose fields `reader` is at; Malformed if they are not all of its frame."""
        command = cls(*(kind.read(reader) for _, kind in cls._kinds()))
        if not reader.is_at_end:
            raise Malformed("frame too long")
        return command

    def encode(self, correlation: int = 0) -> bytes:
        """The whole frame, with its size."""
        out = bytearray(self.key.to_bytes(2, "big") + b"\x00\x01")
        if self.is_correlated:
            out += correlation.to_bytes(4, "big")
        for name, kind in self._kinds():
            kind.write(out, getattr(self, name))
        return framed(out)

    @classmethod
    def _kinds(cls) -> "list[tuple[str, Kind[Any]]]":
        """Its fields, and how each is read and written, which stands in its annotation."""
        return [(each.name, each.type.__metadata__[0]) for each in fields(cls)]  # type: ignore


# --- connection ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PeerProperties(Command):
    """What a client says of itself."""

    key = Key.PEER_PROPERTIES
    properties: Pairs


@dataclass(frozen=True, slots=True)
class PeerPropertiesAnswer(Command):
    """What the broker says of itself."""

    key = ANSWER | Key.PEER_PROPERTIES
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class SaslHandshake(Command):
    """Which mechanisms are there to log in?"""

    key = Key.SASL_HANDSHAKE


@dataclass(frozen=True, slots=True)
class SaslHandshakeAnswer(Command):
    """The mechanisms, the preferred one first."""

    key = ANSWER | Key.SASL_HANDSHAKE
    code: U16
    mechanisms: Texts


@dataclass(frozen=True, slots=True)
class SaslAuthenticate(Command):
    """A step of a mechanism to log in."""

    key = Key.SASL_AUTHENTICATE
    mechanism: Text
    response: Octets


@dataclass(frozen=True, slots=True)
class Tune(Command):
    """How large frames may be, and how long it may be silent; 0 for no limit."""

    key = Key.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class TuneAnswer(Command):
    """What some clients answer with, in place of another Tune."""

    key = ANSWER | Key.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class Open(Command):
    """In which virtual host the client works."""

    key = Key.OPEN
    vhost: Text


@dataclass(frozen=True, slots=True)
class OpenAnswer(Command):
    """Where the broker is reached, when it lets the client in."""

    key = ANSWER | Key.OPEN
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class Close(Command):
    """The end of the connection, and why."""

    key = Key.CLOSE
    code: U16
    reason: Text


@dataclass(frozen=True, slots=True)
class Heartbeat(Command):
    """A sign of life."""

    key = Key.HEARTBEAT
    is_correlated = False


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersions(Command):
    """What the client understands."""

    key = Key.EXCHANGE_COMMAND_VERSIONS
    versions: Versions


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersionsAnswer(Command):
    """What the broker understands."""

    key = ANSWER | Key.EXCHANGE_COMMAND_VERSIONS
    code: U16
    versions: Versions


# --- publishing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclarePublisher(Command):
    """Messages will come for a stream; with a reference, none of them twice."""

    key = Key.DECLARE_PUBLISHER
    publisher: U8
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class DeletePublisher(Command):
    """No more messages will come from it."""

    key = Key.DELETE_PUBLISHER
    publisher: U8


@dataclass(frozen=True, slots=True)
class PublishConfirm(Command):
    """These are safe."""

    key = Key.PUBLISH_CONFIRM
    is_correlated = False
    publisher: U8
    sequences: Sequences


@dataclass(frozen=True, slots=True)
class PublishError(Command):
    """These are not taken."""

    key = Key.PUBLISH_ERROR
    is_correlated = False
    publisher: U8
    failures: Failures


@dataclass(frozen=True, slots=True)
class QueryPublisherSequence(Command):
    """What is the last that came from a publisher?"""

    key = Key.QUERY_PUBLISHER_SEQUENCE
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryPublisherSequenceAnswer(Command):
    """Its sequence; 0 if nothing came."""

    key = ANSWER | Key.QUERY_PUBLISHER_SEQUENCE
    code: U16
    sequence: U64


# --- subscribing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe(Command):
    """The client wants the messages of a stream."""

    key = Key.SUBSCRIBE
    subscription: U8
    stream: Text
    offset: Start
    credit: U16
    properties: LatePairs


@dataclass(frozen=True, slots=True)
class Credit(Command):
    """The client takes so many chunks more."""

    key = Key.CREDIT
    is_correlated = False
    subscription: U8
    credit: U16


@dataclass(frozen=True, slots=True)
class CreditAnswer(Command):
    """Only sent when something is wrong with it."""

    key = ANSWER | Key.CREDIT
    is_correlated = False
    code: U16
    subscription: U8


@dataclass(frozen=True, slots=True)
class Unsubscribe(Command):
    """The client wants no more of them."""

    key = Key.UNSUBSCRIBE
    subscription: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdate(Command):
    """From the broker: whether the subscription is the active one of its group now."""

    key = Key.CONSUMER_UPDATE
    subscription: U8
    is_active: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdateAnswer(Command):
    """Where the subscription goes on, if it is the active one now."""

    key = ANSWER | Key.CONSUMER_UPDATE
    code: U16
    offset: LateStart


@dataclass(frozen=True, slots=True)
class StoreOffset(Command):
    """How far a consumer has come."""

    key = Key.STORE_OFFSET
    is_correlated = False
    reference: Text
    stream: Text
    offset: U64


@dataclass(frozen=True, slots=True)
class QueryOffset(Command):
    """How far has a consumer come?"""

    key = Key.QUERY_OFFSET
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryOffsetAnswer(Command):
    """The offset that was stored last."""

    key = ANSWER | Key.QUERY_OFFSET
    code: U16
    offset: U64


# --- streams ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create(Command):
    """Make a stream."""

    key = Key.CREATE
    stream: Text
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class Delete(Command):
    """Delete a stream."""

    key = Key.DELETE
    stream: Text


@dataclass(frozen=True, slots=True)
class Metadata(Command):
    """Where are these streams?"""

    key = Key.METADATA
    streams: Texts


@dataclass(frozen=True, slots=True)
class MetadataAnswer(Command):
    """Brokers, and which of them has which stream."""

    key = ANSWER | Key.METADATA
    brokers: Brokers
    placements: Placements


@dataclass(frozen=True, slots=True)
class MetadataUpdate(Command):
    """From the broker: a stream is gone."""

    key = Key.METADATA_UPDATE
    is_correlated = False
    code: U16
    stream: Text


@dataclass(frozen=True, slots=True)
class Route(Command):
    """Which streams of a super stream does a routing key lead to?"""

    key = Key.ROUTE
    routing_key: Text
    super_stream: Text


@dataclass(frozen=True, slots=True)
class Partitions(Command):
    """Which streams is a super stream made of?"""

    key = Key.PARTITIONS
    super_stream: Text


@dataclass(frozen=True, slots=True)
class StreamsAnswer(Command):
    """The streams that Route asked for."""

    key = ANSWER | Key.ROUTE
    code: U16
    streams: Texts


@dataclass(frozen=True, slots=True)
class PartitionsAnswer(StreamsAnswer):
    """The same, to Partitions."""

    key = ANSWER | Key.PARTITIONS


@dataclass(frozen=True, slots=True)
class StreamStats(Command):
    """How much is in a stream?"""

    key = Key.STREAM_STATS
    stream: Text


@dataclass(frozen=True, slots=True)
class StreamStatsAnswer(Command):
    """Numbers by their names; -1 for what there is not."""

    key = ANSWER | Key.STREAM_STATS
    code: U16
    counters: Counters


@dataclass(frozen=True, slots=True)
class CreateSuperStream(Command):
    """Make streams, and the exchange that leads to them."""

    key = Key.CREATE_SUPER_STREAM
    name: Text
    partitions: Texts
    binding_keys: Texts
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class DeleteSuperStream(Command):
    """Delete them."""

    key = Key.DELETE_SUPER_STREAM
    name: Text


# --- reading and writing ----------------------------------------------------------------------------

# What a client may send; there is one version of each.
FROM_CLIENTS: dict[int, type[Command]] = {
    command.key: command
    for command in (
        PeerProperties, SaslHandshake, SaslAuthenticate, Tune, TuneAnswer, Open, Close, Heartbeat,
        ExchangeCommandVersions, DeclarePublisher, DeletePublisher, QueryPublisherSequence, Subscribe, Credit,
        Unsubscribe, ConsumerUpdateAnswer, StoreOffset, QueryOffset, Create, Delete, Metadata, Route,
        Partitions, StreamStats, CreateSuperStream, DeleteSuperStream,
    )
}  # fmt: skip


def decode(frame: bytes, known: dict[int, type[Command]] = FROM_CLIENTS) -> tuple[Command, int]:
    """The command in `frame`, and its correlation number; Malformed if it is none of those that are known."""
    reader = Reader(frame)
    key, version = reader.number(2), reader.number(2)
    found = known.get(key)
    if found is None or version != 1:
        raise Malformed(f"unknown command {key:#06x} version {version}")
    correlation = reader.number(4) if found.is_correlated else 0
    return found.decode(reader), correlation


def encode_answer(key: int, correlation: int, code: int) -> bytes:
    """The frame of an answer that says how it went, and nothing else."""
    head = (ANSWER | key).to_bytes(2, "big") + b"\x00\x01"
    return framed(b"".join((head, correlation.to_bytes(4, "big"), code.to_bytes(2, "big"))))
