"""The last deliveries of a node that stops: quorum queues agree on what was never delivered.

So nobody who leads them next marks a message as redelivered that no client has got.
"""

import asyncio

from warren.queues.capabilities import local_queue
from warren.session.server import Server


async def end_deliveries(server: Server, limit_s: float) -> None:
    """End the deliveries of all queues that lead here; returns when all agree on that, or after `limit_s`."""
    queues = [
        queue
        for services in server.vhost_services.values()
        for destination in services.vhost.queues.values()
        if (queue := local_queue(destination)) is not None
    ]
    agreed = asyncio.Event()
    awaited = len(queues)

    def ended() -> None:
        nonlocal awaited
        awaited -= 1
        if not awaited:
            agreed.set()

    for queue in queues:
        queue.stop_delivering(ended)
    if queues:
        try:
            await asyncio.wait_for(agreed.wait(), limit_s)
        except TimeoutError:
            # A disk or another member that does not answer: what was delivered is uncertain then.
            return
