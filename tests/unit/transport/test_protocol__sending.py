"""Send timeouts: a client that accepts no output, and one that accepts a little."""

import asyncio
from collections.abc import Callable

from tests.clock import turn_of
from tests.unit.session.client import Broker, Client
from tests.unit.transport.test_protocol__reading import Entry, Socket

from warren.runtime.clock import Clock
from warren.transport.protocol import AmqpProtocol, LoopContext

TIMEOUT_MS = 800


class HandClock(Clock):
    """A clock that the test advances."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        super().__init__()
        self.time = 1_000

    def now(self) -> int:
        return self.time


class Full(Socket):
    """A socket that accepts as much as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.is_aborted = False

    def write(self, data: object) -> None:
        self.waiting += len(data)  # type: ignore[arg-type]

    def writelines(self, list_of_data: object) -> None:
        self.waiting += sum(map(len, list_of_data))  # type: ignore[call-overload]

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.is_aborted = True


class ProtocolHarness:
    """A protocol whose timer is the test."""

    def __init__(self, send_timeout_ms: int | None) -> None:
        self.clock = HandClock()
        self.socket = Full()
        self.client = Client(Broker())
        self.client.open(0, {})
        self.client.connection.take_output()
        loop_context = LoopContext(asyncio.get_running_loop(), turn_of(self.clock.now))
        entry = Entry(self.client.connection)  # type: ignore[arg-type]
        self.protocol = AmqpProtocol(entry, loop_context, send_timeout_ms=send_timeout_ms)
        self.protocol.connection_made(self.socket)

    def say(self, data: bytes) -> None:
        self.client.connection.outbox.raw(data)
        self.protocol.flush()

    def until(self, end: int, each: Callable[[int], None] = lambda now: None) -> int | None:
        """The time of the disconnection, up to `end` after the beginning; `each` is called every ms."""
        for now in range(self.clock.time, 1_001 + end):
            self.clock.time = now
            each(self.clock.time - 1_000)
            if 0 < self.protocol.slot <= self.clock.time:
                self.protocol.slot = 0
                self.protocol.expire(self.clock.time)
            if self.socket.is_aborted:
                return self.clock.time - 1_000
        return None


def harness(work: Callable[[], None]) -> None:
    async def run() -> None:
        work()

    asyncio.run(run())


def test_a_client_that_accepts_no_output_is_dropped_after_the_timeout() -> None:
    def work() -> None:
        broken = ProtocolHarness(TIMEOUT_MS)
        broken.say(b"x" * 100)
        at = broken.until(10_000)
        assert at is not None
        assert TIMEOUT_MS <= at <= TIMEOUT_MS * 9 // 8

    harness(work)


def test_a_client_that_accepts_a_byte_within_the_timeout_stays_connected() -> None:
    def work() -> None:
        slow = ProtocolHarness(TIMEOUT_MS)
        slow.say(b"x" * 100)

        def live(now: int) -> None:
            if now % (TIMEOUT_MS - 150) == TIMEOUT_MS - 151:
                slow.socket.waiting -= 1
                slow.say(b"more")

        assert slow.until(20_000, live) is None
        # When it stops, it has the whole timeout again.
        assert slow.until(30_000) is not None

    harness(work)


def test_a_client_that_accepted_everything_is_not_checked() -> None:
    def work() -> None:
        quick = ProtocolHarness(TIMEOUT_MS)
        quick.say(b"x" * 100)
        quick.socket.waiting = 0
        assert quick.until(10_000) is None
        quick.say(b"x" * 100)
        assert quick.until(20_000) is not None

    harness(work)


def test_without_a_timeout_output_may_wait_without_end() -> None:
    def work() -> None:
        patient = ProtocolHarness(None)
        patient.say(b"x" * 100)
        assert patient.until(10_000) is None

    harness(work)
