"""What a node tells the others with each ping of a control connection, in MessagePack.

    [ version 1, [ alarm, … ], index, is draining, is paused, release, connections, channels,
      [ silent member, … ], [ [ protocol, address, port ], … ], [ host, port, host with TLS, port with TLS ] ]

A ping that is lost is not sent again, and the next one says everything anew: a digest has states, and no
changes. Another version is used only at a feature level at which all members know it.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warren.cluster.node_link import PayloadError
from warren.flow.alarms import Resource
from warren.limits_cluster import (
    CLUSTER_CLIENTS_MAX,
    CLUSTER_DIGEST_ADDRESS_SIZE_MAX,
    CLUSTER_DIGEST_LISTENERS_MAX,
    CLUSTER_DIGEST_PROTOCOL_SIZE_MAX,
    CLUSTER_DIGEST_RELEASE_SIZE_MAX,
    CLUSTER_DIGEST_SILENT_MAX,
    CLUSTER_DIGEST_SIZE_MAX,
    CLUSTER_HOST_SIZE_MAX,
)
from warren.limits_metadata import MEMBER_ID_MAX, MEMBER_PORT_MAX

# Printable ASCII: it stands in logs and on pages, and a character is a byte.
_PRINTABLE = r"\A[ -~]*\Z"
_Count = Annotated[int, Meta(ge=0, le=CLUSTER_CLIENTS_MAX)]
_Release = Annotated[str, Meta(max_length=CLUSTER_DIGEST_RELEASE_SIZE_MAX, pattern=_PRINTABLE)]
_Protocol = Annotated[str, Meta(max_length=CLUSTER_DIGEST_PROTOCOL_SIZE_MAX, pattern=_PRINTABLE)]
_Address = Annotated[str, Meta(max_length=CLUSTER_DIGEST_ADDRESS_SIZE_MAX, pattern=_PRINTABLE)]
_Host = Annotated[str, Meta(max_length=CLUSTER_HOST_SIZE_MAX, pattern=_PRINTABLE)]
_Port = Annotated[int, Meta(ge=0, le=MEMBER_PORT_MAX)]
_Member = Annotated[int, Meta(ge=1, le=MEMBER_ID_MAX)]


class NodeListener(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a node listens to clients: the protocol by RabbitMQ's name, and the address."""

    protocol: _Protocol
    address: _Address
    port: _Port


class AdvertisedStreams(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The addresses of the stream protocol that the settings of a node advertise; empty and 0 without any."""

    host: _Host = ""
    port: _Port = 0
    tls_host: _Host = ""
    tls_port: _Port = 0

    def address(self, *, is_tls: bool) -> tuple[str, int]:
        """The host and the port for clients without TLS, or with it."""
        return (self.tls_host, self.tls_port) if is_tls else (self.host, self.port)


class NodeDigest(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The state of a node, as far as the others need it all the time."""

    version: Literal[1] = 1
    # Its alarms, in RabbitMQ's order.
    alarms: Annotated[tuple[Resource, ...], Meta(max_length=len(Resource))] = ()
    # Up to where it has applied the metadata.
    index: Annotated[int, Meta(ge=0)] = 0
    is_draining: bool = False
    # True while its clients are shut out because of a partition.
    is_paused: bool = False
    # The version of the broker.
    release: _Release = ""
    # The numbers of its clients.
    connections: _Count = 0
    channels: _Count = 0
    # Members that are up by the metadata, and that it does not hear.
    silent: Annotated[tuple[_Member, ...], Meta(max_length=CLUSTER_DIGEST_SILENT_MAX)] = ()
    listeners: Annotated[tuple[NodeListener, ...], Meta(max_length=CLUSTER_DIGEST_LISTENERS_MAX)] = ()
    streams: AdvertisedStreams = AdvertisedStreams()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(NodeDigest)


def bounded_listeners(listeners: Sequence[NodeListener]) -> tuple[NodeListener, ...]:
    """The first of `listeners` that a digest can have; one that others would refuse is left out."""
    fitting = [
        listener
        for listener in listeners
        if len(listener.protocol) <= CLUSTER_DIGEST_PROTOCOL_SIZE_MAX
        and len(listener.address) <= CLUSTER_DIGEST_ADDRESS_SIZE_MAX
        and f"{listener.protocol}{listener.address}".isascii()
        and f"{listener.protocol}{listener.address}".isprintable()
    ]
    return tuple(fitting[:CLUSTER_DIGEST_LISTENERS_MAX])


def encode_digest(digest: NodeDigest) -> bytes:
    """Return a digest, whose parts are within their bounds, as it is sent."""
    encoded = _encoder.encode(digest)
    assert len(encoded) <= CLUSTER_DIGEST_SIZE_MAX
    return encoded


def decode_digest(data: bytes) -> NodeDigest:
    """Return the digest of a ping. Raises PayloadError if it is none."""
    if len(data) > CLUSTER_DIGEST_SIZE_MAX:
        raise PayloadError(f"a digest of {len(data)} bytes, which may have {CLUSTER_DIGEST_SIZE_MAX}")
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise PayloadError(f"unknown digest: {error}") from error
