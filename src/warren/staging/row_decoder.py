"""Converts rows of Arrow batches to messages: a column for each property, and headers without loss.

    body          binary, or string                    required in each row
    routing_key   string                               empty if null
    message_id, correlation_id, content_type, content_encoding, type, app_id, user_id, reply_to, expiration
                  string
    priority, delivery_mode                            integers; a row is persistent unless it is 1
    timestamp     timestamp                            AMQP has whole seconds
    headers       map of strings, or                   texts
    headers_json  string                               typed, as wire/table_json writes it

The other columns of rows read from a queue are ignored: queue, offset, exchange, redelivered and
broker_timestamp. Any other column is refused, as it would be lost.
"""

import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from warren.errors import AmqpError
from warren.limits import MESSAGE_SIZE_MAX, NAME_SIZE_MAX, STAGE_ROWS_MAX, STAGED_ROWS_PER_TURN
from warren.model.message import BODY_END, Message, encode_address
from warren.queues.reply import REPLY_TO
from warren.session.publish_rules import check_expiration
from warren.store.streams.chunk import MessageRun
from warren.wire.properties import BasicProperties
from warren.wire.table import encode_table
from warren.wire.table_json import table_from_json

# pyarrow has no type annotations.
Arrow: TypeAlias = Any

TEXT_COLUMNS = (
    "message_id", "correlation_id", "content_type", "content_encoding", "type", "app_id", "user_id",
    "reply_to", "expiration",
)  # fmt: skip
IGNORED_COLUMNS = frozenset(("queue", "offset", "exchange", "redelivered", "broker_timestamp"))
_NUMBERS = {"priority": range(256), "delivery_mode": range(1, 3)}
_PERSISTENT = 2
# Size of the cache of property lists by their values: most rows have one of a few.
_KNOWN_MAX = 1_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class RowRefused(Exception):
    """A row or a column cannot be published; the text says which, and why."""


class RowDecoder:
    """Decodes the batches of one stream, in a thread."""

    def __init__(self, arrow: Arrow, exchange: str, user: str, *, may_impersonate: bool) -> None:
        self._arrow = arrow
        # Exceptions of Arrow for invalid data; some are not subclasses of its own.
        self._errors = (arrow.ArrowException, OSError, TypeError, ValueError, OverflowError)
        self._exchange = exchange
        # The user-id that rows may have; None: any.
        self._user = None if may_impersonate else user
        self._schema: Arrow = None
        self._names: list[str] = []
        self._per_second = 1
        # The number of rows decoded.
        self.count = 0
        # Caches: values of a row -> property list, flags and priority; routing key -> address.
        self._known: dict[tuple[object, ...], Message] = {}
        self._addresses: dict[str, bytes] = {}

    def begin(self, data: bytes) -> None:
        """Decode the schema. Raises RowRefused if its columns cannot be published."""
        try:
            schema = self._arrow.ipc.read_schema(self._arrow.py_buffer(data))
            # Column names that are not UTF-8 are refused here.
            known = schema.names
        except self._errors as error:
            raise RowRefused(f"the schema cannot be read: {error}") from None
        types = self._arrow.types
        names = [field.name for field in schema if not types.is_null(field.type)]
        for field in schema:
            if field.name not in IGNORED_COLUMNS and not types.is_null(field.type):
                self._check_column(field)
        if len(set(known)) < len(known):
            raise RowRefused("two columns have the same name")
        if "body" not in names:
            raise RowRefused("there is no column 'body'")
        self._schema = schema
        self._names = [name for name in names if name not in IGNORED_COLUMNS]
        if "timestamp" in self._names:
            self._per_second = _PER_SECOND[schema.field("timestamp").type.unit]

    def take(self, data: bytes) -> Iterator[list[Message] | MessageRun]:
        """Yield the messages of a batch in parts; a single run if they differ in their bodies only.

        Raises RowRefused with the number of the row and its column.
        """
        if self._schema is None:
            raise RowRefused("the first batch comes before a schema")
        try:
            batch = self._arrow.ipc.read_record_batch(
                self._arrow.ipc.read_message(self._arrow.py_buffer(data)), self._schema
            )
            # Full validation: offsets outside of a buffer are not checked later.
            batch.validate(full=True)
        except self._errors as error:
            raise RowRefused(f"a batch cannot be read: {error}") from None
        if self.count + batch.num_rows > STAGE_ROWS_MAX:
            raise RowRefused(f"a stage must have at most {STAGE_ROWS_MAX} rows")
        run = self._run(batch)
        if run is not None:
            yield run
            return
        for first in range(0, batch.num_rows, STAGED_ROWS_PER_TURN):
            yield self._messages(batch.slice(first, STAGED_ROWS_PER_TURN))
            # Releases the interpreter to waiting threads now instead of after a few milliseconds.
            time.sleep(0)

    def _run(self, batch: Arrow) -> MessageRun | None:
        """Return `batch` as one run if its rows are valid and differ in their bodies only; else None."""
        count = batch.num_rows
        bodies = batch.column("body")
        if count < 2 or bodies.null_count or bodies.nbytes > MESSAGE_SIZE_MAX:
            return None
        for name in self._names:
            column = batch.column(name)
            if name != "body" and not column.slice(1).equals(column.slice(0, count - 1)):
                return None
        (like,) = self._messages(batch.slice(0, 1))
        bodies = bodies.cast(self._arrow.binary())
        _, offsets, data = bodies.buffers()
        ends = array("I")
        ends.frombytes(memoryview(offsets)[4 * bodies.offset : 4 * (bodies.offset + count + 1)])
        self.count += count - 1
        return MessageRun(like, ends, memoryview(data or b""), place=0, count=count)

    def _messages(self, batch: Arrow) -> list[Message]:
        columns: dict[str, list[Any]] = {}
        for name in self._names:
            column = batch.column(name)
            if name == "timestamp":
                column = column.cast(self._arrow.int64())
            columns[name] = column.to_pylist()
        bodies = columns.pop("body")
        keys = columns.pop("routing_key", [None] * len(bodies))
        names = tuple(columns)
        rows = zip(*columns.values(), strict=True) if columns else [()] * len(bodies)
        messages = []
        for body, key, values in zip(bodies, keys, rows, strict=True):
            # Lists are not hashable, tuples are.
            known = tuple(tuple(value) if isinstance(value, list) else value for value in values)
            like = self._known.get(known)
            if like is None:
                like = self._like(dict(zip(names, known, strict=True)))
                if len(self._known) >= _KNOWN_MAX:
                    self._known.clear()
                self._known[known] = like
            messages.append(self._message(body, key, like))
            self.count += 1
        return messages

    def _message(self, body: bytes | str | None, key: str | None, like: Message) -> Message:
        if body is None:
            raise self._refused("body", "it is null")
        data = body if isinstance(body, bytes) else body.encode()
        if len(data) > MESSAGE_SIZE_MAX:
            raise self._refused("body", f"{len(data)} bytes are more than {MESSAGE_SIZE_MAX}")
        message = Message(self._address(key or ""), like.property_list, data + BODY_END, 0)
        message.flags = like.flags
        message.priority = like.priority
        return message

    def _address(self, key: str) -> bytes:
        address = self._addresses.get(key)
        if address is None:
            if len(key.encode()) > NAME_SIZE_MAX:
                raise self._refused("routing_key", f"it is longer than {NAME_SIZE_MAX} bytes")
            if len(self._addresses) >= _KNOWN_MAX:
                self._addresses.clear()
            address = self._addresses[key] = encode_address(self._exchange, key)
        return address

    def _like(self, values: dict[str, Any]) -> Message:
        """Return a message without a body that has these properties."""
        properties = BasicProperties(delivery_mode=_PERSISTENT)
        for name in TEXT_COLUMNS:
            text = values.get(name)
            if text is not None:
                if len(text.encode()) > NAME_SIZE_MAX:
                    raise self._refused(name, f"it is longer than {NAME_SIZE_MAX} bytes")
                setattr(properties, name, text)
        for name, valid in _NUMBERS.items():
            number = values.get(name)
            if number is not None:
                if number not in valid:
                    raise self._refused(name, f"{number} is not between {valid[0]} and {valid[-1]}")
                setattr(properties, name, number)
        moment = values.get("timestamp")
        if moment is not None:
            if moment < 0:
                raise self._refused("timestamp", "it is before 1970")
            properties.timestamp = moment // self._per_second
        self._set_headers(properties, values)
        self._check(properties)
        return Message.compose(b"\0\0", properties, BODY_END, now=0)

    def _set_headers(self, properties: BasicProperties, values: dict[str, Any]) -> None:
        text, pairs = values.get("headers_json"), values.get("headers")
        try:
            if text is not None or pairs is not None:
                typed = {} if text is None else table_from_json(text)
                properties.headers = dict(pairs or ()) | typed
                encode_table(properties.headers)
        except (AmqpError, RecursionError) as error:
            reason = error.message if isinstance(error, AmqpError) else "they are nested too deep"
            raise self._refused("headers" if text is None else "headers_json", reason) from None

    def _check(self, properties: BasicProperties) -> None:
        """Refuse properties that a publisher may not set either."""
        if properties.user_id is not None and self._user not in (None, properties.user_id):
            reason = f"'{properties.user_id}' is not the user '{self._user}' who stages it"
            raise self._refused("user_id", reason)
        if properties.reply_to == REPLY_TO:
            raise self._refused("reply_to", "direct reply-to is not supported in staged rows")
        if properties.expiration is not None:
            try:
                check_expiration(properties.expiration)
            except AmqpError as error:
                raise self._refused("expiration", error.message) from None

    def _check_column(self, field: Arrow) -> None:
        check = self._column_checks().get(field.name)
        if check is None:
            raise RowRefused(f"there is no property '{field.name[:40]}': remove this column")
        if not check(field.type):
            raise RowRefused(f"column '{field.name}' cannot be {field.type}")

    def _column_checks(self) -> dict[str, Callable[[Arrow], bool]]:
        types = self._arrow.types

        def is_text(kind: Arrow) -> bool:
            return bool(types.is_string(kind) or types.is_large_string(kind))

        def is_body(kind: Arrow) -> bool:
            return bool(types.is_binary(kind) or types.is_large_binary(kind) or is_text(kind))

        def is_texts(kind: Arrow) -> bool:
            return bool(types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type))

        checks: dict[str, Callable[[Arrow], bool]] = dict.fromkeys(TEXT_COLUMNS, is_text)
        checks |= dict.fromkeys(_NUMBERS, types.is_integer)
        return checks | {
            "routing_key": is_text,
            "headers_json": is_text,
            "body": is_body,
            "headers": is_texts,
            "timestamp": types.is_timestamp,
        }

    def _refused(self, column: str, reason: str) -> RowRefused:
        return RowRefused(f"row {self.count}, column '{column}': {reason}")
