"""A TCP proxy between a link and its broker, whose connections a test cuts."""

import contextlib
import socket
import threading
from collections.abc import Iterator

_CHUNK = 1 << 16


class CutProxy:
    """Passes bytes to a port of this machine; `port` is where it listens.

    `cut` resets all connections. From `silence` to `resume` nothing passes in either direction and nobody is
    told, as when a network is gone; new connections are accepted and not answered. From `refuse` to `resume`
    every connection is reset at once.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.cuts = 0
        self._refuses = False
        self._passes = threading.Event()
        self._passes.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                if self._refuses:
                    near.close()
                    continue
                if not self._passes.is_set():
                    with self._lock:
                        self._sockets.add(near)
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.target), timeout=30)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                with self._lock:
                    self._sockets |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                self._passes.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    @property
    def is_passing(self) -> bool:
        """Whether it neither refuses nor is silent."""
        return self._passes.is_set() and not self._refuses

    def cut(self) -> int:
        """Cut all connections; returns how many there were."""
        with self._lock:
            ends, self._sockets = self._sockets, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.cuts += bool(ends)
        return len(ends) // 2

    def silence(self) -> None:
        """Pass nothing from now on."""
        self._passes.clear()

    def refuse(self) -> None:
        """Reset all connections, and every new one."""
        self._refuses = True
        self.cut()

    def resume(self) -> None:
        """Reset what was connected during the silence, and pass everything again."""
        self._refuses = False
        self.cut()
        self._passes.set()

    def close(self) -> None:
        """Cut all connections, and listen no more."""
        self._server.close()
        self.resume()


@contextlib.contextmanager
def cut_proxy(target: int) -> Iterator[CutProxy]:
    """A proxy that is closed in the end."""
    proxy = CutProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
