"""Converts messages received over AMQP to Arrow record batches."""

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from pyspark_warren.deliveries import OFFSET_SIZE, DeliveryColumns, MalformedDelivery
from pyspark_warren.schema import arrow_schema
from warren.errors import AmqpError
from warren.wire.properties import BasicProperties
from warren.wire.table import Table
from warren.wire.table_json import header_text, table_to_json

# Bits of the first byte of the flags for the properties before the headers: content type, content encoding.
_BEFORE_HEADERS = (0x80, 0x40)
_MICROSECONDS = 1_000_000
_MICROSECONDS_MAX = 2**63 - 1
# The header in which brokers with the timestamp plugin put the time of receipt.
_RECEIVED = "timestamp_in_ms"


def to_batch(rows: DeliveryColumns, queue: str, columns: Sequence[str]) -> pa.RecordBatch:
    """Return `rows` of `queue` as a record batch with `columns`."""
    schema = arrow_schema(columns)
    count = len(rows)
    addresses = _Addresses(rows)
    properties = _Properties(rows)
    arrays = []
    for field in schema:
        match field.name:
            case "queue":
                array = pa.repeat(pa.scalar(queue), count)
            case "offset":
                array = pa.array(rows.offset, pa.int64())
            case "redelivered":
                array = pa.array(rows.redelivered, pa.bool_())
            case "body":
                array = pa.array(rows.body, pa.binary())
            case "exchange" | "routing_key":
                array = addresses.column(field.name)
            case _:
                array = properties.column(field)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Addresses:
    """Columns of exchanges and routing keys; each distinct pair is decoded once."""

    def __init__(self, rows: DeliveryColumns) -> None:
        self._rows = rows

    def column(self, name: str) -> pa.Array:
        texts = []
        for encoded in self._rows.addresses:
            middle = 1 + encoded[0] if encoded else 0
            if not middle < len(encoded) == middle + 1 + encoded[middle]:
                raise MalformedDelivery("basic.deliver does not end behind its routing key")
            part = encoded[1:middle] if name == "exchange" else encoded[middle + 1 :]
            texts.append(part.decode(errors="replace"))
        return _spread(pa.array(texts, pa.string()), self._rows.address)


class _Properties:
    """Columns of properties; each distinct property list is decoded once."""

    def __init__(self, rows: DeliveryColumns) -> None:
        self._rows = rows
        self._lists = _decoded(rows)

    def column(self, field: pa.Field) -> pa.Array:
        values = [_value(one, field.name) for one in self._lists]
        if not any(value is not None for value in values):
            return pa.nulls(len(self._rows), field.type)
        return _spread(pa.array(values, field.type), self._rows.properties)


def _decoded(rows: DeliveryColumns) -> list[BasicProperties]:
    try:
        if not rows.is_stream:
            return [BasicProperties.decode_list(encoded) for encoded in rows.property_lists]
        return [BasicProperties.decode_list(_resized(encoded)) for encoded in rows.property_lists]
    except (AmqpError, struct.error, IndexError) as error:
        raise MalformedDelivery(f"the properties of a message cannot be decoded: {error}") from None


def _resized(encoded: bytes) -> bytes:
    """Return a property list with the size of its headers corrected for the removed offset header."""
    flags = encoded[0]
    at = 2
    for bit in _BEFORE_HEADERS:
        if flags & bit:
            at += 1 + encoded[at]
    (size,) = struct.unpack_from(">I", encoded, at)
    return encoded[:at] + struct.pack(">I", size - OFFSET_SIZE) + encoded[at + 4 :]


def _value(properties: BasicProperties, name: str) -> Any:
    headers = properties.headers
    match name:
        case "headers":
            return (
                [(header_text(key), header_text(value)) for key, value in headers.items()]
                if headers
                else None
            )
        case "headers_json":
            return table_to_json(headers) if headers else None
        case "timestamp":
            return _microseconds(properties.timestamp, _MICROSECONDS)
        case "broker_timestamp":
            return _received(headers)
        case "priority" | "delivery_mode":
            return getattr(properties, name)
    return header_text(getattr(properties, name))


def _received(headers: Table | None) -> int | None:
    time = (headers or {}).get(_RECEIVED)
    return _microseconds(int(time), 1000) if isinstance(time, int) else None


def _microseconds(time: int | None, factor: int) -> int | None:
    """Return `time` in microseconds; None if it is missing or does not fit into the column."""
    return time * factor if time is not None and abs(time) <= _MICROSECONDS_MAX // factor else None


def _spread(unique: pa.Array, numbers: list[int]) -> pa.Array:
    """Return the entry of `unique` for each of `numbers`."""
    if len(unique) == len(numbers):
        return unique  # each is used once, in order of arrival
    return compute.take(unique, pa.array(numbers, pa.int32()))
