"""The commands of the stream protocol, except Publish and Deliver: see `publish` and `delivery`.

A request has a correlation number, which the response repeats.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from msgspec import Struct

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


class StreamCommand(Struct, frozen=True):
    """One command: its key on the wire, and its fields in order."""

    key: ClassVar[int]
    # True if the fields are preceded by a correlation number.
    is_correlated: ClassVar[bool] = True

    @classmethod
    def decode(cls, reader: FieldReader) -> Self:
        """Decode the fields at `reader`; MalformedFrame if they do not fill the frame."""
        command = cls(*(kind.read(reader) for _, kind in _kinds(cls)))
        if not reader.is_at_end:
            raise MalformedFrame("frame too long")
        return command

    def encode(self, correlation: int = 0) -> bytes:
        """Encode the complete frame, including its size."""
        out = bytearray(self.key.to_bytes(2, "big") + b"\x00\x01")
        if self.is_correlated:
            out += correlation.to_bytes(4, "big")
        for name, kind in _kinds(type(self)):
            kind.write(out, getattr(self, name))
        return framed(out)


@cache
def _kinds(command: type[StreamCommand]) -> tuple[tuple[str, FieldCodec[Any]], ...]:
    """The fields of `command` with their codecs, which are taken from the annotations."""
    hints = get_type_hints(command, include_extras=True)
    return tuple((name, hints[name].__metadata__[0]) for name in command.__struct_fields__)


# --- connection ---------------------------------------------------------------------------------


class PeerProperties(StreamCommand, frozen=True):
    """Request: the client's properties."""

    key = CommandKey.PEER_PROPERTIES
    properties: Pairs


class PeerPropertiesResponse(StreamCommand, frozen=True):
    """The broker's properties."""

    key = RESPONSE | CommandKey.PEER_PROPERTIES
    code: U16
    properties: Pairs


class SaslHandshake(StreamCommand, frozen=True):
    """Request: the supported SASL mechanisms."""

    key = CommandKey.SASL_HANDSHAKE


class SaslHandshakeResponse(StreamCommand, frozen=True):
    """The SASL mechanisms, the preferred one first."""

    key = RESPONSE | CommandKey.SASL_HANDSHAKE
    code: U16
    mechanisms: Texts


class SaslAuthenticate(StreamCommand, frozen=True):
    """A step of SASL authentication."""

    key = CommandKey.SASL_AUTHENTICATE
    mechanism: Text
    response: Bytes


class Tune(StreamCommand, frozen=True):
    """The maximum frame size (bytes) and the heartbeat (s); 0 for no limit."""

    key = CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


class TuneResponse(StreamCommand, frozen=True):
    """Sent by some clients in place of another Tune."""

    key = RESPONSE | CommandKey.TUNE
    is_correlated = False
    frame_size_max: U32
    heartbeat_s: U32


class Open(StreamCommand, frozen=True):
    """Request: open a virtual host."""

    key = CommandKey.OPEN
    vhost: Text


class OpenResponse(StreamCommand, frozen=True):
    """The properties of the connection, with the broker's advertised address."""

    key = RESPONSE | CommandKey.OPEN
    code: U16
    properties: Pairs


class Close(StreamCommand, frozen=True):
    """Request: close the connection, with a reason."""

    key = CommandKey.CLOSE
    code: U16
    reason: Text


class Heartbeat(StreamCommand, frozen=True):
    """A heartbeat."""

    key = CommandKey.HEARTBEAT
    is_correlated = False


class ExchangeCommandVersions(StreamCommand, frozen=True):
    """Request: the command versions that the client supports."""

    key = CommandKey.EXCHANGE_COMMAND_VERSIONS
    versions: Versions


class ExchangeCommandVersionsResponse(StreamCommand, frozen=True):
    """The command versions that the broker supports."""

    key = RESPONSE | CommandKey.EXCHANGE_COMMAND_VERSIONS
    code: U16
    versions: Versions


# --- publishing -----------------------------------------------------------------------------------


class DeclarePublisher(StreamCommand, frozen=True):
    """Request: declare a publisher of a stream; with a reference, messages are deduplicated."""

    key = CommandKey.DECLARE_PUBLISHER
    publisher: U8
    reference: Text
    stream: Text


class DeletePublisher(StreamCommand, frozen=True):
    """Request: delete a publisher."""

    key = CommandKey.DELETE_PUBLISHER
    publisher: U8


class PublishConfirm(StreamCommand, frozen=True):
    """Confirms messages by their sequences."""

    key = CommandKey.PUBLISH_CONFIRM
    is_correlated = False
    publisher: U8
    sequences: Sequences


class PublishError(StreamCommand, frozen=True):
    """Refuses messages, with a code for each."""

    key = CommandKey.PUBLISH_ERROR
    is_correlated = False
    publisher: U8
    failures: Failures


class QueryPublisherSequence(StreamCommand, frozen=True):
    """Request: the last sequence of a publisher reference."""

    key = CommandKey.QUERY_PUBLISHER_SEQUENCE
    reference: Text
    stream: Text


class QueryPublisherSequenceResponse(StreamCommand, frozen=True):
    """The last sequence of the publisher; 0 without messages."""

    key = RESPONSE | CommandKey.QUERY_PUBLISHER_SEQUENCE
    code: U16
    sequence: U64


# --- subscribing ------------------------------------------------------------------------------------


class Subscribe(StreamCommand, frozen=True):
    """Request: subscribe to a stream."""

    key = CommandKey.SUBSCRIBE
    subscription: U8
    stream: Text
    offset: Start
    credit: U16
    properties: OptionalPairs


class Credit(StreamCommand, frozen=True):
    """Grants credit for further chunks."""

    key = CommandKey.CREDIT
    is_correlated = False
    subscription: U8
    credit: U16


class CreditResponse(StreamCommand, frozen=True):
    """Only sent if Credit fails."""

    key = RESPONSE | CommandKey.CREDIT
    is_correlated = False
    code: U16
    subscription: U8


class Unsubscribe(StreamCommand, frozen=True):
    """Request: end a subscription."""

    key = CommandKey.UNSUBSCRIBE
    subscription: U8


class ConsumerUpdate(StreamCommand, frozen=True):
    """Request of the broker: whether the subscription is now the active one of its group."""

    key = CommandKey.CONSUMER_UPDATE
    subscription: U8
    is_active: U8


class ConsumerUpdateResponse(StreamCommand, frozen=True):
    """The offset at which the subscription continues, if it is active now."""

    key = RESPONSE | CommandKey.CONSUMER_UPDATE
    code: U16
    offset: OptionalStart


class StoreOffset(StreamCommand, frozen=True):
    """Stores the offset of a consumer."""

    key = CommandKey.STORE_OFFSET
    is_correlated = False
    reference: Text
    stream: Text
    offset: U64


class QueryOffset(StreamCommand, frozen=True):
    """Request: the stored offset of a consumer."""

    key = CommandKey.QUERY_OFFSET
    reference: Text
    stream: Text


class QueryOffsetResponse(StreamCommand, frozen=True):
    """The offset stored last."""

    key = RESPONSE | CommandKey.QUERY_OFFSET
    code: U16
    offset: U64


# --- streams ------------------------------------------------------------------------------------


class Create(StreamCommand, frozen=True):
    """Request: create a stream."""

    key = CommandKey.CREATE
    stream: Text
    arguments: Pairs


class Delete(StreamCommand, frozen=True):
    """Request: delete a stream."""

    key = CommandKey.DELETE
    stream: Text


class Metadata(StreamCommand, frozen=True):
    """Request: the brokers that have these streams."""

    key = CommandKey.METADATA
    streams: Texts


class MetadataResponse(StreamCommand, frozen=True):
    """The brokers, and the placement of each stream."""

    key = RESPONSE | CommandKey.METADATA
    brokers: Brokers
    placements: Placements


class MetadataUpdate(StreamCommand, frozen=True):
    """Sent by the broker when a stream was deleted."""

    key = CommandKey.METADATA_UPDATE
    is_correlated = False
    code: U16
    stream: Text


class Route(StreamCommand, frozen=True):
    """Request: the streams of a super stream that a routing key is routed to."""

    key = CommandKey.ROUTE
    routing_key: Text
    super_stream: Text


class Partitions(StreamCommand, frozen=True):
    """Request: the streams of a super stream."""

    key = CommandKey.PARTITIONS
    super_stream: Text


class RouteResponse(StreamCommand, frozen=True):
    """The streams that a routing key is routed to."""

    key = RESPONSE | CommandKey.ROUTE
    code: U16
    streams: Texts


class PartitionsResponse(RouteResponse, frozen=True):
    """The streams of a super stream."""

    key = RESPONSE | CommandKey.PARTITIONS


class StreamStats(StreamCommand, frozen=True):
    """Request: the statistics of a stream."""

    key = CommandKey.STREAM_STATS
    stream: Text


class StreamStatsResponse(StreamCommand, frozen=True):
    """Statistics by name; -1 for unavailable ones."""

    key = RESPONSE | CommandKey.STREAM_STATS
    code: U16
    counters: Counters


class CreateSuperStream(StreamCommand, frozen=True):
    """Request: create streams, and the exchange that routes to them."""

    key = CommandKey.CREATE_SUPER_STREAM
    name: Text
    partitions: Texts
    binding_keys: Texts
    arguments: Pairs


class DeleteSuperStream(StreamCommand, frozen=True):
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
