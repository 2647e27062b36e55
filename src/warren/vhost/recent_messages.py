"""Gives the destination of a new binding the messages that the exchange has kept."""

from warren.queues.vhost_queue import VhostQueue
from warren.routing.exchange import Binding, Exchange
from warren.vhost.vhost import VirtualHost


def give_recent(host: VirtualHost, binding: Binding) -> None:
    """Publish what the source of `binding` has kept to its destination, oldest first.

    Their times to live begin now. Behind an exchange as destination, they go where it routes them.
    """
    destination = binding.destination
    for kept in binding.source.recent():
        message = kept.anew(host.turn.now())
        if isinstance(destination, Exchange):
            queues = host.router.route_from(destination, message)
        else:
            queues = (destination,)
        host.work += len(queues)
        for each in queues:
            queue: VhostQueue = each  # type: ignore[assignment]
            try:
                queue.publish(message, None, 0)
                queue.count_broker_published()
            except Exception as error:
                host.end_failed(queue, error)
