"""Heartbeats derived from byte counters, with the times measured with RabbitMQ 3.10.8."""

from warren.framing.heartbeat import HEARTBEAT_FRAME, Heartbeat, HeartbeatAction


def run(
    heartbeat: Heartbeat, until: int, received: dict[int, int], sent: dict[int, int]
) -> list[tuple[int, HeartbeatAction]]:
    """The events up to `until`, when bytes are received and sent at the given times."""
    seen: list[tuple[int, HeartbeatAction]] = []
    extra = 0
    while (now := heartbeat.deadline()) is not None and now <= until:
        bytes_in = sum(n for at, n in received.items() if at <= now)
        bytes_out = sum(n for at, n in sent.items() if at <= now) + extra
        pulse = heartbeat.due(now, bytes_in, bytes_out)
        if pulse is not HeartbeatAction.NONE:
            seen.append((now, pulse))
        if pulse is HeartbeatAction.SEND:
            extra += len(HEARTBEAT_FRAME)
        if pulse is HeartbeatAction.DEAD:
            break
    return seen


def test_an_idle_connection_sends_a_heartbeat_every_half_interval_and_is_dead_after_three() -> None:
    seen = run(Heartbeat(1, 0), 10_000, {0: 100}, {})
    assert seen == [(at, HeartbeatAction.SEND) for at in (500, 1000, 1500, 2000, 2500)] + [
        (3000, HeartbeatAction.DEAD)
    ]


def test_a_peer_is_dead_between_two_and_three_intervals_after_its_last_byte() -> None:
    for last in range(0, 4000, 130):
        seen = run(Heartbeat(2, 0), 60_000, {last: 1}, {})
        at, pulse = seen[-1]
        assert pulse is HeartbeatAction.DEAD
        assert 4000 <= at - last <= 6000


def test_any_received_byte_counts_as_a_heartbeat() -> None:
    seen = run(Heartbeat(1, 0), 30_000, dict.fromkeys(range(0, 30_000, 900), 1), {})
    assert HeartbeatAction.DEAD not in [pulse for _, pulse in seen]


def test_the_first_heartbeat_is_due_half_an_interval_after_tune() -> None:
    assert run(Heartbeat(2, 0), 3_000, {0: 100}, {1: 20, 700: 13}) == [
        (at, HeartbeatAction.SEND) for at in (1000, 2000, 3000)
    ]


def test_no_heartbeat_is_sent_while_other_frames_are() -> None:
    seen = run(Heartbeat(1, 0), 2_900, {0: 100}, dict.fromkeys(range(0, 3_000, 400), 20))
    assert seen == [(500, HeartbeatAction.SEND)]


def test_small_delays_do_not_accumulate() -> None:
    heartbeat = Heartbeat(1, 0)
    for deadline in (500, 1000, 1500):
        assert heartbeat.deadline() == deadline
        assert heartbeat.due(deadline + 30, deadline, 0) is not HeartbeatAction.DEAD
    assert heartbeat.deadline() == 2000


def test_zero_disables_heartbeats() -> None:
    heartbeat = Heartbeat(0, 0)
    assert heartbeat.deadline() is None
    assert heartbeat.due(10**9, 0, 0) is HeartbeatAction.NONE


def test_a_long_pause_of_the_process_counts_as_one_check() -> None:
    heartbeat = Heartbeat(1, 0)
    assert heartbeat.due(100_000, 5, 0) is HeartbeatAction.SEND
    assert heartbeat.due(100_500, 5, 0) is HeartbeatAction.NONE
    assert heartbeat.deadline() == 101_000
