"""Messages that the broker itself makes for one exchange: copies of traffic, events, lines of its log.

They are made and published in a turn of their own, since whoever has something to say may be in the middle
of handing a message out, or of applying a change. While nothing is bound to the exchange, nothing is made.
"""

from collections.abc import Callable

from warren.limits import NAME_SIZE_MAX
from warren.model.message import Message, encode_address
from warren.vhost.coroutine_driver import Later
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties


class InternalPublisher:
    """What goes to one exchange."""

    __slots__ = ("_find", "_later", "_noted", "exchange")

    def __init__(self, exchange: str, find: Callable[[], VirtualHost | None], later: Later) -> None:
        self.exchange = exchange
        # The virtual host with the exchange in it, if it is alive.
        self._find = find
        self._later = later
        # What makes the messages of this turn: as many at most as a turn of each connection gives rise to.
        self._noted: list[Callable[[int], Message]] = []

    def is_heard(self) -> bool:
        """Whether anything is bound to the exchange."""
        vhost = self._find()
        exchange = None if vhost is None else vhost.router.exchanges.get(self.exchange)
        return exchange is not None and exchange.bindings > 0

    def add(self, make: Callable[[int], Message]) -> None:
        """Publish in the next turn what `make` makes then, given the time (ms)."""
        self._noted.append(make)
        if len(self._noted) == 1:
            self._later(self._publish)

    def composed(self, key: str, properties: BasicProperties, content: bytes, now: int) -> Message:
        """A message for the exchange; a key that is too long is cut."""
        octets = key.encode("utf-8", "surrogateescape")[:NAME_SIZE_MAX]
        address = encode_address(self.exchange, octets.decode("utf-8", "surrogateescape"))
        return Message.compose(address, properties, content, now=now)

    def _publish(self, now: int) -> None:
        noted, self._noted = self._noted, []
        vhost = self._find()
        if vhost is None or not self.is_heard():
            return
        vhost.now = now
        for make in noted:
            vhost.distribute(make(now))
