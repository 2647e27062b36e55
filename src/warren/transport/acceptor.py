"""Accepts the clients of a listening socket, and checks limits before any resources are used for a client.

asyncio's servers report a client after its TLS handshake; this acceptor knows it from the start, so that
handshakes in progress count for the limits as well. Errors never stop it from accepting.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from time import monotonic

logger = logging.getLogger("warren.listener")

# Port: starts the handshake of a client, given its socket and address; None if it is refused.
OnAccept = Callable[[socket.socket, str], Coroutine[object, object, None] | None]

# Delay before the next accept while no file descriptor is free, when an immediate one would fail again.
_RETRY_S = 0.1
# The interval of log lines about this failure.
_LINE_S = 10.0


class Acceptor:
    """One listening socket."""

    def __init__(self, listening: socket.socket, begin: OnAccept) -> None:
        self._listening = listening
        # A client of a Unix socket has no address but that of the socket.
        self._host = listening.getsockname() if listening.family == socket.AF_UNIX else ""
        self._begin = begin
        self._tasks: set[asyncio.Task[None]] = set()
        self._told_at = -_LINE_S
        self._keep(self._accept())

    def close(self) -> None:
        """Stop accepting, and drop clients whose handshake is not complete."""
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until all tasks have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, address = await loop.sock_accept(self._listening)
            except OSError as error:
                self._log_failure(error)
                await asyncio.sleep(_RETRY_S)
                continue
            connected.setblocking(False)
            beginning = self._begin(connected, self._host or str(address[0]))
            if beginning is None:
                connected.close()
            else:
                self._keep(beginning)

    def _log_failure(self, error: OSError) -> None:
        if monotonic() - self._told_at >= _LINE_S:
            self._told_at = monotonic()
            logger.error("cannot accept a connection, will retry: %s", error)

    def _keep(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
