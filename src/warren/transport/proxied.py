"""Accepts connections that begin with a PROXY header, which has to be read before TLS or AMQP."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from warren.transport.protocol import AmqpProtocol
from warren.transport.proxy_protocol import ProxiedEnds, ProxyHeaderError, read_header
from warren.transport.tls import Tls

logger = logging.getLogger("warren.listener")

# With no file descriptor left, accepting again at once would only spin.
_RETRY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedSettings:
    """What happens to a socket once its header is read."""

    make_protocol: Callable[[ProxiedEnds | None], AmqpProtocol]
    tls: Tls | None
    header_ms: int
    tls_handshake_ms: int
    connections_max: int


class ProxiedServer:
    """One listening socket behind a load balancer."""

    def __init__(self, listening: socket.socket, settings: ProxiedSettings) -> None:
        self._listening = listening
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._keep(self._accept())

    def close(self) -> None:
        """Take no more clients, and drop those whose header has not come."""
        for task in self._tasks:
            task.cancel()
        self._listening.close()

    async def wait_closed(self) -> None:
        """Until every task has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                logger.error("cannot accept a connection: %s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            if len(self._tasks) > self._settings.connections_max:
                connected.close()
            else:
                self._keep(self._admit(connected))

    async def _admit(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        settings = self._settings
        connected.setblocking(False)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(settings.header_ms / 1000):
                ends = await read_header(loop, connected)
            tls = settings.tls
            await loop.connect_accepted_socket(
                lambda: settings.make_protocol(ends),
                connected,
                ssl=tls.context if tls else None,
                ssl_handshake_timeout=settings.tls_handshake_ms / 1000 if tls else None,
            )
        except (ProxyHeaderError, TimeoutError, OSError) as error:
            logger.warning("no usable PROXY header or TLS handshake: %s", error or "timeout")
            connected.close()
        except asyncio.CancelledError:
            connected.close()
            raise

    def _keep(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
