"""The exchange type `x-recent-history` of RabbitMQ: it gives a new binding the last messages it has routed.

It keeps them in memory, of each node of a cluster those that are published there. Arguments, texts and the
header that keeps a message out are RabbitMQ 3.10.8's (measured).
"""

from collections import deque
from collections.abc import Mapping

from warren.errors import PreconditionFailed
from warren.limits_metadata import RECENT_HISTORY_LENGTH_MAX, RECENT_HISTORY_SIZE_MAX
from warren.model.erlang_terms import printed_value
from warren.model.message import Message
from warren.routing.exchange import BY_CHANCE
from warren.routing.fanout import FanoutExchange

LENGTH_ARGUMENT = "x-recent-history-length"
# A message with this header and the value true is routed, and not kept.
NO_STORE_HEADER = "x-recent-history-no-store"
LENGTH_DEFAULT = 20


class RecentHistoryExchange(FanoutExchange):
    """Routes every message to all its destinations, and keeps the last ones."""

    __slots__ = ("_length", "_recent", "_size")

    type_name = "x-recent-history"
    is_keeping = True

    def prepare(self) -> None:
        FanoutExchange.prepare(self)
        length = self.settings.arguments.get(LENGTH_ARGUMENT, LENGTH_DEFAULT)
        assert isinstance(length, int)
        self._length = min(length, RECENT_HISTORY_LENGTH_MAX)
        self._recent: deque[Message] = deque()
        # Bytes of their bodies.
        self._size = 0

    @property
    def decides(self) -> int:
        """BY_CHANCE: no route may be cached, since each message has to pass here."""
        return BY_CHANCE

    @staticmethod
    def validate_arguments(arguments: Mapping[str, object]) -> None:
        """Raise PreconditionFailed unless the length, if there is one, is a positive integer."""
        length = arguments.get(LENGTH_ARGUMENT, LENGTH_DEFAULT)
        if not isinstance(length, int) or isinstance(length, bool) or length <= 0:
            shown = printed_value(length)
            raise PreconditionFailed(
                f"Invalid argument {shown}, '{LENGTH_ARGUMENT}' must be a positive integer"
            )

    def keep(self, message: Message) -> None:
        """Keep `message`, which was routed, in place of the oldest ones.

        One that had no queue is routed again when another node may know of one.
        """
        if self._recent and self._recent[-1] is message:
            return
        if message.headers().get(NO_STORE_HEADER) is True:
            return
        self._recent.append(message)
        self._size += message.body_size
        while len(self._recent) > self._length or self._size > RECENT_HISTORY_SIZE_MAX:
            self._size -= self._recent.popleft().body_size

    def recent(self) -> tuple[Message, ...]:
        """The messages that it keeps, oldest first."""
        return tuple(self._recent)
