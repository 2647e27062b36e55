"""Intended differences from RabbitMQ, each with its reason, and described as narrowly as possible."""

from __future__ import annotations

from collections.abc import Callable


def is_known(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """Whether the brokers may differ after the last step of `script`; later steps are not compared."""
    return any(known(script, theirs, ours) for known in _KNOWN)


def _next_active_consumer_does_not_wait(script: list[str], theirs: list[str], ours: list[str]) -> bool:
    """When its active consumer is cancelled, RabbitMQ's queue activates the next one but delivers nothing.

    Warren delivers ready messages to the next one at once, as RabbitMQ 4. RabbitMQ 3.10.8 does not after an
    acknowledgement either, and its queue fails at the next publish.
    """
    return (
        theirs != ours
        and any("basic.cancel" in line for line in script)
        and any('"x-single-active-consumer": true' in line for line in script)
    )


_KNOWN: list[Callable[[list[str], list[str], list[str]], bool]] = [
    _next_active_consumer_does_not_wait,
]
