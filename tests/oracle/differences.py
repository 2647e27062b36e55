"""Differences that are meant: each with its reason, and as narrow as it can be told."""

from __future__ import annotations

from collections.abc import Callable


def is_known(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """Whether the brokers may differ after the last step of `script`; what follows is not compared."""
    return any(known(script, theirs, ours) for known in _KNOWN)


def _next_active_consumer_is_given_what_waits(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """When its active consumer is cancelled, RabbitMQ's queue makes the next one active but sends nothing.

    What waits is stuck until somebody publishes or acknowledges; Warren sends it at once.
    """
    added = [seen for seen in ours if seen not in theirs and not _is_count(seen)]
    return (
        "basic.cancel" in script[-1]
        and any('"x-single-active-consumer": true' in line for line in script)
        and bool(added)
        and all(any(word in seen for word in ("basic.deliver", "header", "body")) for seen in added)
        and all(seen in ours for seen in theirs if not _is_count(seen))
    )


def _is_count(seen: str) -> bool:
    return seen.endswith("consumers")


_KNOWN: list[Callable[[list[str], list[str], list[str]], bool]] = [
    _next_active_consumer_is_given_what_waits,
]
