"""The connections of simulated clients to a simulated broker: octets pass in pieces, and are cut anywhere.

Octets of one connection stay in order; of two connections either may be ahead.
"""

import random
from typing import Protocol

from warren.framing.output_listener import OutputListener
from warren.session.connection import Connection
from warren.session.peer import Peer
from warren.simulation.simulated_node import SimulatedNode

# Sizes of the pieces in which octets pass.
_PIECES = (1, 30, 400, 8_000, 65_536)


class _Listener(OutputListener):
    """Output is collected after each step, so that nothing needs to be told."""

    def output_ready(self) -> None:
        """Nothing to do."""

    def output_full(self) -> None:
        """Nothing to do."""


class NetworkClient(Protocol):
    """Port: a client that speaks octets."""

    name: str
    is_connected: bool

    def connect(self) -> None:
        """Begin the handshake on a new connection."""

    def lost(self) -> None:
        """The connection is gone."""

    def released(self) -> None:
        """The broker knows, or will know, that the connection is gone."""

    def take_output(self) -> bytes:
        """Return what is to be sent."""

    def note_written(self, data: bytes, /) -> int:
        """Note what the broker has written, whether it arrives or not; returns the number of methods."""

    def receive(self, data: bytes, /) -> None:
        """Handle octets that have arrived."""


class NetworkMachine(Protocol):
    """Port: the machine that clients connect to."""

    @property
    def running(self) -> SimulatedNode | None:
        """The node that runs on it; None while it is down."""


class SimulatedConnection:
    """One connection: a client, the broker's end, and the octets under way."""

    def __init__(self, client: NetworkClient, node: SimulatedNode) -> None:
        self.client = client
        self.node = node
        name = f"{client.name} {node.server.next_serial}"
        peer = Peer(host="", port=0, server_host="", server_port=0, local_name=name, is_operator=True)
        self.server = Connection(node.server, peer, _Listener())
        self.to_server = bytearray()
        self.to_client = bytearray()

    def collect(self) -> None:
        """Take the output of both ends."""
        self.to_server += self.client.take_output()
        written = b"".join(bytes(part) for part in self.server.take_output())
        if written:
            self.to_client += written
            self.node.note_written(self.client.note_written(written))
            # That the socket has room again is told in a turn of its own.
            self.node.measure(self.server.output_written)

    @property
    def can_pass_to_server(self) -> bool:
        """True if the broker would read something, or has more to do."""
        return self.server.has_more or bool(self.to_server and not self.server.is_reading_paused)

    def pass_to_server(self, size: int) -> None:
        """Have the broker do a turn's work of what it has read, or read up to `size` octets."""
        if self.server.has_more:
            self.node.measure(self.server.process_more)
            return
        data = bytes(self.to_server[:size])
        del self.to_server[:size]
        self.node.measure(lambda: self.server.receive(data))

    def pass_to_client(self, size: int) -> None:
        """Have the client read up to `size` octets."""
        data = bytes(self.to_client[:size])
        del self.to_client[:size]
        self.client.receive(data)


class SimulatedNetwork:
    """The connections of one broker."""

    def __init__(self, machine: NetworkMachine, chance: random.Random) -> None:
        self._machine = machine
        self._chance = chance
        self.connections: list[SimulatedConnection] = []

    def connect(self, client: NetworkClient) -> None:
        """Connect `client`, unless it is connected or the broker is down."""
        node = self._machine.running
        if not client.is_connected and node is not None:
            client.connect()
            self.connections.append(SimulatedConnection(client, node))

    def cut(self, client: NetworkClient) -> None:
        """Cut the connection of `client`; the broker may have read a part of what was under way."""
        for connection in [one for one in self.connections if one.client is client]:
            self.connections.remove(connection)
            if not connection.node.is_over:
                connection.collect()
                sent = connection.to_server[: self._chance.randrange(len(connection.to_server) + 1)]
                connection.to_server = sent
                while connection.can_pass_to_server and connection.to_server:
                    connection.pass_to_server(len(sent) + 1)
                connection.collect()
                client.lost()
                client.released()
                connection.node.measure(connection.server.lost)
            client.lost()
            client.released()

    def cut_all(self) -> None:
        """Cut all connections."""
        for connection in list(self.connections):
            self.cut(connection.client)

    def collect(self, first: SimulatedConnection | None = None) -> None:
        """Take the output of all connections, of `first` before the others, and end those that are finished.

        What a channel held is told before others get it, if the connection that was disturbed comes first.
        """
        if first is not None:
            first.collect()
        for connection in list(self.connections):
            connection.collect()
            if connection.server.is_finished and not connection.to_client:
                self.connections.remove(connection)
                connection.client.lost()
                connection.client.released()
                connection.node.measure(connection.server.lost)

    def pass_piece(self) -> bool:
        """Pass a piece in one direction of one connection; False if nothing is under way."""
        self.collect()
        choices = [(one, False) for one in self.connections if one.can_pass_to_server]
        choices += [(one, True) for one in self.connections if one.to_client]
        if not choices:
            return False
        connection, is_to_client = self._chance.choice(choices)
        size = self._chance.choice(_PIECES)
        (connection.pass_to_client if is_to_client else connection.pass_to_server)(size)
        self.collect(connection)
        return True

    def expire(self) -> None:
        """Tell each connection the time, if it waits for that."""
        for connection in list(self.connections):
            due = connection.server.deadline()
            if due is not None and due <= connection.node.clock.now:
                connection.node.measure(connection.server.expire)
                self.collect(connection)

    @property
    def is_quiet(self) -> bool:
        """True if nothing is under way."""
        return not any(
            one.to_client or one.to_server or one.server.has_more or one.server.is_finished
            for one in self.connections
        )
