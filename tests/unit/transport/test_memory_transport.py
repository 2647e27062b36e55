"""Two ends connected in memory behave as sockets: order, back-pressure, and the ways to end."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from warren.transport.memory_transport import MemoryTransport


class End(asyncio.BufferedProtocol):
    """Records what the loop would tell it of a socket."""

    def __init__(self) -> None:
        self.received = b""
        self.reads: list[int] = []
        self.calls: list[str] = []
        self._buffer = bytearray(10)
        self.transport: MemoryTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport
        transport.set_write_buffer_limits(high=100)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        self.reads.append(nbytes)

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return False

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def connected(scenario: Callable[[End, End], object]) -> tuple[End, End]:
    """Run the coroutine function `scenario` with two connected ends."""

    async def run() -> tuple[End, End]:
        one, other = End(), End()
        MemoryTransport.connect(asyncio.get_running_loop(), one, other)
        await scenario(one, other)  # type: ignore[misc]
        return one, other

    return asyncio.run(run())


def test_data_arrives_in_order_one_buffer_in_each_turn() -> None:
    async def scenario(one: End, other: End) -> None:
        one.transport.writelines([b"abcdef", b"", bytearray(b"ghijklm"), memoryview(b"no")])
        assert not other.reads
        await asyncio.sleep(0)
        assert other.reads == [10]
        await turns()

    _, other = connected(scenario)
    assert (other.received, other.reads) == (b"abcdefghijklmno", [10, 5])


def test_an_end_that_does_not_read_holds_the_other_back() -> None:
    async def scenario(one: End, other: End) -> None:
        other.transport.pause_reading()
        one.transport.write(bytes(101))
        await turns()
        assert (one.calls, other.reads, one.transport.get_write_buffer_size()) == (["pause"], [], 101)
        other.transport.resume_reading()
        await turns()
        assert (one.calls, one.transport.get_write_buffer_size()) == (["pause", "resume"], 0)

    connected(scenario)


def test_an_end_that_closes_is_lost_when_its_data_was_read() -> None:
    async def scenario(one: End, other: End) -> None:
        one.transport.write(bytes(25))
        one.transport.close()
        one.transport.write(b"dropped")
        await asyncio.sleep(0)
        assert not one.calls
        await turns()

    one, other = connected(scenario)
    assert (one.calls, other.calls, other.received) == (["lost"], ["eof", "lost"], bytes(25))


def test_after_the_end_of_one_direction_the_other_still_works() -> None:
    class Answering(End):
        def eof_received(self) -> bool:
            super().eof_received()
            self.transport.write(b"answer")
            return False

    async def run() -> tuple[End, End]:
        one, other = End(), Answering()
        MemoryTransport.connect(asyncio.get_running_loop(), one, other)
        one.transport.write(b"last")
        one.transport.write_eof()
        await turns()
        return one, other

    one, other = asyncio.run(run())
    assert (other.received, one.received) == (b"last", b"answer")
    assert (other.calls, one.calls) == (["eof", "lost"], ["eof", "lost"])


def test_an_end_that_aborts_ends_both() -> None:
    async def scenario(one: End, other: End) -> None:
        one.transport.write(b"never read")
        one.transport.abort()
        await turns()

    one, other = connected(scenario)
    assert (one.calls, other.calls, other.received) == (["lost"], ["lost"], b"")


def test_an_end_that_does_not_read_learns_of_an_abort() -> None:
    async def scenario(one: End, other: End) -> None:
        other.transport.pause_reading()
        one.transport.abort()
        await turns()

    _, other = connected(scenario)
    assert other.calls == ["lost"]


def test_an_end_that_writes_to_one_that_has_closed_is_lost() -> None:
    async def scenario(one: End, other: End) -> None:
        other.transport.pause_reading()
        one.transport.close()
        await turns()
        assert not other.calls
        other.transport.write(b"x")
        await turns()

    _, other = connected(scenario)
    assert other.calls == ["lost"]


@pytest.mark.parametrize("seed", range(50))
def test_no_order_of_events_loses_data_or_ends_twice(seed: int) -> None:
    random = Random(seed)
    written = {}

    async def scenario(one: End, other: End) -> None:
        for end in (one, other):
            written[end] = b""
        for step in range(200):
            end = random.choice((one, other))
            event = random.randrange(8)
            if event < 4 and "pause" not in end.calls[-1:]:
                data = step.to_bytes(2, "big") * random.randrange(30)
                end.transport.write(data)
                written[end] += data
            elif event == 4:
                end.transport.pause_reading()
            elif event < 7:
                end.transport.resume_reading()
            else:
                await turns(random.randrange(10))
            assert end.transport.get_write_buffer_size() <= 100 + 60
        for end in (one, other):
            end.transport.resume_reading()
        await turns(200)
        one.transport.write_eof()
        await turns()

    one, other = connected(scenario)
    assert (other.received, one.received) == (written[one], written[other])
    for end in (one, other):
        ends = [call for call in end.calls if call not in ("pause", "resume")]
        assert ends == ["eof", "lost"]
        states = [call for call in end.calls if call in ("pause", "resume")]
        assert states == ["pause", "resume"] * (len(states) // 2)


def test_data_that_nobody_will_read_ends_its_writer() -> None:
    async def scenario(one: End, other: End) -> None:
        one.transport.pause_reading()
        other.transport.pause_reading()
        one.transport.write(b"x")
        other.transport.close()
        await turns()

    one, other = connected(scenario)
    assert (one.calls, other.calls) == (["lost"], ["lost"])
