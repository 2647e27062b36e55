"""Messages, exchanges and addresses for tests of routing."""

from collections.abc import Mapping

from warren.model.message import BODY_END, Message
from warren.routing.exchange import Binding, Exchange, ExchangeSettings
from warren.routing.router import Router
from warren.wire.properties import BasicProperties


def sent(headers: Mapping[str, object] | None = None, **properties: object) -> Message:
    """A message with these properties; its address is passed to the router separately."""
    table = None if headers is None else dict(headers)
    return Message.compose(b"\x00\x00", BasicProperties(headers=table, **properties), BODY_END, now=0)


PLAIN = sent()


def made(kind: type[Exchange], name: str = "x", **arguments: object) -> Exchange:
    """An exchange outside any router; `_` in the names of arguments stands for `-`."""
    settings = ExchangeSettings(arguments={key.replace("_", "-"): value for key, value in arguments.items()})
    return kind(name, settings, lambda size: bytes(size))


def declared(router: Router, kind: type[Exchange], name: str, **arguments: object) -> Exchange:
    """An exchange that is declared in `router`."""
    exchange = made(kind, name, **arguments)
    router.add(exchange)
    return exchange


def bound(source: Exchange, key: str, destination: object, **arguments: object) -> Binding:
    """A binding that its source accepted; `_` in the names of arguments stands for `-`."""
    binding = Binding(source, key, {n.replace("_", "-"): v for n, v in arguments.items()}, destination)
    assert source.bind(binding)
    return binding


def routed(exchange: Exchange, key: str = "", message: Message = PLAIN) -> list[object]:
    """The destinations that the exchange alone selects, each once."""
    return list(dict.fromkeys(exchange.route(key, message)))
