"""Publishes messages that the broker itself makes: traces, events, log lines.

They are made and published in a later turn, since the caller may be in the middle of a delivery or of a
metadata change. No message is made while nothing is bound to the exchange.
"""

from collections.abc import Callable

from warren.limits import NAME_SIZE_MAX
from warren.model.coroutine_driver import Later
from warren.model.message import Message, encode_address
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties


class InternalPublisher:
    """Publishes to one internal exchange."""

    __slots__ = ("_find", "_later", "_noted", "exchange")

    def __init__(self, exchange: str, find: Callable[[], VirtualHost | None], later: Later) -> None:
        self.exchange = exchange
        # Finds the virtual host with the exchange; None if it is not running.
        self._find = find
        self._later = later
        # Functions that make the messages of the next turn.
        self._noted: list[Callable[[int], Message]] = []

    def is_heard(self) -> bool:
        """True if anything is bound to the exchange."""
        vhost = self._find()
        exchange = None if vhost is None else vhost.router.exchanges.get(self.exchange)
        return exchange is not None and exchange.bindings > 0

    def add(self, make: Callable[[int], Message]) -> None:
        """Publish the message that `make` returns in the next turn, given the time (ms)."""
        self._noted.append(make)
        if len(self._noted) == 1:
            self._later(self._publish)

    def composed(self, key: str, properties: BasicProperties, content: bytes, now: int) -> Message:
        """A message for the exchange; a routing key that is too long is cut."""
        data = key.encode("utf-8", "surrogateescape")[:NAME_SIZE_MAX]
        address = encode_address(self.exchange, data.decode("utf-8", "surrogateescape"))
        return Message.compose(address, properties, content, now=now)

    def _publish(self, now: int) -> None:
        noted, self._noted = self._noted, []
        vhost = self._find()
        if vhost is None or not self.is_heard():
            return
        for make in noted:
            vhost.distribute(make(now))
