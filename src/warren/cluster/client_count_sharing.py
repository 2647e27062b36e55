"""The numbers of clients by user and virtual host, which the nodes tell each other where there are limits.

    control │ COUNTS  [ version 1, [ [ kind, name, count ], … ] ]

A session of a control connection begins with all counts, and continues with those that have changed: nothing
in it is lost or overtaken, so that what the receiver has is what the sender had a moment before. Most names
have no limit, and cost nothing. When a name gets one, every node tells its count.

A node that is silent is not counted until it is heard again; what it has told is kept as long as the session
lasts.
"""

from enum import IntEnum
from itertools import islice
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warren.access.client_counts import ClientCountKind, ClientCounts, CountKey
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink, PayloadError
from warren.limits import NAME_SIZE_MAX
from warren.limits_cluster import CLUSTER_CLIENTS_MAX, CLUSTER_COUNTS_KEPT_MAX, CLUSTER_COUNTS_PER_PAYLOAD
from warren.metadata.events import Event, UserChanged, UserRemoved, VhostLimitsChanged, VhostRemoved
from warren.metadata.machine import Metadata
from warren.wire.strings import decode_text, encode_text

_CONTROL = LinkPurpose.CONTROL
_CONNECTIONS_LIMIT, _CHANNELS_LIMIT = "max-connections", "max-channels"
_OF_USER = (ClientCountKind.USER_CONNECTIONS, ClientCountKind.USER_CHANNELS)
_OF_VHOST = (ClientCountKind.VHOST_CONNECTIONS,)


class ClientCountPayload(IntEnum):
    """The kinds of payloads beside those of the metadata group; the numbers are those on the wire."""

    COUNTS = 8


class _ToldCount(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    kind: ClientCountKind
    # The bytes of a name, which need not be UTF-8.
    name: Annotated[bytes, Meta(max_length=NAME_SIZE_MAX)]
    count: Annotated[int, Meta(ge=0, le=CLUSTER_CLIENTS_MAX)]


class _ToldCounts(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: Literal[1]
    counts: Annotated[tuple[_ToldCount, ...], Meta(max_length=CLUSTER_COUNTS_PER_PAYLOAD)]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_ToldCounts)


class ClientCountSharing:
    """What this node tells the others of its counts, and they it."""

    def __init__(self, counts: ClientCounts, metadata: Metadata) -> None:
        self._counts = counts
        self._metadata = metadata
        # The links with a session, by the ids of their nodes, and what each is still to be told.
        self._links: dict[int, NodeLink] = {}
        self._untold: dict[int, dict[CountKey, None]] = {}
        # What the others have told.
        self._told: dict[int, dict[CountKey, int]] = {}
        counts.on_changed = self._note
        metadata.listen(self._changed, (UserChanged, UserRemoved, VhostLimitsChanged, VhostRemoved))

    # --- what the links call --------------------------------------------------------------------------

    def session_began(self, link: NodeLink) -> None:
        """A session of a control connection has begun: tell all that is limited."""
        node = link.peer.node_id
        self._links[node] = link
        self._untold[node] = dict.fromkeys(self._counts.keys())
        self._told[node] = {}
        if not link.is_silent:
            self.heard(node)

    def session_lost(self, link: NodeLink) -> None:
        """Forget what was told in the session."""
        node = link.peer.node_id
        for known in (self._links, self._untold, self._told):
            known.pop(node, None)
        self._counts.elsewhere.pop(node, None)

    def silent(self, node: int) -> None:
        """Do not count the clients of a node that is not heard."""
        self._counts.elsewhere.pop(node, None)

    def heard(self, node: int) -> None:
        """Count the clients of a node that is heard."""
        told = self._told.get(node)
        if told is not None:
            self._counts.elsewhere[node] = told

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Take counts of another node. Raises PayloadError."""
        if kind != ClientCountPayload.COUNTS:
            raise PayloadError(f"payload of the unknown kind {kind}")
        try:
            told = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise PayloadError(f"unknown counts of clients: {error}") from error
        kept = self._told.get(link.peer.node_id)
        if kept is None:
            raise PayloadError("counts of clients outside of a session")
        for one in told.counts:
            key = one.kind, decode_text(one.name)
            if not one.count:
                kept.pop(key, None)
            elif key in kept or len(kept) < CLUSTER_COUNTS_KEPT_MAX:
                kept[key] = one.count

    # --- time -----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Send each other node the next counts that it is to be told."""
        for node, untold in self._untold.items():
            link = self._links[node]
            if untold and link.is_writable(_CONTROL):
                counts = self._next_counts(untold)
                if counts:
                    body = _encoder.encode(_ToldCounts(1, counts))
                    link.send(_CONTROL, ClientCountPayload.COUNTS, body)

    # --- private --------------------------------------------------------------------------------------

    def _next_counts(self, untold: dict[CountKey, None]) -> tuple[_ToldCount, ...]:
        keys = list(islice(untold, CLUSTER_COUNTS_PER_PAYLOAD))
        for key in keys:
            del untold[key]
        return tuple(
            _ToldCount(key[0], encode_text(key[1]), self._counts.here(key))
            for key in keys
            if self._is_limited(key)
        )

    def _note(self, key: CountKey) -> None:
        """Have the others told a count that has changed, if there is a limit of it."""
        if self._untold and self._is_limited(key):
            for untold in self._untold.values():
                untold[key] = None

    def _is_limited(self, key: CountKey) -> bool:
        kind, name = key
        if kind is ClientCountKind.VHOST_CONNECTIONS:
            vhost = self._metadata.vhost(name)
            return vhost is not None and vhost.limit(_CONNECTIONS_LIMIT) is not None
        user = self._metadata.users.by_name.get(name)
        limit = _CONNECTIONS_LIMIT if kind is ClientCountKind.USER_CONNECTIONS else _CHANNELS_LIMIT
        return user is not None and user.limit(limit) is not None

    def _changed(self, event: Event) -> None:
        """Tell the counts of a name whose limits may be others; forget those of a name that is gone."""
        match event:
            case UserChanged():
                for kind in _OF_USER:
                    self._note((kind, event.user))
            case VhostLimitsChanged():
                for kind in _OF_VHOST:
                    self._note((kind, event.vhost))
            case UserRemoved():
                self._forget(_OF_USER, event.user)
            case VhostRemoved():
                self._forget(_OF_VHOST, event.vhost)

    def _forget(self, kinds: tuple[ClientCountKind, ...], name: str) -> None:
        for kind in kinds:
            for told in self._told.values():
                told.pop((kind, name), None)
