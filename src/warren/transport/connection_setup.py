"""Performs the handshakes before the AMQP protocol: a PROXY header, TLS, or both."""

import asyncio
import logging
import socket
from collections.abc import Callable

from msgspec import Struct

from warren.transport.protocol import AmqpProtocol
from warren.transport.proxy_protocol import ProxiedEnds, ProxyHeaderError, read_header
from warren.transport.tls import Tls, accept

logger = logging.getLogger("warren.listener")


class ConnectionSetup(Struct, frozen=True, kw_only=True):
    """The handshakes of a socket before its protocol starts."""

    make_protocol: Callable[[ProxiedEnds | None], AmqpProtocol]
    is_proxied: bool
    tls: Tls | None
    header_ms: int
    tls_handshake_ms: int

    async def begin(self, connected: socket.socket) -> None:
        """Perform the handshakes of `connected`, and start its protocol.

        The socket is closed on any error.
        """
        loop = asyncio.get_running_loop()
        tls, ends = self.tls, None
        try:
            if connected.family != socket.AF_UNIX:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.is_proxied:
                async with asyncio.timeout(self.header_ms / 1000):
                    ends = await read_header(loop, connected)
            await accept(connected, lambda: self.make_protocol(ends), tls, self.tls_handshake_ms / 1000)
        except (ProxyHeaderError, TimeoutError, OSError) as error:
            what = "PROXY header or TLS handshake" if self.is_proxied else "TLS handshake"
            logger.log(
                logging.WARNING if self.is_proxied else logging.INFO,
                "%s failed: %s", what, error or "timeout",
            )  # fmt: skip
            connected.close()
        except asyncio.CancelledError:
            connected.close()
            raise
