"""The log as messages: each line is published to the topic exchange `amq.rabbitmq.log`, keyed by its level.

A line that is logged while a line is published is not published, so that a failing queue is logged only once.
"""

import asyncio
import logging
from collections.abc import Callable

from warren.model.coroutine_driver import Later
from warren.model.message import BODY_END, Message
from warren.node.log_formatters import JsonFormatter, level_name
from warren.vhost.internal_publisher import InternalPublisher
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties

EXCHANGE = "amq.rabbitmq.log"

_TEXT, _JSON = "text/plain", "application/json"


class LogExchangeHandler(logging.Handler):
    """Publishes log records, from any thread."""

    def __init__(self, find: Callable[[], VirtualHost | None], later: Later, node_name: str) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._later = later
        self._feed = InternalPublisher(EXCHANGE, find, self._publish_later)
        self._headers = {"node": node_name}
        self._is_publishing = False

    def emit(self, record: logging.LogRecord) -> None:
        """Publish `record`, if the exchange has bindings."""
        if self._is_publishing or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._add, level_name(record), self.format(record), record.created)

    def _add(self, level: str, line: str, created: float) -> None:
        if not self._feed.is_heard():
            return

        def make(now: int) -> Message:
            kind = _JSON if isinstance(self.formatter, JsonFormatter) else _TEXT
            properties = BasicProperties(content_type=kind, timestamp=int(created), headers=self._headers)
            return self._feed.composed(level, properties, f"{line}\n".encode() + BODY_END, now)

        self._feed.add(make)

    def _publish_later(self, action: Callable[[int], None]) -> None:
        def publish(now: int) -> None:
            self._is_publishing = True
            try:
                action(now)
            finally:
                self._is_publishing = False

        self._later(publish)
