"""Encodes rows as frames: basic.publish, content header and body, with little Python code for each row.

Common parts are encoded once: the method frame for each address, and each distinct set of properties. These
are split at the end of the headers, where the header `x-spark-txn` is inserted, which differs in each row.
"""

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyspark_warren.schema import WRITABLE
from warren.errors import AmqpError
from warren.wire.methods import BasicPublish
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, encode_table
from warren.wire.table_json import table_from_json

TRANSACTION_HEADER = b"\x0bx-spark-txnS"
_FRAME = struct.Struct(">BHI")
_METHOD, _HEADER, _BODY = 1, 2, 3
_OVERHEAD = 8
_BASIC = b"\x00\x3c\x00\x00"
_HEADERS = 1 << 13
_MICROSECONDS = 1_000_000
_PERSISTENT, _TRANSIENT = 2, 1
# Cached method frames, and cached sets of properties.
_REMEMBERED_MAX = 10_000
# Characters of a value that an error shows.
_SHOWN_MAX = 100
_BEFORE_HEADERS = ("content_type", "content_encoding")


class PublishEncoder:
    """Encodes the rows of a task; caches what rows have in common."""

    def __init__(self, *, channel: int, frame_size_max: int, is_mandatory: bool, is_persistent: bool) -> None:
        self._channel = channel
        self._body_max = frame_size_max - _OVERHEAD
        self._is_mandatory = is_mandatory
        self._delivery_mode = _PERSISTENT if is_persistent else _TRANSIENT
        self._methods: dict[tuple[str, str], bytes] = {}
        self._properties: dict[tuple[Any, ...], tuple[bytes, bytes, bytes]] = {}

    def encode(
        self, batch: pa.RecordBatch, address: tuple[str | None, str | None], names: Sequence[bytes] | None
    ) -> list[bytes]:
        """Return the frames of each row; `address` overrides columns, `names` are values of x-spark-txn."""
        names = names or [b""] * batch.num_rows
        exchanges, keys = (
            self._column(batch, "exchange", address[0]),
            self._column(batch, "routing_key", address[1]),
        )
        bodies = batch.column("body").cast(pa.binary()).to_pylist()
        used = [
            name
            for name in batch.schema.names
            if name in _CARRIED and batch.column(name).null_count < batch.num_rows
        ]
        columns = [_values(batch.column(name)) for name in used]
        rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
        return [
            self._method(exchange, key)
            + self._header(used, row, len(body or b""), name)
            + self._body(body or b"")
            for exchange, key, body, row, name in zip(exchanges, keys, bodies, rows, names, strict=True)
        ]

    def _column(self, batch: pa.RecordBatch, name: str, fixed: str | None) -> list[str]:
        if fixed is not None:
            return [fixed] * batch.num_rows
        if name not in batch.schema.names:
            option = "exchange" if name == "exchange" else "routingKey"
            raise ValueError(f"no target to publish to: give the option {option!r} or a column {name!r}")
        return [value or "" for value in batch.column(name).to_pylist()]

    def _method(self, exchange: str, routing_key: str) -> bytes:
        frame = self._methods.get((exchange, routing_key))
        if frame is None:
            _make_room(self._methods)
            method = BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=self._is_mandatory)
            try:
                encoded = method.encode()
            except AmqpError as error:
                address = f"exchange {exchange[:_SHOWN_MAX]!r}, routing key {routing_key[:_SHOWN_MAX]!r}"
                raise ValueError(f"cannot publish to {address}: {error}") from None
            frame = self._methods[exchange, routing_key] = self._frame(_METHOD, encoded)
        return frame

    def _header(self, used: list[str], row: tuple[Any, ...], size: int, name: bytes) -> bytes:
        known = self._properties.get(row)
        if known is None:
            _make_room(self._properties)
            values = dict(zip(used, row, strict=True))
            try:
                known = self._properties[row] = self._encoded(values)
            except (AmqpError, ValueError, TypeError) as error:
                raise ValueError(self._wrong(values) or str(error)) from None
        before, entries, after = known
        if name:
            entries = b"%b%b%b%b" % (entries, TRANSACTION_HEADER, len(name).to_bytes(4, "big"), name)
        if entries:
            entries = len(entries).to_bytes(4, "big") + entries
        flags = int.from_bytes(before[:2], "big") | (_HEADERS if entries else 0)
        listed = b"%b%b%b%b" % (flags.to_bytes(2, "big"), before[2:], entries, after)
        payload = b"%b%b%b" % (_BASIC, size.to_bytes(8, "big"), listed)
        return self._frame(_HEADER, payload)

    def _encoded(self, values: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
        """Return flags and properties before the headers, the headers, and the properties after them."""
        values = {name: value for name, value in values.items() if value is not None}
        headers = _headers(values.pop("headers_json", None), values.pop("headers", None))
        values.setdefault("delivery_mode", self._delivery_mode)
        before = {name: values.pop(name) for name in _BEFORE_HEADERS if name in values}
        first, second = BasicProperties(**before).encode_list(), BasicProperties(**values).encode_list()
        flags = int.from_bytes(first[:2], "big") | int.from_bytes(second[:2], "big")
        entries = encode_table(headers)[4:] if headers else b""
        return flags.to_bytes(2, "big") + first[2:], entries, second[2:]

    def _wrong(self, values: dict[str, Any]) -> str:
        """Return the reason why one of `values` cannot be encoded; empty if each can."""
        for name, value in values.items():
            try:
                self._encoded({name: value})
            except (AmqpError, ValueError, TypeError) as error:
                shown = repr(value)
                if len(shown) > _SHOWN_MAX:
                    shown = f"{shown[:_SHOWN_MAX]}…"
                return f"the column {name!r} has the value {shown}, which cannot be sent: {error}"
        return ""

    def _body(self, body: bytes) -> bytes:
        if len(body) <= self._body_max:
            return self._frame(_BODY, body) if body else b""
        step = self._body_max
        return b"".join(self._frame(_BODY, body[at : at + step]) for at in range(0, len(body), step))

    def _frame(self, kind: int, payload: bytes) -> bytes:
        return b"%b%b\xce" % (_FRAME.pack(kind, self._channel, len(payload)), payload)


def _values(column: pa.Array) -> list[Any]:
    """Return the values as hashable objects that can be encoded: times in seconds, maps as tuples."""
    if pa.types.is_timestamp(column.type):
        whole = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        return [None if value is None else value // _MICROSECONDS for value in whole]
    if pa.types.is_map(column.type):
        return [None if value is None else tuple(value) for value in column.to_pylist()]
    listed: list[Any] = column.to_pylist()
    return listed


def _headers(typed: str | None, plain: tuple[tuple[str, str | None], ...] | None) -> Table:
    """Merge both columns of headers; `typed` (headers_json) takes precedence over `plain`."""
    table: Table = dict(plain or ())
    return table | table_from_json(typed) if typed else table


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= _REMEMBERED_MAX:
        remembered.clear()


_CARRIED = WRITABLE - {"exchange", "routing_key", "body"}
