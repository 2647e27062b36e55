"""Differences that are meant: each with its reason, and as narrow as it can be told."""

from __future__ import annotations

from collections.abc import Callable


def is_known(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """Whether the brokers may differ after the last step of `script`; what follows is not compared."""
    return any(known(script, theirs, ours) for known in _KNOWN)


def _next_active_consumer_waits_for_less(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """When its active consumer is cancelled, RabbitMQ's queue makes the next one active but sends nothing.

    Warren sends what waits when something is settled or published. RabbitMQ does not when it is settled, and
    its queue ends with an error when something is published.
    """
    return (
        theirs != ours
        and any(
            word in script[-1] for word in ("basic.ack", "basic.nack", "basic.reject", "publish", "tx.commit")
        )
        and any("basic.cancel" in line for line in script)
        and any('"x-single-active-consumer": true' in line for line in script)
    )


_KNOWN: list[Callable[[list[str], list[str], list[str]], bool]] = [
    _next_active_consumer_waits_for_less,
]
