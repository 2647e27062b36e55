"""The traffic of remote queues with one other node, in both roles and for all virtual hosts.

Each payload names a virtual host and a generation. A generation is one session of a virtual host at the node
whose clients use the queues. It ends with the session of the link, or when the virtual host ends at one of
the nodes, and payloads of an ended one are ignored. A payload that is larger than the link carries passes in
parts, of which the next one is sent when the link takes more: it keeps less than the largest message has.
"""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from warren.cluster.home_dependencies import HomeDependencies
from warren.cluster.home_node import HomeNode
from warren.cluster.node_channel import NodeChannel
from warren.cluster.parked_payloads import ParkedPayloads, ParkingDependencies
from warren.cluster.payload_reader import PayloadReader
from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.remote_channel import RemoteChannel, RemoteChannelDependencies
from warren.cluster.remote_codec import (
    FROM_HOME,
    LOST,
    PART,
    STARTED,
    TO_HOME,
    MalformedPayload,
    encode_head,
)
from warren.errors import AmqpError
from warren.limits_cluster import REMOTE_PART_SIZE_MAX, REMOTE_PAYLOAD_SIZE_MAX
from warren.metadata.machine import Metadata
from warren.metadata.vhosts import VhostMetadata
from warren.model.coroutine_driver import Later
from warren.model.turn import Turn
from warren.vhost.vhost import VirtualHost
from warren.wire.strings import decode_text, encode_text


class TrafficDependencies(Struct, frozen=True, kw_only=True):
    """The parts of this node that the traffic with another one needs."""

    metadata: Metadata
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    turn: Turn
    # The running virtual host of a name.
    vhost: Callable[[str], VirtualHost | None]
    # Called with what has ended a virtual host's traffic.
    report: Callable[[str], None]


class NodeTraffic:
    """All traffic of remote queues with one other node."""

    def __init__(
        self, name: str, channel: NodeChannel, dependencies: TrafficDependencies, *, node: int = 0
    ) -> None:
        """`name` is that of the other node, `node` its number, and `channel` leads to it."""
        self._name = name
        self._node = node
        self._channel = channel
        self._dependencies = dependencies
        self._is_up = False
        # True from a malformed payload to the end of the session.
        self._is_broken = False
        self._generation = 0
        # By virtual host: what the other node is home of, and what it does here, with its generation.
        self._homes: dict[str, HomeNode] = {}
        self._served: dict[str, tuple[int, RemoteChannel]] = {}
        # Payloads for virtual hosts that are about to start here, by name.
        self._starting: dict[str, ParkedPayloads] = {}
        # The records of the virtual hosts that have ended here, and were not deleted.
        self._ended: dict[str, VhostMetadata] = {}
        # Payloads that are sent in parts and those behind them, and how much of the first one was sent.
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._sent_size = 0
        # The parts of a payload that have arrived, and their size.
        self._parts: list[bytes] = []
        self._parts_size = 0

    def home_of(self, vhost: VirtualHost) -> HomeNode:
        """The other node as the home of queues of `vhost`."""
        home = self._homes.get(vhost.name)
        if home is None:
            dependencies = self._dependencies
            home = self._homes[vhost.name] = HomeNode(
                vhost,
                HomeDependencies(
                    name=self._name,
                    channel=self,
                    metadata=dependencies.metadata,
                    later=dependencies.later,
                    after=dependencies.after,
                    turn=dependencies.turn,
                    next_generation=self._next_generation,
                ),
            )
            if self._is_up:
                home.begin()
        return home

    def vhost_began(self, name: str) -> None:
        """Handle in a later turn what has waited for the virtual host `name`, which has started here.

        The other node is told, whose queues may have waited for that.
        """
        starting = self._starting.get(name)
        if starting is not None:
            starting.try_again()
        if self._is_up:
            self._channel.send(STARTED, encode_text(name))

    def vhost_ended(self, name: str) -> None:
        """End all that concerns the virtual host `name`, which has ended on this node."""
        record = self._dependencies.metadata.vhost(name)
        if record is None:
            self._ended.pop(name, None)
        else:
            self._ended[name] = record
        home = self._homes.pop(name, None)
        if home is not None:
            home.end()
            self._end_generation(name)
        served = self._served.get(name)
        if served is not None and not served[1].is_over:
            served[1].lose()

    # --- what the link calls --------------------------------------------------------------------------

    def session_began(self) -> None:
        """A session of the link has begun."""
        self._is_up = True
        self._is_broken = False
        for home in self._homes.values():
            home.begin()

    def session_lost(self) -> None:
        """The session has ended: nothing of it follows."""
        self._is_up = False
        self._waiting.clear()
        self._sent_size = 0
        self._parts.clear()
        self._parts_size = 0
        starting, self._starting = self._starting, {}
        for parked in starting.values():
            parked.end()
        served, self._served = self._served, {}
        for _, channel in served.values():
            channel.end()
        for home in list(self._homes.values()):
            home.end()

    def writable(self) -> None:
        """The link takes payloads again."""
        self._send_waiting()
        if not self.is_writable:
            return
        for home in list(self._homes.values()):
            home.writable()
        for _, channel in list(self._served.values()):
            channel.writable()

    def received(self, kind: int, body: bytes) -> None:
        """Handle a payload of the link; one that is malformed ends its session."""
        if not self._is_up or self._is_broken:
            return
        try:
            self._receive(kind, body)
        except MalformedPayload as error:
            self.end_session(f"payload of remote queues: {error}")

    # --- the channel of homes and remote channels -----------------------------------------------------

    @property
    def is_writable(self) -> bool:
        """False while what was sent must be waited for."""
        return not self._waiting and self._channel.is_writable

    def send(self, kind: int, body: bytes) -> None:
        """Send a payload, in parts if it is large, of which some may have to wait for the link."""
        if self._waiting or len(body) > REMOTE_PART_SIZE_MAX:
            self._waiting.append((kind, body))
            self._send_waiting()
        else:
            self._channel.send(kind, body)

    def end_session(self, reason: str) -> None:
        """End the session of the link, since the other node has sent what it may not."""
        self._is_broken = True
        self._channel.end_session(reason)

    # --- private --------------------------------------------------------------------------------------

    def _send_waiting(self) -> None:
        """Send what waits, as much as the link takes."""
        waiting, channel = self._waiting, self._channel
        while waiting and channel.is_writable:
            kind, body = waiting[0]
            at, self._sent_size = self._sent_size, self._sent_size + REMOTE_PART_SIZE_MAX
            if self._sent_size < len(body):
                channel.send(PART, body[at : self._sent_size])
                continue
            waiting.popleft()
            self._sent_size = 0
            channel.send(kind, body[at:] if at else body)

    def _next_generation(self) -> int:
        self._generation += 1
        return self._generation

    def _end_generation(self, vhost: str) -> None:
        """Have the home take back what it has delivered to the virtual host, which has ended here.

        Its next run may use no queue of that node. A generation without items ends the one before.
        """
        if self._is_up:
            self.send(TO_HOME, encode_head(self._next_generation(), 0, vhost))

    def _receive(self, kind: int, body: bytes) -> None:
        if kind == PART:
            self._add_part(body)
            return
        if kind == STARTED:
            started = self._homes.get(decode_text(body))
            if started is not None:
                started.vhost_began()
            return
        if self._parts:
            self._add_part(body)
            body = b"".join(self._parts)
            self._parts.clear()
            self._parts_size = 0
        reader = PayloadReader(body)
        if kind == FROM_HOME:
            home = self._homes.get(reader.vhost)
            if home is not None:
                home.received(reader)
        elif kind == TO_HOME:
            self._serve(reader)
        else:
            raise MalformedPayload(f"kind {kind}")

    def _add_part(self, body: bytes) -> None:
        self._parts_size += len(body)
        if self._parts_size > REMOTE_PAYLOAD_SIZE_MAX:
            raise MalformedPayload(f"parts of {self._parts_size} bytes")
        self._parts.append(body)

    def _serve(self, reader: PayloadReader) -> None:
        """Handle what the other node asks of queues of this one, or have it wait for their virtual host."""
        starting = self._starting.get(reader.vhost)
        if starting is None:
            if not self._is_about_to_start(reader):
                self._serve_now(reader)
                return
            dependencies = self._dependencies
            starting = self._starting[reader.vhost] = ParkedPayloads(
                self._serve_if_started,
                ParkingDependencies(
                    metadata=dependencies.metadata,
                    later=dependencies.later,
                    after=dependencies.after,
                    end_session=self.end_session,
                ),
            )
        starting.received(reader)
        if not len(starting):
            self._starting.pop(reader.vhost, None)

    def _serve_if_started(self, reader: PayloadReader, is_final: bool) -> bool:
        if not is_final and self._is_about_to_start(reader):
            return False
        self._serve_now(reader)
        return True

    def _is_about_to_start(self, reader: PayloadReader) -> bool:
        """True if the virtual host of a payload is not running yet: it was declared a moment ago."""
        if self._dependencies.vhost(reader.vhost) is not None:
            return False
        metadata = self._dependencies.metadata
        record = metadata.vhost(reader.vhost)
        if record is None:
            return metadata.index < reader.index
        return self._ended.get(reader.vhost) is not record

    def _serve_now(self, reader: PayloadReader) -> None:
        channel = self._served_channel(reader)
        if channel is None or channel.is_over:
            return
        try:
            channel.received(reader)
        except AmqpError as error:
            # A queue cannot go on, which usually ends the virtual host.
            self._dependencies.report(f"traffic of node '{self._name}' with vhost '{reader.vhost}': {error}")
            channel.lose()

    def _served_channel(self, reader: PayloadReader) -> RemoteChannel | None:
        """The channel of the payload's generation; None for an ended one."""
        name, generation = reader.vhost, reader.generation
        known, channel = self._served.get(name, (0, None))
        if generation < known:
            return None
        vhost = self._dependencies.vhost(name)
        if channel is not None:
            if channel.vhost is not vhost and not channel.is_over:
                channel.lose()
            if generation == known:
                return channel
            channel.end()
        if vhost is None:
            self._refuse(name, generation)
            return None
        dependencies = self._dependencies
        channel = RemoteChannel(
            vhost,
            generation,
            RemoteChannelDependencies(
                channel=self,
                metadata=dependencies.metadata,
                later=dependencies.later,
                after=dependencies.after,
                node=self._node,
            ),
        )
        self._served[name] = generation, channel
        return channel

    def _refuse(self, vhost: str, generation: int) -> None:
        """Tell the other node that the virtual host is not running here."""
        self._served.pop(vhost, None)
        writer = PayloadWriter()
        writer.add(LOST)
        self.send(FROM_HOME, writer.take(encode_head(generation, 0, vhost)))
