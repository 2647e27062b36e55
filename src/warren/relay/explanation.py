"""Says why a link stands still, in one sentence, and since when."""

from typing import NamedTuple

from warren.limits_relay import LINK_UNCONFIRMED_MAX
from warren.relay.status import Hold, LinkState, LinkStatus

# A destination that confirms within this time (ms) is not what a link stands still for.
_CONFIRM_EXPECTED_MS = 1_000

# Reply codes (0-9-1 §1.2 and 1.5.2.7).
_ACCESS_REFUSED = 403
_NOT_FOUND = 404
_NOT_ALLOWED = 530


class Explanation(NamedTuple):
    """Why a link forwards nothing, and since when (Unix time, ms); empty if it forwards."""

    sentence: str
    since: int


FORWARDING = Explanation("", 0)


def explain(status: LinkStatus, now: int) -> Explanation:
    """Return why the link forwards nothing at `now` (Unix time, ms)."""
    if status.state is LinkState.RUNNING:
        return _explain_running(status, now)
    if status.state is LinkState.STARTING:
        return Explanation("it connects" + _after_error(status), status.down_since or status.since)
    if status.state is LinkState.STOPPED or status.reason != status.last_error:
        return Explanation(status.reason or "it was not started", status.since)
    return Explanation(_explain_error(status) + _next_attempt(status, now), status.down_since or status.since)


def _explain_running(status: LinkStatus, now: int) -> Explanation:
    if status.hold is not Hold.NONE:
        return Explanation(_explain_hold(status), status.hold_since)
    unconfirmed, prefetch = status.unconfirmed, status.prefetch_count or LINK_UNCONFIRMED_MAX
    silent_ms = now - status.unconfirmed_since
    if unconfirmed and silent_ms >= _CONFIRM_EXPECTED_MS:
        used_up = ", which uses up the prefetch" if unconfirmed >= prefetch else ""
        messages = "one message" if unconfirmed == 1 else f"{unconfirmed} messages"
        return Explanation(f"the destination has not confirmed {messages}{used_up}", status.unconfirmed_since)
    if unconfirmed:
        return FORWARDING
    if status.paused_since:
        return Explanation("the consumers of the queue here want no more messages", status.paused_since)
    idle_since = max(status.delivered_at, status.connected_at)
    if now - idle_since < _CONFIRM_EXPECTED_MS:
        return FORWARDING
    if status.source_ready > 0 and status.source_counted_at > idle_since:
        return Explanation(
            f"the source has {status.source_ready} messages and delivers none to the link", idle_since
        )
    is_counted = status.source_ready >= 0
    return Explanation("the source is empty" if is_counted else "the source delivers nothing", idle_since)


def _explain_hold(status: LinkStatus) -> str:
    if status.hold is Hold.ALARM:
        return f"the destination accepts no messages: {status.hold_reason}"
    if status.hold is Hold.REFUSED:
        return "the destination refuses messages (basic.nack), for example because its queue is full"
    if status.hold is Hold.RATE:
        return f"its rate is limited to {status.rate_max:g} messages per second"
    if status.hold is Hold.FULL:
        return "the destination does not read from its connection as fast as the source delivers"
    if status.hold is Hold.FINISHED:
        return "all messages it was asked for are published, and not yet confirmed"
    return f"the destination has not confirmed {status.unconfirmed} messages"


def _explain_error(status: LinkStatus) -> str:
    """Return what the last error means, with its text."""
    code, text = status.last_error_code, status.last_error
    if code == _ACCESS_REFUSED and "Login was refused" in text:
        return f"the login was refused: {text}"
    if code == _ACCESS_REFUSED and "who has set it" in text:
        # A user who is gone, or may set no link any more: no permission mends that.
        return text
    if code == _ACCESS_REFUSED:
        return f"a permission is missing: {text}"
    if code == _NOT_ALLOWED and "vhost" in text:
        return f"the virtual host does not exist, or the user may not enter it: {text}"
    if code == _NOT_FOUND:
        kinds = ("queue", "exchange", "vhost")
        kind = next((kind for kind in kinds if f"no {kind}" in text), "object")
        return f"there is no such {kind}: {text}"
    return text


def _next_attempt(status: LinkStatus, now: int) -> str:
    if not status.next_attempt_at:
        return ""
    seconds = max(0, -(-(status.next_attempt_at - now) // 1000))
    return f"; the next attempt is in {seconds} s"


def _after_error(status: LinkStatus) -> str:
    return f", after this error: {status.last_error}" if status.last_error else ""
