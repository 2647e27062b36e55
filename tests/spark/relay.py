"""A TCP relay to a broker that a test can cut: its connections break, and new ones are accepted."""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator

from tests.patience import patient

PIECE = 65_536
# Closing sends a reset, so that it is not taken for a regular end.
RESET = struct.pack("ii", 1, 0)
RELAY_S_MAX = patient(10)


class Relay:
    """Listens on its own port, and forwards data to another, what comes from there after `delay_s`."""

    def __init__(self, target: int, delay_s: float = 0) -> None:
        self._target = target
        self._delay_s = delay_s
        self._is_closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Break all present connections."""
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections."""
        self._is_closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(RELAY_S_MAX)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(RELAY_S_MAX)
            assert not thread.is_alive()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                thread = threading.Thread(target=self._pass_on, args=(near,))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, near: socket.socket) -> None:
        """Forward in both directions until one of them ends."""
        with contextlib.ExitStack() as stack:
            stack.callback(near.close)
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            stack.callback(far.close)
            others = {near: far, far: near}
            with self._lock:
                self._open |= others.keys()
            with contextlib.suppress(OSError):
                while True:
                    for one in select.select([near, far], [], [])[0]:
                        data = one.recv(PIECE)
                        if not data:
                            raise OSError
                        if one is far and self._delay_s:
                            self._is_closed.wait(self._delay_s)
                        others[one].sendall(data)
            with self._lock:
                self._open -= others.keys()
            for one in others:
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


@contextlib.contextmanager
def relayed(target: int, delay_s: float = 0) -> Iterator[Relay]:
    """A relay to the port `target`, until the block ends."""
    relay = Relay(target, delay_s)
    try:
        yield relay
    finally:
        relay.close()
