"""Log lines are published as messages, except those that their own publishing causes."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tests.unit.session.client import Broker

from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue
from warren.model.message import Message
from warren.node.log_exchange import EXCHANGE, LogExchangeHandler
from warren.node.log_formatters import TextFormatter
from warren.queues.queue import Delivery
from warren.vhost.vhost import VirtualHost

logger = logging.getLogger("exchanged")


def got(broker: Broker) -> list[Delivery]:
    queue = broker.services.vhost.queues["log"]
    found = []
    while (delivery := queue.get(True)) is not None:
        found.append(delivery)
    return found


async def published(broker: Broker, act: Callable[[], None], vhost: Any = None) -> list[Delivery]:
    """The messages that are published in `vhost` when `act` logs."""
    handler = LogExchangeHandler(lambda: vhost or broker.services.vhost, broker.turns.append, "warren@test")
    handler.setFormatter(TextFormatter())
    logger.addHandler(handler)
    try:
        act()
        for _ in range(3):
            await asyncio.sleep(0)
            while broker.turns:
                broker.turn()
    finally:
        logger.removeHandler(handler)
    return got(broker)


def with_exchange() -> Broker:
    broker = Broker()
    broker.proposals.apply(DeclareExchange(vhost="/", name=EXCHANGE, type="topic", internal=True))
    broker.proposals.apply(DeclareQueue(vhost="/", name="log"))
    return broker


def bound() -> Broker:
    broker = with_exchange()
    broker.proposals.apply(Bind(vhost="/", source=EXCHANGE, destination="log", routing_key="#"))
    return broker


def test_a_line_is_published_with_its_level_as_routing_key() -> None:
    [delivery] = asyncio.run(published(bound(), lambda: logger.error("it is %s", "so")))
    message = delivery.message
    assert (message.exchange, message.routing_key) == (EXCHANGE, "error")
    assert message.body.endswith(b"[error] <exchanged> it is so\n")
    properties = message.properties()
    assert (properties.content_type, properties.headers) == ("text/plain", {"node": "warren@test"})


def test_lines_logged_while_a_line_is_published_are_not_published() -> None:
    broker = bound()
    complaining = LoggingVirtualHost(broker.services.vhost)
    found = asyncio.run(published(broker, lambda: logger.error("first"), complaining))
    assert [delivery.message.body.endswith(b"first\n") for delivery in found] == [True]
    assert complaining.count == 1


class LoggingVirtualHost:
    """A virtual host that logs whenever it publishes."""

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self.router = vhost.router
        self.count = 0

    def distribute(self, message: Message) -> None:
        self.count += 1
        logger.error("cannot")
        self._vhost.distribute(message)


def test_without_a_binding_nothing_is_published() -> None:
    assert asyncio.run(published(with_exchange(), lambda: logger.error("x"))) == []
