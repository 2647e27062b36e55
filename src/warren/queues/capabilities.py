"""What a queue, or another destination of a message, can do beyond the contract of all queues.

Other packages ask here instead of testing for the class of a queue, so that a new kind of queue is known to
all of them by the contracts that it has.
"""

from warren.model.message import Message
from warren.queues.local import LocalQueue
from warren.queues.queue import Queue
from warren.queues.stream import StreamQueue
from warren.queues.taking_queue import TakingQueue


def declared_queue(destination: object) -> LocalQueue | None:
    """`destination` as a queue that was declared; None for an exchange or a direct reply address."""
    return destination if isinstance(destination, LocalQueue) else None


def taking_queue(destination: object) -> TakingQueue | None:
    """`destination` as a queue from which messages can be taken; None for everything else."""
    return destination if isinstance(destination, TakingQueue) else None


def stream_queue(destination: object) -> StreamQueue | None:
    """`destination` as a stream, which is read by offsets; None for everything else."""
    return destination if isinstance(destination, StreamQueue) else None


def existing(destinations: tuple[object, ...]) -> tuple[object, ...]:
    """Those of `destinations`, to which a message was routed, that were not deleted since."""
    if all(map(_exists, destinations)):
        return destinations
    return tuple(filter(_exists, destinations))


def refusing_queue(destinations: tuple[object, ...], message: Message) -> LocalQueue | None:
    """The first of `destinations` that is full for `message` and rejects publishes; None if there is none."""
    for destination in destinations:
        queue: Queue = destination  # type: ignore[assignment]
        if queue.refuses(message):
            return declared_queue(queue)
    return None


def _exists(destination: object) -> bool:
    queue: Queue = destination  # type: ignore[assignment]
    return queue.exists()
