"""Which queues a message reaches through exchanges and bindings, written anew to verify the real routing."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from warren.wire.table import Value


class BindingSpecification(Struct, frozen=True):
    """A binding: of a queue, if it is one of a queue's bindings, or of an exchange."""

    source: str
    key: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    # The exchange that is bound; empty for a queue.
    exchange: str = ""


class ExchangeSpecification(Struct, frozen=True, kw_only=True):
    """An exchange that exists for as long as the broker, and the exchanges to which it passes messages."""

    vhost: str
    name: str
    type: str
    bindings: tuple[BindingSpecification, ...] = ()
    # The exchange that gets what this one cannot route, or an empty text.
    alternate: str = ""
    # True if clients may publish to it.
    is_public: bool = True


def matches(type: str, binding: BindingSpecification, key: str, headers: Mapping[str, Value]) -> bool | None:
    """True if an exchange of `type` passes a message over `binding`; None if that is not known here."""
    match type:
        case "direct":
            return binding.key == key
        case "fanout":
            return True
        case "topic":
            return _has_topic(_words(binding.key), _words(key))
        case "headers":
            return _has_headers(binding.arguments, headers)
    return None


def sample_key(pattern: str, word: str) -> str:
    """A routing key that the topic `pattern` matches, with `word` where any word does."""
    return ".".join(word if part in ("*", "#") else part for part in pattern.split("."))


def reached(
    exchanges: Mapping[str, ExchangeSpecification],
    first: str,
    key: str,
    headers: Mapping[str, Value],
) -> dict[str, bool]:
    """The exchanges that get a message published to `first`: True for each that certainly does."""
    found = {first: True}
    waiting = [first]
    while waiting:
        exchange = exchanges.get(waiting.pop())
        if exchange is None:
            continue
        is_certain = found[exchange.name]
        nexts: Iterable[tuple[str, bool | None]] = (
            (binding.exchange, matches(exchange.type, binding, key, headers)) for binding in exchange.bindings
        )
        for name, is_matching in [*nexts, *([(exchange.alternate, None)] if exchange.alternate else [])]:
            certain = is_certain and is_matching is True
            if is_matching is not False and (name not in found or (certain and not found[name])):
                found[name] = certain
                waiting.append(name)
    return found


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _has_topic(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_has_topic(pattern[1:], words[count:]) for count in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _has_topic(pattern[1:], words[1:])


def _has_headers(arguments: Mapping[str, Value], headers: Mapping[str, Value]) -> bool | None:
    mode = arguments.get("x-match", "all")
    if mode not in ("all", "any"):
        return None
    wanted = {name: value for name, value in arguments.items() if not name.startswith("x-")}
    found = [name in headers and value in (None, headers[name]) for name, value in wanted.items()]
    return any(found) if mode == "any" else all(found)
