"""The commands of the stream protocol, except Publish and Deliver: see `publish` and `delivery`.

A request has a correlation number, which the response repeats.
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
Bytes = Annotated[bytes, kinds.BYTES]
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
    """One command: its key on the wire, and its fields in order."""

    __slots__ = ()
    key: ClassVar[int]
    # True if the fields are preceded by a correlation number.
    is_correlated: ClassVar[bool] = True

    @classmethod
    def decode(cls, reader: FieldReader) -> Self:
        """Decode the fields at `reader`; MalformedFrame if they do not fill the frame."""
        command = cls(*(kind.read(reader) for _, kind in cls._kinds()))
        if not reader.is_at_end:
            raise MalformedFrame("frame too long")
        return command

    def encode(self, correlation: int = 0) -> bytes:
        """Encode the complete frame, including its size."""
        out = bytearray(self.key.to_bytes(2, "big") + b"\x00\x01")
        if self.is_correlated:
            out += correlation.to_bytes(4, "big")
        for name, kind in self._kinds():
            kind.write(out, getattr(self, name))
        return framed(out)

    @classmethod
    def _kinds(cls) -> "list[tuple[str, FieldCodec[Any]]]":
        """The fields with their codecs, which are taken from the annotations."""
        return [(each.name, each.type.__metadata__[0]) for each in fields(cls)]  # type: ignore


# --- connection ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PeerProperties(StreamCommand):
    """Request: the client's properties."""

    key = CommandKey.PEER_PROPERTIES
    properties: Pairs


@dataclass(frozen=True, slots=True)
class PeerPropertiesResponse(StreamCommand):
    """The broker's properties."""

    key = RESPONSE | CommandKey.PEER_PROPERTIES
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class SaslHandshake(StreamCommand):
    """Request: the supported SASL mechanisms."""

    key = CommandKey.SASL_HANDSHAKE


@dataclass(frozen=True, slots=True)
class SaslHandshakeResponse(StreamCommand):
    """The SASL mechanisms, the preferred one first."""

    key = RESPONSE | CommandKey.SASL_HANDSHAKE
    code: U16
    mechanisms: Texts


@dataclass(frozen=True, slots=True)
class SaslAuthenticate(StreamCommand):
    """A step of SASL authentication."""

    key = CommandKey.SASL_AUTHENTICATE
    mechanism: Text
    response: Bytes


@dataclass(frozen=True, slots=True)
class Tune(StreamCommand):
    """The maximum frame size (bytes) and the heartbeat (s); 0 for no limit."""

    key = CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class TuneResponse(StreamCommand):
    """Sent by some clients in place of another Tune."""

    key = RESPONSE | CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


@dataclass(frozen=True, slots=True)
class Open(StreamCommand):
    """Request: open a virtual host."""

    key = CommandKey.OPEN
    vhost: Text


@dataclass(frozen=True, slots=True)
class OpenResponse(StreamCommand):
    """The properties of the connection, with the broker's advertised address."""

    key = RESPONSE | CommandKey.OPEN
    code: U16
    properties: Pairs


@dataclass(frozen=True, slots=True)
class Close(StreamCommand):
    """Request: close the connection, with a reason."""

    key = CommandKey.CLOSE
    code: U16
    reason: Text


@dataclass(frozen=True, slots=True)
class Heartbeat(StreamCommand):
    """A heartbeat."""

    key = CommandKey.HEARTBEAT
    is_correlated = False


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersions(StreamCommand):
    """Request: the command versions that the client supports."""

    key = CommandKey.EXCHANGE_COMMAND_VERSIONS
    versions: Versions


@dataclass(frozen=True, slots=True)
class ExchangeCommandVersionsResponse(StreamCommand):
    """The command versions that the broker supports."""

    key = RESPONSE | CommandKey.EXCHANGE_COMMAND_VERSIONS
    code: U16
    versions: Versions


# --- publishing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclarePublisher(StreamCommand):
    """Request: declare a publisher of a stream; with a reference, messages are deduplicated."""

    key = CommandKey.DECLARE_PUBLISHER
    publisher: U8
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class DeletePublisher(StreamCommand):
    """Request: delete a publisher."""

    key = CommandKey.DELETE_PUBLISHER
    publisher: U8


@dataclass(frozen=True, slots=True)
class PublishConfirm(StreamCommand):
    """Confirms messages by their sequences."""

    key = CommandKey.PUBLISH_CONFIRM
    is_correlated = False
    publisher: U8
    sequences: Sequences


@dataclass(frozen=True, slots=True)
class PublishError(StreamCommand):
    """Refuses messages, with a code for each."""

    key = CommandKey.PUBLISH_ERROR
    is_correlated = False
    publisher: U8
    failures: Failures


@dataclass(frozen=True, slots=True)
class QueryPublisherSequence(StreamCommand):
    """Request: the last sequence of a publisher reference."""

    key = CommandKey.QUERY_PUBLISHER_SEQUENCE
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryPublisherSequenceResponse(StreamCommand):
    """The last sequence of the publisher; 0 without messages."""

    key = RESPONSE | CommandKey.QUERY_PUBLISHER_SEQUENCE
    code: U16
    sequence: U64


# --- subscribing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe(StreamCommand):
    """Request: subscribe to a stream."""

    key = CommandKey.SUBSCRIBE
    subscription: U8
    stream: Text
    offset: Start
    credit: U16
    properties: OptionalPairs


@dataclass(frozen=True, slots=True)
class Credit(StreamCommand):
    """Grants credit for further chunks."""

    key = CommandKey.CREDIT
    is_correlated = False
    subscription: U8
    credit: U16


@dataclass(frozen=True, slots=True)
class CreditResponse(StreamCommand):
    """Only sent if Credit fails."""

    key = RESPONSE | CommandKey.CREDIT
    is_correlated = False
    code: U16
    subscription: U8


@dataclass(frozen=True, slots=True)
class Unsubscribe(StreamCommand):
    """Request: end a subscription."""

    key = CommandKey.UNSUBSCRIBE
    subscription: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdate(StreamCommand):
    """Request of the broker: whether the subscription is now the active one of its group."""

    key = CommandKey.CONSUMER_UPDATE
    subscription: U8
    is_active: U8


@dataclass(frozen=True, slots=True)
class ConsumerUpdateResponse(StreamCommand):
    """The offset at which the subscription continues, if it is active now."""

    key = RESPONSE | CommandKey.CONSUMER_UPDATE
    code: U16
    offset: OptionalStart


@dataclass(frozen=True, slots=True)
class StoreOffset(StreamCommand):
    """Stores the offset of a consumer."""

    key = CommandKey.STORE_OFFSET
    is_correlated = False
    reference: Text
    stream: Text
    offset: U64


@dataclass(frozen=True, slots=True)
class QueryOffset(StreamCommand):
    """Request: the stored offset of a consumer."""

    key = CommandKey.QUERY_OFFSET
    reference: Text
    stream: Text


@dataclass(frozen=True, slots=True)
class QueryOffsetResponse(StreamCommand):
    """The offset stored last."""

    key = RESPONSE | CommandKey.QUERY_OFFSET
    code: U16
    offset: U64


# --- streams ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create(StreamCommand):
    """Request: create a stream."""

    key = CommandKey.CREATE
    stream: Text
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class Delete(StreamCommand):
    """Request: delete a stream."""

    key = CommandKey.DELETE
    stream: Text


@dataclass(frozen=True, slots=True)
class Metadata(StreamCommand):
    """Request: the brokers that have these streams."""

    key = CommandKey.METADATA
    streams: Texts


@dataclass(frozen=True, slots=True)
class MetadataResponse(StreamCommand):
    """The brokers, and the placement of each stream."""

    key = RESPONSE | CommandKey.METADATA
    brokers: Brokers
    placements: Placements


@dataclass(frozen=True, slots=True)
class MetadataUpdate(StreamCommand):
    """Sent by the broker when a stream was deleted."""

    key = CommandKey.METADATA_UPDATE
    is_correlated = False
    code: U16
    stream: Text


@dataclass(frozen=True, slots=True)
class Route(StreamCommand):
    """Request: the streams of a super stream that a routing key is routed to."""

    key = CommandKey.ROUTE
    routing_key: Text
    super_stream: Text


@dataclass(frozen=True, slots=True)
class Partitions(StreamCommand):
    """Request: the streams of a super stream."""

    key = CommandKey.PARTITIONS
    super_stream: Text


@dataclass(frozen=True, slots=True)
class RouteResponse(StreamCommand):
    """The streams that a routing key is routed to."""

    key = RESPONSE | CommandKey.ROUTE
    code: U16
    streams: Texts


@dataclass(frozen=True, slots=True)
class PartitionsResponse(RouteResponse):
    """The streams of a super stream."""

    key = RESPONSE | CommandKey.PARTITIONS


@dataclass(frozen=True, slots=True)
class StreamStats(StreamCommand):
    """Request: the statistics of a stream."""

    key = CommandKey.STREAM_STATS
    stream: Text


@dataclass(frozen=True, slots=True)
class StreamStatsResponse(StreamCommand):
    """Statistics by name; -1 for unavailable ones."""

    key = RESPONSE | CommandKey.STREAM_STATS
    code: U16
    counters: Counters


@dataclass(frozen=True, slots=True)
class CreateSuperStream(StreamCommand):
    """Request: create streams, and the exchange that routes to them."""

    key = CommandKey.CREATE_SUPER_STREAM
    name: Text
    partitions: Texts
    binding_keys: Texts
    arguments: Pairs


@dataclass(frozen=True, slots=True)
class DeleteSuperStream(StreamCommand):
    """Request: delete a super stream and its streams."""

    key = CommandKey.DELETE_SUPER_STREAM
    name: Text


# --- reading and writing ----------------------------------------------------------------------------

# The commands that a client may send; each has one version.
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
    """Decode the command in `frame`, and its correlation number; MalformedFrame if it is not in `known`."""
    reader = FieldReader(frame)
    key, version = reader.number(2), reader.number(2)
    found = known.get(key)
    if found is None or version != 1:
        raise MalformedFrame(f"unknown command {key:#06x} version {version}")
    correlation = reader.number(4) if found.is_correlated else 0
    return found.decode(reader), correlation


def encode_response(key: int, correlation: int, code: int) -> bytes:
    """Encode a response that consists of its code only."""
    head = (RESPONSE | key).to_bytes(2, "big") + b"\x00\x01"
    return framed(b"".join((head, correlation.to_bytes(4, "big"), code.to_bytes(2, "big"))))
