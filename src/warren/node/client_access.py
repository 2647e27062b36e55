"""Whether the node accepts clients: its listeners are closed while there is a cause for that."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from warren.limits import CLOSED_PER_TURN
from warren.model.coroutine_driver import Later
from warren.runtime.turns import in_pieces
from warren.session.server import Server
from warren.transport.listener import Listener


class ClientAccess:
    """The listeners of AMQP and streams, and the clients that have connected to them.

    Causes are independent of each other: clients are accepted when none is left. The HTTP ports stay open.
    """

    def __init__(self, listeners: Sequence[Listener], server: Server, later: Later) -> None:
        """`listeners` may still grow while the node starts."""
        self._listeners = listeners
        self._server = server
        self._later = later
        self._causes: set[str] = set()
        # Listeners are opened and closed by one caller at a time.
        self._lock = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """True if clients are accepted."""
        return not self._causes

    async def suspend(self, cause: str, reason: str) -> None:
        """Refuse new clients because of `cause`, and close the connections of all others for `reason`.

        Some are closed in each turn. Connections of the node to itself stay open.
        """
        async with self._lock:
            self._causes.add(cause)
            for listener in self._listeners:
                await listener.suspend()
        closes: list[Callable[[], None]] = [
            partial(connection.disconnect, reason)
            for connection in self._server.all_connections()
            if not connection.peer.local_name
        ]
        await in_pieces(closes, CLOSED_PER_TURN, self._later)

    async def resume(self, cause: str) -> None:
        """Accept clients again, unless there is another cause; OSError if an address is in use meanwhile."""
        async with self._lock:
            if self._causes <= {cause}:
                for listener in self._listeners:
                    await listener.resume()
            self._causes.discard(cause)
