"""Edits of messages that are redriven: headers, properties and body."""

from collections.abc import Mapping

from msgspec import Struct, field

from warren.model.message import BODY_END, Message
from warren.wire.properties import BasicProperties
from warren.wire.table import Value


class MessageEdit(Struct, frozen=True, kw_only=True):
    """Headers and properties to set and to remove, and a new body; all values are valid."""

    headers: Mapping[str, Value] = field(default_factory=dict)
    headers_removed: frozenset[str] = frozenset()
    properties: Mapping[str, object] = field(default_factory=dict)
    properties_removed: frozenset[str] = frozenset()
    body: bytes | None = None

    def apply(self, properties: BasicProperties) -> None:
        """Apply the edit to `properties`."""
        for name in self.properties_removed:
            setattr(properties, name, None)
        for name, value in self.properties.items():
            setattr(properties, name, value)
        if self.headers or self.headers_removed:
            headers = properties.headers or {}
            kept = {name: value for name, value in headers.items() if name not in self.headers_removed}
            properties.headers = {**kept, **self.headers}

    def content(self, message: Message) -> bytes:
        """The content of `message`, or the content that replaces it."""
        return message.content if self.body is None else self.body + BODY_END


NO_EDIT = MessageEdit()
