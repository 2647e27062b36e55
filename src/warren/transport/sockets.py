"""Listening sockets on IPv4 and IPv6."""

import contextlib
import errno
import socket

# What "every interface" is called in configuration files.
ANY_HOSTS = ("", "*", "::", "0.0.0.0")
_ATTEMPTS = 8


def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Sockets listening on every address of `host`, all on the same port; port 0 takes a free one.

    "" and "::" are every interface in both families, "0.0.0.0" every one in IPv4.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _bind(host, port, backlog)
        except OSError as error:
            # The free port that the first family got may be taken in the second: take another.
            if port or error.errno != errno.EADDRINUSE:
                raise
    return _bind(host, port, backlog)


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
                # A machine without IPv6 listens on what it has.
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
