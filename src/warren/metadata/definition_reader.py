"""Reads settings that shovels and upstreams have in common, and collects what is wrong with them."""

from collections.abc import Mapping
from math import ceil

from warren.limits_relay import PREFETCH_COUNT_MAX, RECONNECT_DELAY_S_MAX
from warren.metadata.commands import Json

ON_CONFIRM = "on-confirm"
NO_ACK = "no-ack"
# In the order of RabbitMQ's texts.
ACK_MODES = (NO_ACK, "on-publish", ON_CONFIRM)


class DefinitionReader:
    """The settings of one link.

    The first of several keys counts, in the first of several tables that has one of them.
    """

    __slots__ = ("_tables", "errors")

    def __init__(self, *tables: Mapping[str, Json]) -> None:
        self._tables = tables
        # What is wrong with the settings read so far.
        self.errors: list[str] = []

    def value(self, *keys: str, default: Json = None) -> Json:
        """The value of the first of `keys` that is there."""
        for table in self._tables:
            for key in keys:
                if key in table:
                    return table[key]
        return default

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        value = self.value(key)
        return value if isinstance(value, str) else default

    def optional_text(self, key: str) -> str | None:
        """A string; None if there is none."""
        value = self.value(key)
        return value if isinstance(value, str) else None

    def is_set(self, *keys: str) -> bool:
        """True if the value is true."""
        return self.value(*keys) is True

    def table(self, *keys: str) -> Mapping[str, Json]:
        """A table, which may be written as an empty list."""
        value = self.value(*keys)
        return value if isinstance(value, Mapping) else {}

    def natural(self, *keys: str, default: int, most: int) -> int:
        """An integer from 0 to `most`."""
        return default if self.value(*keys) is None else self.optional_natural(*keys, most=most) or 0

    def prefetch_count(self, *keys: str, default: int) -> int:
        """Unacknowledged deliveries, 0 without a limit, whatever number is given.

        RabbitMQ 3.10.8 stores any number and sends its lowest 16 bits, so that -1 becomes 65,535 (measured),
        and 70,000 becomes 4,464. Here each number that basic.qos cannot express is the largest that it can.
        """
        value = self.value(*keys, default=default)
        assert isinstance(value, int | float)
        return int(value) if 0 <= value <= PREFETCH_COUNT_MAX else PREFETCH_COUNT_MAX

    def optional_natural(self, *keys: str, most: int) -> int | None:
        """An integer from 0 to `most`; None if there is none, or another value, which is an error."""
        value = self.value(*keys)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value
        given = next(key for key in keys if self.value(key) is not None)
        self.errors.append(f"{given} should be an integer from 0 to {most}, actually was {value}")
        return None

    def reconnect_delay_s(self, default: int) -> int:
        """The time before the next attempt to connect; 0 if there is no other attempt.

        A fraction is rounded up. RabbitMQ 3.10.8 makes no other attempt after a negative number, and none
        after a fraction (read in its code).
        """
        value = self.value("reconnect-delay", default=default)
        assert isinstance(value, int | float)
        return ceil(min(max(value, 0), RECONNECT_DELAY_S_MAX))
