"""The links that are proved: a shovel, a federated exchange and a federated queue between two brokers."""

from collections.abc import Callable
from typing import NamedTuple

import pika
from pika.exceptions import UnroutableError
from tests.integration.cut_proxy import CutProxy
from tests.integration.federation import channel_at, eventually
from tests.links.brokers import LinkEnd
from tests.links.traffic import PROBE

# RabbitMQ's default for each kind of link.
PREFETCH = 1_000
# The exchange or queue at both ends, or the queue at the source and that at the destination.
NAME, FROM, TO = "orders", "from", "to"
_RECONNECT = {"reconnect-delay": 1}


class Link(NamedTuple):
    """A link that was set up: where to publish at its source, and the queue of its destination."""

    address: tuple[str, str]
    queue: str


def shovel(source: LinkEnd, destination: LinkEnd, proxy: CutProxy) -> Link:
    """Set up a shovel of Warren, whose own end is local and whose other end is behind the proxy.

    Of two Warrens, the destination has it, so that the source learns of acknowledgements by a socket.
    """
    for end, queue in ((source, FROM), (destination, TO)):
        with channel_at(end.port) as channel:
            channel.queue_declare(queue, durable=True)
    runner = destination if destination.kind == "Warren" else source
    proxy.target = (destination if runner is source else source).port
    near, far = "amqp://", f"amqp://guest:guest@127.0.0.1:{proxy.port}"
    ends = {
        "src-uri": near if runner is source else far,
        "src-queue": FROM,
        "dest-uri": far if runner is source else near,
        "dest-queue": TO,
    }
    runner.put_parameter("shovel", NAME, ends | _RECONNECT)
    return Link(("", FROM), TO)


def federated_exchange(source: LinkEnd, destination: LinkEnd, proxy: CutProxy) -> Link:
    """Set up a federated exchange at the destination, whose upstream is the source behind the proxy."""
    for end in (source, destination):
        with channel_at(end.port) as channel:
            channel.exchange_declare(NAME, "fanout", durable=True)
    with channel_at(destination.port) as channel:
        channel.queue_declare(TO, durable=True)
        channel.queue_bind(TO, NAME)
    federate(source, destination, proxy, "exchanges")
    eventually(lambda: probe(source))
    return Link((NAME, ""), TO)


def federated_queue(source: LinkEnd, destination: LinkEnd, proxy: CutProxy) -> Link:
    """Set up a federated queue at the destination, whose upstream is the source behind the proxy."""
    for end in (source, destination):
        with channel_at(end.port) as channel:
            channel.queue_declare(NAME, durable=True)
    federate(source, destination, proxy, "queues")
    return Link(("", NAME), NAME)


SetUp = Callable[[LinkEnd, LinkEnd, CutProxy], Link]
SET_UPS: dict[str, SetUp] = {
    "shovel": shovel,
    "federated exchange": federated_exchange,
    "federated queue": federated_queue,
}


def federate(upstream: LinkEnd, downstream: LinkEnd, proxy: CutProxy, apply_to: str) -> None:
    """Let `downstream` federate its exchange or queue with that of `upstream`, through the proxy."""
    proxy.target = upstream.port
    uri = f"amqp://guest:guest@127.0.0.1:{proxy.port}"
    downstream.put_parameter("federation-upstream", "upstream", {"uri": uri} | _RECONNECT)
    downstream.put_policy("federated", f"^{NAME}$", apply_to, {"federation-upstream": "upstream"})


def probe(end: LinkEnd) -> bool:
    """Publish a message at `end` that is not counted; True if there was a queue for it."""
    with channel_at(end.port) as channel:
        body = b"%s %d" % (PROBE.encode(), end.port)
        try:
            channel.basic_publish(NAME, "", body, pika.BasicProperties(delivery_mode=2), mandatory=True)
        except UnroutableError:
            return False
    return True
