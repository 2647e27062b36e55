"""What the channels of a connection hold is released when it ends, over several turns if they are many."""

from collections import deque
from collections.abc import Iterator

from warren.limits import CHANNELS_RELEASED_PER_TURN
from warren.queues.vhost_queue import VhostQueue
from warren.session.channel import Channel


def release_channels(ending: deque[Channel]) -> Iterator[None]:
    """End the channels of a connection that ends, in their order, a turn's work with each step.

    All stop at once: a message that dead-letters now is not delivered to another of them. Deliveries are
    requeued in all of them before their queues are pumped, which preserves the order of what nobody else
    moves meanwhile. There is one step if they are few. Those that are released are removed from `ending`.
    """
    for channel in ending:
        channel.stop()
    if len(ending) > CHANNELS_RELEASED_PER_TURN:
        yield
    queues: dict[VhostQueue, None] = {}
    while ending:
        for _ in range(min(len(ending), CHANNELS_RELEASED_PER_TURN)):
            channel = ending.popleft()
            channel.leave(queues)
            channel.subscriber.publish_channel_closed()
        if ending:
            yield
    for pumped, queue in enumerate(queues, 1):
        queue.pump()
        if not pumped % CHANNELS_RELEASED_PER_TURN:
            yield
