"""How much is read from a socket at once, and how much of it is processed in a turn."""

import asyncio
from collections.abc import Callable
from typing import cast

from tests.clock import turn_of

from warren import limits, limits_relay
from warren.runtime.clock import Clock
from warren.transport.protocol import AmqpProtocol, ConnectionRegistry, LoopContext


class SteppedClock(Clock):
    """A clock that the test advances."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        super().__init__()
        self.time = 0

    def now(self) -> int:
        return self.time


def with_two_clients(
    scenario: Callable[[SteppedClock, LoopContext, AmqpProtocol, AmqpProtocol], None],
) -> None:
    async def run() -> None:
        clock = SteppedClock()
        loop_context = LoopContext(asyncio.get_running_loop(), turn_of(clock.now))
        nobody = cast(ConnectionRegistry, None)
        scenario(clock, loop_context, AmqpProtocol(nobody, loop_context), AmqpProtocol(nobody, loop_context))

    asyncio.run(run())


def test_a_client_that_was_alone_for_long_is_read_in_larger_pieces() -> None:
    def scenario(clock: SteppedClock, loop_context: LoopContext, one: AmqpProtocol, _: AmqpProtocol) -> None:
        for clock.time in range(limits.SOLE_CLIENT_AFTER_MS):
            assert len(loop_context.begin_read(one)) == limits.READ_SIZE_MAX
            assert loop_context.work == limits.WORK_PER_TURN_MAX
        clock.time = limits.SOLE_CLIENT_AFTER_MS
        assert len(loop_context.begin_read(one)) == limits.READ_SIZE_ALONE_MAX
        assert loop_context.work == limits.WORK_SOLE_CLIENT_MAX

    with_two_clients(scenario)


def test_turns_are_short_again_when_another_client_sends() -> None:
    def scenario(
        clock: SteppedClock, loop_context: LoopContext, one: AmqpProtocol, other: AmqpProtocol
    ) -> None:
        loop_context.begin_read(one)
        clock.time = limits.SOLE_CLIENT_AFTER_MS
        loop_context.begin_read(one)
        for reader in (other, one):
            assert len(loop_context.begin_read(reader)) == limits.READ_SIZE_MAX
            assert loop_context.work == limits.WORK_PER_TURN_MAX

    with_two_clients(scenario)


def test_a_link_is_read_in_smaller_pieces_while_clients_send() -> None:
    def scenario(
        clock: SteppedClock, loop_context: LoopContext, link: AmqpProtocol, client: AmqpProtocol
    ) -> None:
        link.is_link = True
        heartbeat_size = 8
        loop_context.note_read(link, 100)
        loop_context.note_read(client, heartbeat_size)
        assert len(loop_context.begin_read(link)) == limits.READ_SIZE_MAX
        loop_context.note_read(client, 100)
        assert len(loop_context.begin_read(link)) == limits_relay.LINK_READ_SIZE_SHARED
        assert len(loop_context.begin_read(client)) == limits.READ_SIZE_MAX
        clock.time = limits_relay.LINK_SHARED_MS
        assert len(loop_context.begin_read(link)) == limits.READ_SIZE_MAX

    with_two_clients(scenario)
