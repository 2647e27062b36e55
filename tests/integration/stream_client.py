"""A client of the stream protocol that sends the frames that a test asks for."""

import socket
import ssl

from tests.patience import patient
from tests.stream_delivery import decode_deliver

from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey
from warren.wire.streams.codes import OffsetType as Start
from warren.wire.streams.commands import StreamCommand
from warren.wire.streams.fields import Offset
from warren.wire.streams.frames import framed
from warren.wire.streams.publish import Publication, encode_publish

WAIT_S = patient(20)


class RawStreamClient:
    """A stream client without automatic behaviour."""

    FIRST = Offset(Start.FIRST)
    HEARTBEAT_S = 0

    def __init__(
        self,
        port: int,
        vhost: str = "/",
        *,
        user: str = "guest",
        password: str = "",
        context: ssl.SSLContext | None = None,
        **properties: str,
    ) -> None:
        """Connect as `user`, with the name as the password unless one is given, and with TLS if there is a
        `context`.

        `properties` are the client properties.
        """
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._file = self._socket.makefile("rb")
        self.ask(commands.PeerProperties(properties))
        self.ask(commands.SaslHandshake())
        self.authenticate(user, password or user)
        self.hear()
        self.say(commands.Tune(0, self.HEARTBEAT_S).encode())
        # The advertised host and port.
        self.opened = self.ask(commands.Open(vhost))
        host, own = self._socket.getsockname()
        self.name = f"{host}:{own} -> 127.0.0.1:{port}"

    def authenticate(self, user: str, password: str, mechanism: str = "PLAIN") -> int:
        """The response code of an authentication."""
        response = b"\0%b\0%b" % (user.encode(), password.encode())
        return int.from_bytes(self.ask(commands.SaslAuthenticate(mechanism, response))[8:10], "big")

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hear(self) -> bytes:
        """The next frame; ConnectionError if there is none."""
        data = self._file.read(4)
        if not data:
            raise ConnectionError("the broker has closed the connection")
        size = int.from_bytes(data, "big")
        return self._file.read(size)

    def ask(self, command: StreamCommand) -> bytes:
        self.say(command.encode(1))
        return self.hear()

    def publish(self, *sequences: int) -> None:
        entries: list[tuple[int, object]] = [
            (number, b"\0Su\xa0\x01%c" % (number % 256)) for number in sequences
        ]
        self.say(framed(encode_publish(Publication(1, entries))))  # type: ignore[arg-type]

    def confirmed(self, count: int) -> set[int]:
        """At least `count` confirmed sequences."""
        found: set[int] = set()
        while len(found) < count:
            frame = self.hear()
            assert frame[:2] == CommandKey.PUBLISH_CONFIRM.to_bytes(2, "big")
            found |= {int.from_bytes(frame[at : at + 8], "big") for at in range(9, len(frame), 8)}
        return found

    def messages(self, count: int) -> list[bytes]:
        """The first messages of the stream."""
        self.say(commands.Subscribe(1, "s", self.FIRST, 1_000, {}).encode(1))
        self.hear()
        found: list[bytes] = []
        while len(found) < count:
            found += decode_deliver(self.hear()).messages
        return found

    def subscribe(self, number: int, stream: str, credit: int = 10, **properties: str) -> None:
        """Subscribe to `stream` from its first message."""
        self.ask(commands.Subscribe(number, stream, self.FIRST, credit, properties))

    def close(self) -> None:
        self._file.close()
        self._socket.close()
