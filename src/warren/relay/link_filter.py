"""Decides which messages a link forwards: by their routing key and by their headers."""

from collections.abc import Hashable, Mapping

from warren.model.message import HAS_HEADERS, Message
from warren.routing.headers import comparable
from warren.routing.pattern_bits import PatternBits
from warren.routing.topic import split_words
from warren.wire.properties import decode_some_headers


class LinkFilter:
    """Accepts messages whose routing key matches a topic pattern, and that have all of some headers."""

    __slots__ = ("_headers", "_names", "_pattern")

    def __init__(self, pattern: str | None, headers: Mapping[str, object]) -> None:
        """`pattern` is one of a topic exchange, None for any routing key; `headers` are names and values.

        Values are compared as a headers exchange compares them.
        """
        self._pattern: PatternBits | None = None
        if pattern is not None:
            self._pattern = PatternBits()
            self._pattern.add(pattern)
        self._headers: dict[str, Hashable] = {name: comparable(value) for name, value in headers.items()}
        self._names = dict.fromkeys(headers, 0)

    def accepts(self, message: Message) -> bool:
        """True if `message` is to be forwarded."""
        if self._pattern is not None and not self._pattern.match(split_words(message.routing_key)):
            return False
        if not self._headers:
            return True
        if not message.flags & HAS_HEADERS:
            return False
        found = decode_some_headers(message.property_list, self._names)
        return all(
            name in found and comparable(found[name]) == wanted for name, wanted in self._headers.items()
        )
