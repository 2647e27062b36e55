"""What a queue, or another destination of a message, can do beyond the contract of all queues.

Other packages ask here instead of testing for the class of a queue, so that a new kind of queue is known to
all of them by the contracts that it has.
"""

from warren.model.message import Message
from warren.queues.local import LocalQueue
from warren.queues.queue import Queue
from warren.queues.reply import ReplyQueue
from warren.queues.stream import StreamQueue
from warren.queues.taking_queue import TakingQueue
from warren.queues.vhost_queue import VhostQueue


def declared_queue(destination: object) -> VhostQueue | None:
    """`destination` as a queue that was declared; None for an exchange or a direct reply address."""
    return destination if isinstance(destination, VhostQueue) else None


def live_queue(destination: object) -> VhostQueue | None:
    """The queue that has the messages of `destination`, if that may be on this node; else as declared.

    It is another object for a quorum queue of a cluster, which has counters and messages only where it leads.
    """
    return destination.led_here() if isinstance(destination, VhostQueue) else None


def local_queue(destination: object) -> LocalQueue | None:
    """`destination` as a queue whose messages are on this node; None for everything else."""
    found = live_queue(destination)
    return found if isinstance(found, LocalQueue) else None


def taking_queue(destination: object) -> TakingQueue | None:
    """`destination` as a queue from which messages can be taken; None for everything else."""
    found = live_queue(destination)
    return found if isinstance(found, TakingQueue) else None


def recovering_queue(destination: object) -> TakingQueue | None:
    """`destination` as a queue whose messages a store of this node may have found; None for all others."""
    found = destination.replica_here() if isinstance(destination, VhostQueue) else None
    return found if isinstance(found, TakingQueue) else None


def stream_queue(destination: object) -> StreamQueue | None:
    """`destination` as a stream, which is read by offsets; None for everything else."""
    return destination if isinstance(destination, StreamQueue) else None


def reply_queue(destination: object) -> ReplyQueue | None:
    """`destination` as the address of a requester of direct replies; None for everything else."""
    return destination if isinstance(destination, ReplyQueue) else None


def existing(destinations: tuple[object, ...]) -> tuple[object, ...]:
    """Those of `destinations`, to which a message was routed, that were not deleted since."""
    if all(map(_exists, destinations)):
        return destinations
    return tuple(filter(_exists, destinations))


def refusing_queue(destinations: tuple[object, ...], message: Message) -> VhostQueue | None:
    """The first of `destinations` that is full for `message` and rejects publishes; None if there is none."""
    for destination in destinations:
        queue: Queue = destination  # type: ignore[assignment]
        if queue.refuses(message):
            return declared_queue(queue)
    return None


def _exists(destination: object) -> bool:
    queue: Queue = destination  # type: ignore[assignment]
    return queue.exists()
