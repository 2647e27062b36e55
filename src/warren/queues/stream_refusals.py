"""What a stream refuses, on whatever node it is, with the texts of RabbitMQ."""

from warren.errors import AmqpNotImplemented, PreconditionFailed
from warren.queues.queue import Consumer
from warren.queues.vhost_queue import VhostQueue

GET = "basic.get"
PURGE = "queue.purge"
_NO_ACK = "automatic acknowledgement"


def unsupported(what: str, stream: VhostQueue) -> AmqpNotImplemented:
    """The error for `what` no stream supports."""
    return AmqpNotImplemented(f"{what} not supported by stream queues {_described(stream)}")


def check_acknowledging(stream: VhostQueue, consumer: Consumer) -> None:
    """AmqpNotImplemented for automatic acknowledgement, since a reader must say when it has room."""
    if consumer.no_ack:
        raise unsupported(_NO_ACK, stream)


def check_prefetching(stream: VhostQueue, prefetch: int) -> None:
    """PreconditionFailed without a `prefetch` count, since a reader must say how much it takes at once."""
    if not prefetch:
        raise PreconditionFailed(f"consumer prefetch count is not set for '{_described(stream)}'")


def refuse_positions(stream: VhostQueue) -> None:
    """Raise PreconditionFailed: a stream does not remember which positions were published."""
    name = f"stream '{stream.name}' in vhost '{stream.vhost_name}'"
    raise PreconditionFailed(f"{name} cannot receive messages exactly once")


def _described(stream: VhostQueue) -> str:
    return f"queue '{stream.name}' in vhost '{stream.vhost_name}'"
