"""A TCP proxy between two nodes in one event loop, whose connections are cut, also in one direction."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class LinkProxy:
    """Passes bytes to a port of this machine; `port` is where it listens."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        # Directions in which nothing passes, and nobody is told: "out" is to the target.
        self.silent: set[str] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client to the target."""
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, far_writer}
        for source, sink, direction in ((reader, far_writer, "out"), (far_reader, writer, "in")):
            task = asyncio.create_task(self._pass(source, sink, direction))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, direction: str) -> None:
        # TCP delivers nothing behind what it has lost.
        is_lost = False
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                is_lost = is_lost or direction in self.silent
                if not is_lost:
                    sink.write(data)
                    await sink.drain()
        if not is_lost:
            sink.close()

    def cut(self) -> int:
        """Cut all connections; returns how many there were."""
        writers, self._writers = self._writers, set()
        for writer in writers:
            writer.transport.abort()
        return len(writers) // 2

    def stop(self) -> None:
        """Cut all connections, and pass nothing more."""
        self.cut()
        for task in self._tasks:
            task.cancel()


@contextlib.asynccontextmanager
async def link_proxy(target: int) -> AsyncIterator[LinkProxy]:
    """A proxy that is closed in the end."""
    proxy = LinkProxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.stop()
