"""An event loop whose time passes at once: as soon as nothing else is to be done, its next timer is due."""

import asyncio
import selectors
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop, with a DNS of its own: `names` has the addresses of each name."""

    def __init__(self) -> None:
        self.now = 0.0
        self.names: dict[str, list[str]] = {}
        super().__init__(_SkippingSelector(self))

    def time(self) -> float:
        """The virtual time, in seconds."""
        return self.now

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """Resolve a name; one without addresses takes for ever, an unknown one fails."""
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if not self.names[host]:
            await asyncio.Event().wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in self.names[host]]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """Find a name of an address."""
        for name, addresses in self.names.items():
            if addresses == [sockaddr[0]]:
                return name, str(sockaddr[1])
        assert flags & socket.NI_NAMEREQD
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


class _SkippingSelector(selectors.SelectSelector):
    """Selects without waiting: the time that it should wait has passed."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing will ever happen"
            self._loop.now += max(timeout, 0)
        return ready


def run(coroutine: Coroutine[Any, Any, Result], names: dict[str, list[str]] | None = None) -> Result:
    """Run a coroutine in a loop of its own, with these names in its DNS."""
    loop = VirtualLoop()
    loop.names = names or {}
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(coroutine)
