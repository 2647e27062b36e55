"""The columns of rows: their names, and the selection in a request."""

from typing import Final

# In the order of the columns in rows; offset and body are never null, all others can be.
COLUMN_NAMES: Final = (
    "queue", "offset", "exchange", "routing_key", "redelivered", "message_id", "correlation_id",
    "content_type", "content_encoding", "type", "app_id", "user_id", "reply_to", "expiration", "priority",
    "delivery_mode", "timestamp", "broker_timestamp", "headers", "headers_json", "body",
)  # fmt: skip
# Columns with a value of their own in each message; all others follow from the shape of the message.
PER_MESSAGE_COLUMNS: Final = frozenset(("queue", "offset", "redelivered", "broker_timestamp", "body"))


def parse_columns(text: str | None) -> tuple[str, ...]:
    """Parse a comma-separated list of columns, returned in the order of rows. Raises ValueError."""
    if text is None:
        return COLUMN_NAMES
    wanted = text.split(",")
    for name in wanted:
        if name not in COLUMN_NAMES:
            raise ValueError(f"there is no column '{name[:40]}'")
    return tuple(name for name in COLUMN_NAMES if name in wanted)
