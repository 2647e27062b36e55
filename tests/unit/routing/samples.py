"""Messages, exchanges and addresses as the tests of routing need them."""

from collections.abc import Mapping

from warren.routing.exchange import Binding, Exchange, ExchangeSettings
from warren.routing.router import Router
from warren.wire.properties import BasicProperties


class Sent:
    """A message as routing sees it; the names of its headers stand in its octets as in a table."""

    def __init__(self, headers: Mapping[str, object] | None = None, **properties: object) -> None:
        self.flags = 0 if headers is None else 2
        names = [name.encode() for name in headers or {}]
        self.content = b"".join(bytes((len(name),)) + name for name in names)
        self.header_size = len(self.content)
        self._headers = headers or {}
        self._properties = properties

    def headers(self) -> Mapping[str, object]:
        """Its headers."""
        return self._headers

    def properties(self) -> BasicProperties:
        """Its properties."""
        return BasicProperties(**self._properties)


PLAIN = Sent()


def address(exchange: str, key: str) -> bytes:
    """Exchange and routing key as in basic.publish."""
    return bytes((len(exchange),)) + exchange.encode() + bytes((len(key),)) + key.encode()


def made(kind: type[Exchange], name: str = "x", **arguments: object) -> Exchange:
    """An exchange outside any router; `_` in the names of arguments stands for `-`."""
    settings = ExchangeSettings(arguments={key.replace("_", "-"): value for key, value in arguments.items()})
    return kind(name, settings, lambda size: bytes(size))


def declared(router: Router, kind: type[Exchange], name: str, **arguments: object) -> Exchange:
    """An exchange that `router` knows."""
    exchange = made(kind, name, **arguments)
    router.add(exchange)
    return exchange


def bound(source: Exchange, key: str, destination: object, **arguments: object) -> Binding:
    """A binding that its source has taken; `_` in the names of arguments stands for `-`."""
    binding = Binding(source, key, {n.replace("_", "-"): v for n, v in arguments.items()}, destination)
    assert source.bind(binding)
    return binding


def routed(exchange: Exchange, key: str = "", message: Sent = PLAIN) -> list[object]:
    """The destinations that the exchange names by itself, each once."""
    return list(dict.fromkeys(exchange.route(key, message)))
