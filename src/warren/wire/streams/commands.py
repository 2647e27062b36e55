"""Every command of the stream protocol as a class, but Publish and Deliver: `publishing` and `delivery`.

What a client asks has a correlation number, which the answer repeats.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

from warren.wire.streams import fields as kinds
from warren.wire.streams.codes import RESPONSE, CommandKey, MalformedFrame
from warren.wire.streams.fields import (
    BrokerReference,
    FieldCodec,
    FieldReader,
    Offset,
    Placement,
    PublishingError,
    Version,
)
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
OptionalPairs = Annotated[dict[str, str], kinds.OPTIONAL_PAIRS]
Start = Annotated[Offset, kinds.OFFSET]
OptionalStart = Annotated[Offset, kinds.OPTIONAL_OFFSET]
Versions = Annotated[tuple[Version, ...], kinds.VERSIONS]
Brokers = Annotated[tuple[BrokerReference, ...], kinds.BROKERS]
Placements = Annotated[tuple[Placement, ...], kinds.PLACEMENTS]
Failures = Annotated[tuple[PublishingError, ...], kinds.FAILURES]
Counters = Annotated[tuple[tuple[str, int], ...], kinds.COUNTERS]


class StreamCommand:
    """One command: what it is called on the wire, and its fields in order."""

    __slots__ = ()
    key: ClassVar[int]
    # Whether a correlation number comes first.
    is_correlated: ClassVar[bool] = True

    @classmethod
    def decode(cls, reader: FieldReader) -> Self:
        """The command whose fields `reader` is at; Malformed if they are not all of its frame."""
        command = cls(*(kind.read(reader) for _, kind in cls._kinds()))
        if not reader.is_at_end:
            raise MalformedFrame("frame too long")
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
    def _kinds(cls) -> "list[tuple[str, FieldCodec[Any]]]":
        """Its fields, and how each is read and written, which stands in its annotation."""
        return [(each.name, each.type.__metadata__[0]) for each in fields(cls)]  # type: ignore


# --- connection ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PeerProperties(StreamCommand):
    """What a client says of itself."""

    key = CommandKey.PEER_PROPERTIES
    properties: Pairs


@dataclass(frozen=True, slots=True)
class PeerPropertiesResponse(StreamCommand):
    """What the broker says of itself."""

    key = RESPONSE | CommandKey.PEER_PROPERTIES
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class SaslHandshake(StreamCommand):
    """Which mechanisms are there to log in?"""

    key = CommandKey.SASL_HANDSHAKE


@dataclass(frozen=True, slots=True)
class SaslHandshakeResponse(StreamCommand):
    """The mechanisms, the preferred one first."""

    key = RESPONSE | CommandKey.SASL_HANDSHAKE
    code: U16
    mechanisms: Texts


@dataclass(frozen=True, slots=True)
class SaslAuthenticate(StreamCommand):
    """A step of a mechanism to log in."""

    key = CommandKey.SASL_AUTHENTICATE
    mechanism: Text
    response: Octets


@dataclass(frozen=True, slots=True)
class Tune(StreamCommand):
    """How large frames may be, and how long it may be silent; 0 for no limit."""

    key = CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class TuneResponse(StreamCommand):
    """What some clients answer with, in place of another Tune."""

    key = RESPONSE | CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class Open(StreamCommand):
    """In which virtual host the client works."""

    key = CommandKey.OPEN
    vhost: Text


@dataclass(frozen=True, slots=True)
class OpenResponse(StreamCommand):
    """Where the broker is reached, when it lets the client in."""

    key = RESPONSE | CommandKey.OPEN
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class Close(StreamCommand):
    """The end of the connection, and why."""

    key = CommandKey.CLOSE
    code: U16
    reason: Text


@dataclass(frozen=True, slots=True)
class Heartbeat(StreamCommand):
    """A sign of life."""

    key = CommandKey.HEARTBEAT
    is_correlated = False


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersions(StreamCommand):
    """What the client understands."""

    key = CommandKey.EXCHANGE_COMMAND_VERSIONS
    versions: Versions


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersionsResponse(StreamCommand):
    """What the broker understands."""

    key = RESPONSE | CommandKey.EXCHANGE_COMMAND_VERSIONS
    code: U16
    versions: Versions


# --- publishing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclarePublisher(StreamCommand):
    """Messages will come for a stream; with a reference, none of them twice."""

    key = CommandKey.DECLARE_PUBLISHER
    publisher: U8
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class DeletePublisher(StreamCommand):
    """No more messages will come from it."""

    key = CommandKey.DELETE_PUBLISHER
    publisher: U8


@dataclass(frozen=True, slots=True)
class PublishConfirm(StreamCommand):
    """These are safe."""

    key = CommandKey.PUBLISH_CONFIRM
    is_correlated = False
    publisher: U8
    sequences: Sequences


@dataclass(frozen=True, slots=True)
class PublishError(StreamCommand):
    """These are not taken."""

    key = CommandKey.PUBLISH_ERROR
    is_correlated = False
    publisher: U8
    failures: Failures


@dataclass(frozen=True, slots=True)
class QueryPublisherSequence(StreamCommand):
    """What is the last that came from a publisher?"""

    key = CommandKey.QUERY_PUBLISHER_SEQUENCE
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryPublisherSequenceResponse(StreamCommand):
    """Its sequence; 0 if nothing came."""

    key = RESPONSE | CommandKey.QUERY_PUBLISHER_SEQUENCE
    code: U16
    sequence: U64


# --- subscribing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe(StreamCommand):
    """The client wants the messages of a stream."""

    key = CommandKey.SUBSCRIBE
    subscription: U8
    stream: Text
    offset: Start
    credit: U16
    properties: OptionalPairs


@dataclass(frozen=True, slots=True)
class Credit(StreamCommand):
    """The client takes so many chunks more."""

    key = CommandKey.CREDIT
    is_correlated = False
    subscription: U8
    credit: U16


@dataclass(frozen=True, slots=True)
class CreditResponse(StreamCommand):
    """Only sent when something is wrong with it."""

    key = RESPONSE | CommandKey.CREDIT
    is_correlated = False
    code: U16
    subscription: U8


@dataclass(frozen=True, slots=True)
class Unsubscribe(StreamCommand):
    """The client wants no more of them."""

    key = CommandKey.UNSUBSCRIBE
    subscription: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdate(StreamCommand):
    """From the broker: whether the subscription is the active one of its group now."""

    key = CommandKey.CONSUMER_UPDATE
    subscription: U8
    is_active: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdateResponse(StreamCommand):
    """Where the subscription goes on, if it is the active one now."""

    key = RESPONSE | CommandKey.CONSUMER_UPDATE
    code: U16
    offset: OptionalStart


@dataclass(frozen=True, slots=True)
class StoreOffset(StreamCommand):
    """How far a consumer has come."""

    key = CommandKey.STORE_OFFSET
    is_correlated = False
    reference: Text
    stream: Text
    offset: U64


@dataclass(frozen=True, slots=True)
class QueryOffset(StreamCommand):
    """How far has a consumer come?"""

    key = CommandKey.QUERY_OFFSET
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryOffsetResponse(StreamCommand):
    """The offset that was stored last."""

    key = RESPONSE | CommandKey.QUERY_OFFSET
    code: U16
    offset: U64


# --- streams ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create(StreamCommand):
    """Make a stream."""

    key = CommandKey.CREATE
    stream: Text
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class Delete(StreamCommand):
    """Delete a stream."""

    key = CommandKey.DELETE
    stream: Text


@dataclass(frozen=True, slots=True)
class Metadata(StreamCommand):
    """Where are these streams?"""

    key = CommandKey.METADATA
    streams: Texts


@dataclass(frozen=True, slots=True)
class MetadataResponse(StreamCommand):
    """Brokers, and which of them has which stream."""

    key = RESPONSE | CommandKey.METADATA
    brokers: Brokers
    placements: Placements


@dataclass(frozen=True, slots=True)
class MetadataUpdate(StreamCommand):
    """From the broker: a stream is gone."""

    key = CommandKey.METADATA_UPDATE
    is_correlated = False
    code: U16
    stream: Text


@dataclass(frozen=True, slots=True)
class Route(StreamCommand):
    """Which streams of a super stream does a routing key lead to?"""

    key = CommandKey.ROUTE
    routing_key: Text
    super_stream: Text


@dataclass(frozen=True, slots=True)
class Partitions(StreamCommand):
    """Which streams is a super stream made of?"""

    key = CommandKey.PARTITIONS
    super_stream: Text


@dataclass(frozen=True, slots=True)
class RouteResponse(StreamCommand):
    """The streams that Route asked for."""

    key = RESPONSE | CommandKey.ROUTE
    code: U16
    streams: Texts


@dataclass(frozen=True, slots=True)
class PartitionsResponse(RouteResponse):
    """The same, to Partitions."""

    key = RESPONSE | CommandKey.PARTITIONS


@dataclass(frozen=True, slots=True)
class StreamStats(StreamCommand):
    """How much is in a stream?"""

    key = CommandKey.STREAM_STATS
    stream: Text


@dataclass(frozen=True, slots=True)
class StreamStatsResponse(StreamCommand):
    """Numbers by their names; -1 for what there is not."""

    key = RESPONSE | CommandKey.STREAM_STATS
    code: U16
    counters: Counters


@dataclass(frozen=True, slots=True)
class CreateSuperStream(StreamCommand):
    """Make streams, and the exchange that leads to them."""

    key = CommandKey.CREATE_SUPER_STREAM
    name: Text
    partitions: Texts
    binding_keys: Texts
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class DeleteSuperStream(StreamCommand):
    """Delete them."""

    key = CommandKey.DELETE_SUPER_STREAM
    name: Text


# --- reading and writing ----------------------------------------------------------------------------

# What a client may send; there is one version of each.
FROM_CLIENTS: dict[int, type[StreamCommand]] = {
    command.key: command
    for command in (
        PeerProperties, SaslHandshake, SaslAuthenticate, Tune, TuneResponse, Open, Close, Heartbeat,
        ExchangeCommandVersions, DeclarePublisher, DeletePublisher, QueryPublisherSequence, Subscribe, Credit,
        Unsubscribe, ConsumerUpdateResponse, StoreOffset, QueryOffset, Create, Delete, Metadata, Route,
        Partitions, StreamStats, CreateSuperStream, DeleteSuperStream,
    )
}  # fmt: skip


def decode(frame: bytes, known: dict[int, type[StreamCommand]] = FROM_CLIENTS) -> tuple[StreamCommand, int]:
    """The command in `frame`, and its correlation number; Malformed if it is none of those that are known."""
    reader = FieldReader(frame)
    key, version = reader.number(2), reader.number(2)
    found = known.get(key)
    if found is None or version != 1:
        raise MalformedFrame(f"unknown command {key:#06x} version {version}")
    correlation = reader.number(4) if found.is_correlated else 0
    return found.decode(reader), correlation


def encode_response(key: int, correlation: int, code: int) -> bytes:
    """The frame of an answer that says how it went, and nothing else."""
    head = (RESPONSE | key).to_bytes(2, "big") + b"\x00\x01"
    return framed(b"".join((head, correlation.to_bytes(4, "big"), code.to_bytes(2, "big"))))
