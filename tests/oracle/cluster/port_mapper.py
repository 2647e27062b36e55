"""The port mapper of one Erlang node (epmd), which names ports of the test as those of the other nodes.

With a mapper of its own, a node reaches each peer through a proxy, and a test can cut the distribution
between two nodes. A name is registered for as long as the connection that registered it is open.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

ALIVE2, PORT_PLEASE2, NAMES = 120, 122, 110
ALIVE2_X_ANSWER, PORT2_ANSWER = 118, 119
# A visible node that speaks TCP, and the versions of the distribution that it accepts.
_NODE = bytes([77, 0]) + (6).to_bytes(2, "big") + (5).to_bytes(2, "big")


class PortMapper:
    """Answers on `port`; `find` returns the port at which a name is reached that is not registered here."""

    def __init__(self, port: int, find: Callable[[str], int | None]) -> None:
        self.registered: dict[str, int] = {}
        self._find = find
        self._creations = 0
        self._port = port
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            stream = connection.makefile("rb")
            size = int.from_bytes(stream.read(2), "big")
            request = stream.read(size)
            if not request:
                return
            if request[0] == ALIVE2:
                self._register(request, connection)
            elif request[0] == PORT_PLEASE2:
                connection.sendall(self._look_up(request[1:].decode()))
            elif request[0] == NAMES:
                connection.sendall(self._list())

    def _register(self, request: bytes, connection: socket.socket) -> None:
        port = int.from_bytes(request[1:3], "big")
        size = int.from_bytes(request[9:11], "big")
        name = request[11 : 11 + size].decode()
        self._creations += 1
        self.registered[name] = port
        connection.sendall(bytes([ALIVE2_X_ANSWER, 0]) + self._creations.to_bytes(4, "big"))
        # Until the node ends.
        with contextlib.suppress(OSError):
            connection.recv(1)
        if self.registered.get(name) == port:
            del self.registered[name]

    def _look_up(self, name: str) -> bytes:
        port = self.registered.get(name) or self._find(name)
        if port is None:
            return bytes([PORT2_ANSWER, 1])
        encoded = name.encode()
        sized = len(encoded).to_bytes(2, "big") + encoded
        return bytes([PORT2_ANSWER, 0]) + port.to_bytes(2, "big") + _NODE + sized + b"\0\0"

    def _list(self) -> bytes:
        lines = [f"name {name} at port {port}\n" for name, port in self.registered.items()]
        return self._port.to_bytes(4, "big") + "".join(lines).encode()
