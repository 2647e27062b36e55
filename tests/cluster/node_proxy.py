"""A TCP proxy in front of the cluster port of a node, which knows which node has dialed each connection."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence

_CHUNK = 1 << 16
# The HELLO of a node, with its name, is in the first bytes of a connection.
_HELLO_SIZE_MIN = 64


class NodeProxies:
    """The proxies of all nodes, in an event loop and a thread of their own.

    What a rule forbids is decided for each chunk: directed pairs of names that are `silent`, of which nothing
    passes and nobody is told, and pairs that are `refused`, whose connections are reset.
    """

    def __init__(self) -> None:
        self.silent: set[tuple[str, str]] = set()
        self.refused: set[frozenset[str]] = set()
        # The delay of each chunk in seconds, by directed pair.
        self.delays: dict[tuple[str, str], float] = {}
        self._connections: set[_Proxied] = set()
        self._names: list[str] = []
        self._loop = asyncio.new_event_loop()
        # By the name of the node: what listens in front of it, and the ports of the proxy and of the node.
        self._servers: dict[str, asyncio.Server] = {}
        self._ports: dict[str, tuple[int, int]] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def add(self, name: str, target: int) -> int:
        """Listen in front of `target`, the port of node `name`; returns the port of the proxy."""
        self._names.append(name)
        self._ports[name] = 0, target
        asyncio.run_coroutine_threadsafe(self._listen(name), self._loop).result(10)
        return self._ports[name][0]

    def started(self, name: str) -> None:
        """Listen again in front of a node whose process has ended, and which starts now."""
        if name not in self._servers:
            asyncio.run_coroutine_threadsafe(self._listen(name), self._loop).result(10)

    def ended(self, name: str) -> None:
        """Refuse connections to a node whose process has ended, as its host does."""
        self._call(lambda: self._servers.pop(name).close())

    def cut(self, one: str, other: str) -> None:
        """Reset the connections of two nodes, and refuse new ones."""
        self._change(lambda: self.refused.add(frozenset((one, other))))

    def silence(self, source: str, target: str) -> None:
        """Pass nothing from `source` to `target` any more."""
        self._change(lambda: self.silent.add((source, target)))

    def delay(self, source: str, target: str, seconds: float) -> None:
        """Pass each chunk from `source` to `target` so much later."""
        self._change(lambda: self.delays.update({(source, target): seconds}))

    def reset(self, one: str, other: str) -> None:
        """Reset the connections of two nodes once."""

        def reset() -> None:
            for connection in list(self._connections):
                if {connection.source, connection.target} == {one, other}:
                    connection.abort()

        self._call(reset)

    def mend(self) -> None:
        """Pass everything again. What was silenced is reset, since TCP passes nothing behind what is lost."""

        def mend() -> None:
            for connection in list(self._connections):
                if connection.is_lossy:
                    connection.abort()
            self.silent.clear()
            self.refused.clear()
            self.delays.clear()

        self._call(mend)

    def close(self) -> None:
        """Cut everything, and end the thread."""

        async def close() -> None:
            for server in self._servers.values():
                server.close()
            for connection in list(self._connections):
                connection.abort()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _change(self, change: Callable[[], object]) -> None:
        def act() -> None:
            change()
            for connection in list(self._connections):
                if frozenset((connection.source, connection.target)) in self.refused:
                    connection.abort()

        self._call(act)

    def _call(self, act: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            act()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(10)

    async def _listen(self, name: str) -> None:
        port, target = self._ports[name]
        server = await asyncio.start_server(
            lambda reader, writer: self._accept(reader, writer, name, target), "127.0.0.1", port
        )
        self._servers[name] = server
        self._ports[name] = server.sockets[0].getsockname()[1], target

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str, target: int
    ) -> None:
        try:
            hello = await asyncio.wait_for(reader.readexactly(_HELLO_SIZE_MIN), 5)
            hello += await asyncio.wait_for(reader.read(_CHUNK), 5)
            source = _named(hello, self._names)
            if frozenset((source, name)) in self.refused:
                writer.transport.abort()
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
            return
        connection = _Proxied(source, name, (writer, far_writer))
        self._connections.add(connection)
        try:
            async with asyncio.TaskGroup() as group:
                far_writer.write(hello)
                group.create_task(self._pass(connection, reader, far_writer, (source, name)))
                group.create_task(self._pass(connection, far_reader, writer, (name, source)))
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _pass(
        self,
        connection: "_Proxied",
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        direction: tuple[str, str],
    ) -> None:
        is_lost = False
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                delay = self.delays.get(direction)
                if delay:
                    await asyncio.sleep(delay)
                is_lost = is_lost or direction in self.silent
                connection.is_lossy = connection.is_lossy or is_lost
                if not is_lost:
                    sink.write(data)
                    await sink.drain()
            if not is_lost:
                sink.close()


class _Proxied:
    """One connection from node `source` to node `target`."""

    def __init__(self, source: str, target: str, writers: Sequence[asyncio.StreamWriter]) -> None:
        self.source = source
        self.target = target
        self._writers = writers
        # True when something of it was lost, so that nothing may follow.
        self.is_lossy = False

    def abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


def _named(hello: bytes, names: Sequence[str]) -> str:
    """The node whose name is in the first bytes of a connection."""
    return next((name for name in names if f"{name}@".encode() in hello), "")
