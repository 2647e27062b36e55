"""Listening sockets on IPv4 and IPv6."""

import asyncio
import contextlib
import errno
import fcntl
import socket
import struct
import termios

from msgspec import Struct

_ATTEMPTS = 8
_INT = struct.Struct("i")
_LINGER = struct.Struct("ii")


def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Sockets listening on every address of `host`, all on the same port; port 0 takes a free one.

    "" and "::" mean all interfaces in both families, "0.0.0.0" all in IPv4.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _bind(host, port, backlog)
        except OSError as error:
            # The free port of the first family may be in use in the second: try another.
            if port or error.errno != errno.EADDRINUSE:
                raise
    return _bind(host, port, backlog)


def unacknowledged(transport: asyncio.Transport) -> int:
    """The bytes that were written and not acknowledged by the peer; 0 where the kernel does not tell."""
    connected = transport.get_extra_info("socket")
    if connected is None:
        return 0
    try:
        said = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(_INT.size))
    except (OSError, ValueError):
        return 0
    return int(_INT.unpack(said)[0])


class SocketOptions(Struct, frozen=True):
    """Socket options of each connection; None is the kernel's default."""

    is_nodelay: bool = True
    is_keepalive: bool = False
    send_size: int | None = None
    receive_size: int | None = None
    service: int | None = None
    priority: int | None = None
    # Closing resets the connection.
    is_reset: bool = False

    def set(self, connected: socket.socket) -> None:
        """Set the options; those that the kernel refuses are ignored."""
        level = socket.SOL_SOCKET
        wanted: list[tuple[int, int, int | bytes]] = [
            (level, option, value)
            for option, value in (
                (socket.SO_SNDBUF, self.send_size),
                (socket.SO_RCVBUF, self.receive_size),
                (getattr(socket, "SO_PRIORITY", socket.SO_SNDBUF), self.priority),
            )
            if value is not None
        ]
        # The loop switches TCP_NODELAY on, so that it is only ever switched off here.
        if not self.is_nodelay:
            wanted.append((socket.IPPROTO_TCP, socket.TCP_NODELAY, 0))
        if self.is_keepalive:
            wanted.append((level, socket.SO_KEEPALIVE, 1))
        if self.service is not None:
            is_six = connected.family == socket.AF_INET6
            kind = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if is_six else (socket.IPPROTO_IP, socket.IP_TOS)
            wanted.append((*kind, self.service))
        if self.is_reset:
            wanted.append((level, socket.SO_LINGER, _LINGER.pack(1, 0)))
        for option in wanted:
            with contextlib.suppress(OSError):
                connected.setsockopt(*option)


def _bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    with contextlib.ExitStack() as opened:
        sockets: list[socket.socket] = []
        is_any = host in ("", "*", "::")
        for family, address in _resolve(host):
            try:
                listening = socket.socket(family, socket.SOCK_STREAM)
                opened.callback(listening.close)
                _listen(listening, (address, port), backlog)
            except OSError as error:
                # Without IPv6, only IPv4 is used.
                if is_any and family == socket.AF_INET6 and error.errno != errno.EADDRINUSE:
                    continue
                raise
            sockets.append(listening)
            port = listening.getsockname()[1]
        opened.pop_all()
        return sockets


def _resolve(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if host in ("", "*", "::"):
        return [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = {(socket.AddressFamily(entry[0]), str(entry[4][0])) for entry in found}
    return sorted(addresses)


def _listen(listening: socket.socket, address: tuple[str, int], backlog: int) -> None:
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listening.family == socket.AF_INET6:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listening.setblocking(False)
    listening.bind(address)
    listening.listen(backlog)
