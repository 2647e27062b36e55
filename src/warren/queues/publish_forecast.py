"""Predicts what a queue would do with another message, without publishing one."""

from enum import Enum

from msgspec import Struct

from warren.model.arguments import Overflow
from warren.queues.vhost_queue import VhostQueue


class PublishOutcome(Enum):
    """The predicted outcome for the message."""

    ACCEPTED = "accepted"
    # The publisher is told: a nack, if it uses confirms.
    REFUSED = "refused"
    # The message itself would be dropped, unless a consumer takes it at once.
    DROPPED = "dropped"
    EXPIRED = "expired"


class PublishForecast(Struct, frozen=True, kw_only=True):
    """The predicted outcome of a publish, with the reason."""

    outcome: PublishOutcome
    reason: str = ""
    # True if messages at the head would be dropped for it.
    pushes_out: bool = False
    # True if a dropped message is sent to the dead-letter exchange, if the queue has one.
    is_dead_lettered: bool = False


def forecast_publish(queue: VhostQueue, size: int, expiration_ms: int | None) -> PublishForecast:
    """Predict what `queue` would do now with a body of `size` bytes that expires after `expiration_ms`."""
    settings = queue.settings
    if settings.kind == "stream":
        return PublishForecast(
            outcome=PublishOutcome.ACCEPTED, reason="it is kept until retention deletes it"
        )
    excess = _excess(queue, size)
    if excess and settings.overflow is not Overflow.DROP_HEAD:
        told = f"the queue is full: {excess}; x-overflow is {settings.overflow.value}"
        is_dead_lettered = settings.overflow is Overflow.REJECT_PUBLISH_DLX
        return PublishForecast(outcome=PublishOutcome.REFUSED, reason=told, is_dead_lettered=is_dead_lettered)
    if is_taken_at_once(queue):
        return PublishForecast(
            outcome=PublishOutcome.ACCEPTED,
            reason="the queue is empty: a consumer with free prefetch gets it at once",
        )
    if lifetime_ms(queue, expiration_ms) == 0:
        told = "its time to live is 0: it expires unless delivered at once"
        return PublishForecast(outcome=PublishOutcome.EXPIRED, reason=told, is_dead_lettered=True)
    if settings.length_max == 0 or _is_over(settings.length_bytes_max, size):
        told = f"the message does not fit into the queue: {excess}"
        return PublishForecast(outcome=PublishOutcome.DROPPED, reason=told, is_dead_lettered=True)
    if excess:
        told = f"the queue is full: {excess}; messages at its head are dropped"
        return PublishForecast(
            outcome=PublishOutcome.ACCEPTED, reason=told, pushes_out=True, is_dead_lettered=True
        )
    return PublishForecast(outcome=PublishOutcome.ACCEPTED)


def lifetime_ms(queue: VhostQueue, expiration_ms: int | None) -> int | None:
    """The time to live of a message in `queue` (ms): the lower of the queue's value and the message's."""
    limits = [limit for limit in (queue.settings.message_ttl_ms, expiration_ms) if limit is not None]
    return min(limits, default=None)


def is_taken_at_once(queue: VhostQueue) -> bool:
    """True if a consumer is ready for a message, as far as the queue knows."""
    return (
        queue.is_empty
        and not queue.is_paused
        and any(not consumer.is_parked for consumer in queue.consumers())
    )


def _excess(queue: VhostQueue, size: int) -> str:
    """A description of the limit that a message of `size` bytes would exceed; empty if there is room."""
    settings = queue.settings
    if settings.length_max is not None and queue.message_count >= settings.length_max:
        return f"{queue.message_count} of at most {settings.length_max} messages are ready"
    byte_count = queue.ready_bytes
    if _is_over(settings.length_bytes_max, byte_count + size):
        return (
            f"{byte_count} of at most {settings.length_bytes_max} bytes are ready, and the message has {size}"
        )
    return ""


def _is_over(limit: int | None, size: int) -> bool:
    return limit is not None and size > limit
