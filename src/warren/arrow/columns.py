"""The columns of rows, by name: which there are, and which somebody asks for."""

from typing import Final

# In the order of the rows; offset and body are always there, and every other may be null.
COLUMN_NAMES: Final = (
    "queue", "offset", "exchange", "routing_key", "redelivered", "message_id", "correlation_id",
    "content_type", "content_encoding", "type", "app_id", "user_id", "reply_to", "expiration", "priority",
    "delivery_mode", "timestamp", "broker_timestamp", "headers", "headers_json", "body",
)  # fmt: skip
# Those that each message has of its own; all others follow from its shape.
PER_MESSAGE_COLUMNS: Final = frozenset(("queue", "offset", "redelivered", "broker_timestamp", "body"))


def parse_columns(text: str | None) -> tuple[str, ...]:
    """The columns that `text` lists, in the order of the rows; all if nothing is said. ValueError."""
    if text is None:
        return COLUMN_NAMES
    wanted = text.split(",")
    for name in wanted:
        if name not in COLUMN_NAMES:
            raise ValueError(f"there is no column '{name[:40]}'")
    return tuple(name for name in COLUMN_NAMES if name in wanted)
