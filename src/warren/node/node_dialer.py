"""Opens connections to other brokers for shovels and links: the port `relay/dialer`.

Those who dial are coroutines of `model/coroutine_driver`; the sockets belong to asyncio. Each dial is a task
of the event loop, and what the coroutine awaits is completed when the task has ended.
"""

import asyncio
import logging
from collections.abc import Coroutine

from warren.client.answer import Answer
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.uri import Target
from warren.model.coroutine_driver import drive
from warren.node.local_connections import LocalConnections
from warren.transport.outgoing import OutgoingConnections

logger = logging.getLogger("warren.connection")

_STOPPING = "the node is stopping"


class NodeDialer:
    """Opens the connections of one node."""

    def __init__(self, outgoing: OutgoingConnections, local: LocalConnections) -> None:
        self._outgoing = outgoing
        self._local = local
        self._dials: set[_Dial] = set()
        self._is_closed = False

    async def dial(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        """Return an open connection to `target`, which the broker shows under `name`. Raises BrokerRefused.

        A local target is this node, where the connection has the rights of `user`.
        A coroutine that is closed meanwhile leaves nothing behind.
        """
        if self._is_closed:
            raise BrokerRefused(_STOPPING)
        if target.is_local:
            dial = _Dial(self._local.open(target, name, user, listener))
        else:
            dial = _Dial(self._outgoing.open(target, name, listener))
        self._dials.add(dial)
        try:
            return await dial.answer
        finally:
            self._dials.discard(dial)
            dial.end()

    def limit_sockets(self, maximum: int) -> None:
        """Have at most `maximum` connections to other brokers."""
        self._outgoing.maximum = maximum

    def sockets_beyond_clients(self) -> int:
        """The number of sockets, less that of connections in memory, which count as clients without one."""
        return len(self._outgoing.protocols) - len(self._local.protocols) // 2

    def close(self) -> None:
        """End all dials and drop all connections; nothing is dialled from here on."""
        self._is_closed = True
        for dial in list(self._dials):
            dial.cancel()
        self._outgoing.abort()
        self._local.abort()


class _Dial:
    """One dial, with the task that performs it."""

    def __init__(self, opening: Coroutine[object, object, ClientConnection]) -> None:
        self.answer: Answer[ClientConnection] = Answer()
        self._is_abandoned = False
        self._task = asyncio.get_running_loop().create_task(opening)
        self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """End the dial: whoever awaits it is refused."""
        self._task.cancel()

    def end(self) -> None:
        """Called when nobody awaits the answer any more."""
        self._is_abandoned = True
        self._task.cancel()

    def _finish(self, task: "asyncio.Task[ClientConnection]") -> None:
        error = None if task.cancelled() else task.exception()
        if self._is_abandoned:
            if not task.cancelled() and error is None:
                # It was opened in the turn in which it was abandoned.
                drive(task.result().close())
        elif task.cancelled():
            self.answer.fail(BrokerRefused(_STOPPING))
        elif error is None:
            self.answer.complete(task.result())
        elif isinstance(error, BrokerRefused):
            self.answer.fail(error)
        else:
            logger.error("unexpected exception while connecting to a broker", exc_info=error)
            self.answer.fail(BrokerRefused(f"unexpected {type(error).__name__} while connecting"))
