"""Finds the oldest unacknowledged delivery of each queue among what the channels of this node hold."""

from warren.queues.queue import Queue, QueueHost
from warren.queues.vhost_queue import VhostQueue


def oldest_deliveries(host: QueueHost) -> dict[Queue, int]:
    """When the oldest unacknowledged delivery of each queue of `host` was made (Unix time, ms).

    This visits the consumers, not the messages. The channels of other nodes of a cluster are not visited.
    """
    found: dict[Queue, int] = {}
    for holder in host.holders:
        holder.note_oldest(found)
    return found


def oldest_delivery(found: dict[Queue, int], queue: VhostQueue) -> int | None:
    """The time in `found` of `queue`; None without unacknowledged deliveries."""
    at = found.get(queue)
    return found.get(queue.led_here()) if at is None else at
