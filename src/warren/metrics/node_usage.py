"""The resource usage of the node: the process as the kernel reports it, and the garbage collector."""

import gc
import os
import resource
from collections.abc import Callable

from warren.flow.alarms import Alarms, Resource
from warren.session.server import Server

# The columns of `NodeUsage.row`, under RabbitMQ's names.
NODE_COLUMNS = (
    "mem_used", "fd_used", "sockets_used", "proc_used", "disk_free", "gc_num", "gc_bytes_reclaimed",
    "context_switches", "io_read_count", "io_read_bytes", "io_write_count", "io_write_bytes",
)  # fmt: skip


class NodeUsage:
    """Measures the usage of one node."""

    def __init__(
        self, server: Server, alarms: Alarms, sockets_beyond_clients: Callable[[], int] = lambda: 0
    ) -> None:
        """`sockets_beyond_clients` is the number of sockets that the connections of clients do not count."""
        self._server = server
        self._alarms = alarms
        self._sockets_beyond_clients = sockets_beyond_clients

    def row(self) -> tuple[int, ...]:
        """Return the present usage, in the order of FIGURES; figures that are not measured are 0."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        reads, read_bytes, writes, written_bytes = _disk()
        return (
            self._level(Resource.MEMORY),
            descriptors_used(),
            self._server.connection_count + self._sockets_beyond_clients(),
            # The number of threads, the nearest equivalent of Erlang processes.
            _threads(),
            self._level(Resource.DISK),
            sum(generation["collections"] for generation in gc.get_stats()),
            0,
            usage.ru_nvcsw + usage.ru_nivcsw,
            reads,
            read_bytes,
            writes,
            written_bytes,
        )

    def _level(self, of: Resource) -> int:
        level = self._alarms.level(of)
        return 0 if level is None else level.byte_count


def descriptors_used() -> int:
    """Return the number of open file descriptors, taken from the lowest free one without counting."""
    try:
        lowest = os.dup(0)
    except OSError:
        return descriptors_max()
    os.close(lowest)
    return lowest


def descriptors_max() -> int:
    """Return the maximum number of open file descriptors of this process."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _threads() -> int:
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[17])
    except (OSError, ValueError, IndexError):
        return 1


def _disk() -> tuple[int, int, int, int]:
    """Return read calls, bytes read, write calls and bytes written, for all but memory."""
    try:
        with open("/proc/self/io", "rb") as file:
            numbers = dict(line.split(b": ") for line in file.read().splitlines())
        return tuple(int(numbers[name]) for name in (b"syscr", b"read_bytes", b"syscw", b"write_bytes"))  # type: ignore[return-value]
    except (OSError, ValueError, KeyError):
        return 0, 0, 0, 0
