"""Methods and content headers of AMQP 0-9-1, written down a second time.

The broker has its own table, generated from its own file. This one is typed by hand from the
specification (0-9-1 §1.4 to §1.8) and RabbitMQ's extensions, so that a mistake in either shows.
Field types: o byte, s short, l long, q long long, b bit, h short string, H long string, t table.
A field whose name begins with `_` is reserved: sent as zero or empty, and not shown.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.tables import ByteReader, pack_longstr, pack_shortstr, pack_table, unpack_table

_LIST = """
10.10 connection.start version_major:o version_minor:o server_properties:t mechanisms:H locales:H
10.11 connection.start-ok client_properties:t mechanism:h response:H locale:h
10.20 connection.secure challenge:H
10.21 connection.secure-ok response:H
10.30 connection.tune channel_max:s frame_max:l heartbeat:s
10.31 connection.tune-ok channel_max:s frame_max:l heartbeat:s
10.40 connection.open virtual_host:h _1:h _2:b
10.41 connection.open-ok _1:h
10.50 connection.close reply_code:s reply_text:h class_id:s method_id:s
10.51 connection.close-ok
10.60 connection.blocked reason:h
10.61 connection.unblocked
10.70 connection.update-secret new_secret:H reason:h
10.71 connection.update-secret-ok
20.10 channel.open _1:h
20.11 channel.open-ok _1:H
20.20 channel.flow active:b
20.21 channel.flow-ok active:b
20.40 channel.close reply_code:s reply_text:h class_id:s method_id:s
20.41 channel.close-ok
30.10 access.request realm:h exclusive:b passive:b active:b write:b read:b
30.11 access.request-ok ticket:s
40.10 exchange.declare _:s exchange:h type:h passive:b durable:b auto_delete:b internal:b nowait:b arguments:t
40.11 exchange.declare-ok
40.20 exchange.delete _:s exchange:h if_unused:b nowait:b
40.21 exchange.delete-ok
40.30 exchange.bind _:s destination:h source:h routing_key:h nowait:b arguments:t
40.31 exchange.bind-ok
40.40 exchange.unbind _:s destination:h source:h routing_key:h nowait:b arguments:t
40.51 exchange.unbind-ok
50.10 queue.declare _:s queue:h passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:t
50.11 queue.declare-ok queue:h message_count:l consumer_count:l
50.20 queue.bind _:s queue:h exchange:h routing_key:h nowait:b arguments:t
50.21 queue.bind-ok
50.30 queue.purge _:s queue:h nowait:b
50.31 queue.purge-ok message_count:l
50.40 queue.delete _:s queue:h if_unused:b if_empty:b nowait:b
50.41 queue.delete-ok message_count:l
50.50 queue.unbind _:s queue:h exchange:h routing_key:h arguments:t
50.51 queue.unbind-ok
60.10 basic.qos prefetch_size:l prefetch_count:s global:b
60.11 basic.qos-ok
60.20 basic.consume _:s queue:h consumer_tag:h no_local:b no_ack:b exclusive:b nowait:b arguments:t
60.21 basic.consume-ok consumer_tag:h
60.30 basic.cancel consumer_tag:h nowait:b
60.31 basic.cancel-ok consumer_tag:h
60.40 basic.publish _:s exchange:h routing_key:h mandatory:b immediate:b
60.50 basic.return reply_code:s reply_text:h exchange:h routing_key:h
60.60 basic.deliver consumer_tag:h delivery_tag:q redelivered:b exchange:h routing_key:h
60.70 basic.get _:s queue:h no_ack:b
60.71 basic.get-ok delivery_tag:q redelivered:b exchange:h routing_key:h message_count:l
60.72 basic.get-empty _1:h
60.80 basic.ack delivery_tag:q multiple:b
60.90 basic.reject delivery_tag:q requeue:b
60.100 basic.recover-async requeue:b
60.110 basic.recover requeue:b
60.111 basic.recover-ok
60.120 basic.nack delivery_tag:q multiple:b requeue:b
85.10 confirm.select nowait:b
85.11 confirm.select-ok
90.10 tx.select
90.11 tx.select-ok
90.20 tx.commit
90.21 tx.commit-ok
90.30 tx.rollback
90.31 tx.rollback-ok
"""

# 0-9-1 §1.8: the first property has the highest flag bit.
PROPERTIES = (
    ("content_type", "h"),
    ("content_encoding", "h"),
    ("headers", "t"),
    ("delivery_mode", "o"),
    ("priority", "o"),
    ("correlation_id", "h"),
    ("reply_to", "h"),
    ("expiration", "h"),
    ("message_id", "h"),
    ("timestamp", "q"),
    ("type", "h"),
    ("user_id", "h"),
    ("app_id", "h"),
    ("cluster_id", "h"),
)

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE


class MethodSpec:
    """One method: its name, its ids and its fields."""

    def __init__(self, line: str) -> None:
        ids, self.name, *fields = line.split()
        self.class_id, self.method_id = (int(number) for number in ids.split("."))
        self.fields = [tuple(field.split(":")) for field in fields]
        self.shown = [name for name, _ in self.fields if not name.startswith("_")]

    def encode(self, values: dict[str, Any]) -> bytes:
        """The payload of a method frame; a missing field is zero or empty."""
        unknown = set(values) - set(self.shown)
        if unknown:
            raise ValueError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        parts = [struct.pack(">HH", self.class_id, self.method_id)]
        bits: list[bool] = []
        for name, kind in self.fields:
            if kind == "b":
                bits.append(bool(values.get(name, False)))
                continue
            parts.append(_pack_bits(bits))
            bits = []
            parts.append(_pack_field(kind, values.get(name)))
        parts.append(_pack_bits(bits))
        return b"".join(parts)

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The fields of a method frame's payload; bytes left over are an error."""
        reader = ByteReader(payload, 4)
        values: dict[str, Any] = {}
        bit = 8
        flags = 0
        for name, kind in self.fields:
            if kind == "b":
                if bit == 8:
                    flags, bit = reader.number(1), 0
                value: Any = bool(flags >> bit & 1)
                bit += 1
            else:
                bit = 8
                value = _unpack_field(kind, reader)
            if not name.startswith("_"):
                values[name] = value
        if reader.rest():
            raise ValueError(f"{self.name}: {len(reader.rest())} bytes too many in {payload!r}")
        return values


METHODS_BY_NAME = {spec.name: spec for spec in map(MethodSpec, _LIST.strip().splitlines())}
METHODS_BY_ID = {(spec.class_id, spec.method_id): spec for spec in METHODS_BY_NAME.values()}


def encode_frame(kind: int, channel: int, payload: bytes) -> bytes:
    """0-9-1 §2.3.5: type, channel, size, payload, frame-end."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([FRAME_END])


def encode_header(body_size: int, properties: dict[str, Any]) -> bytes:
    """A content header's payload, 0-9-1 §2.3.5.2; `class_id`, `weight` and `flags` may be forced."""
    names = {name for name, _ in PROPERTIES}
    forced = {name: properties[name] for name in ("class_id", "weight", "flags") if name in properties}
    unknown = set(properties) - names - set(forced)
    if unknown:
        raise ValueError(f"no property {', '.join(sorted(unknown))}")
    flags = 0
    parts = []
    for place, (name, kind) in enumerate(PROPERTIES):
        if name in properties:
            flags |= 1 << (15 - place)
            parts.append(_pack_field(kind, properties[name]))
    start = struct.pack(
        ">HHQH", forced.get("class_id", 60), forced.get("weight", 0), body_size, forced.get("flags", flags)
    )
    return start + b"".join(parts)


def decode_header(payload: bytes) -> tuple[int, dict[str, Any]]:
    """The body size and the properties of a content header's payload."""
    reader = ByteReader(payload, 0)
    class_id, weight, body_size, flags = (reader.number(size) for size in (2, 2, 8, 2))
    if class_id != 60 or weight != 0 or flags & 3:
        raise ValueError(f"class {class_id}, weight {weight}, flags {flags:#x} in a content header")
    properties = {}
    for place, (name, kind) in enumerate(PROPERTIES):
        if flags >> (15 - place) & 1:
            properties[name] = _unpack_field(kind, reader)
    if reader.rest():
        raise ValueError(f"{len(reader.rest())} bytes too many in a content header")
    return body_size, properties


_SIZES = {"o": 1, "s": 2, "l": 4, "q": 8}


def _pack_bits(bits: list[bool]) -> bytes:
    return bytes([sum(1 << place for place, bit in enumerate(bits) if bit)]) if bits else b""


def _pack_field(kind: str, value: Any) -> bytes:
    if kind in _SIZES:
        return int(value or 0).to_bytes(_SIZES[kind], "big")
    if kind == "h":
        return pack_shortstr(value or "")
    if kind == "H":
        return pack_longstr(value or "")
    return pack_table(value or {})


def _unpack_field(kind: str, reader: ByteReader) -> Any:
    if kind in _SIZES:
        return reader.number(_SIZES[kind])
    if kind == "h":
        return reader.text(1)
    if kind == "H":
        return reader.text(4)
    return unpack_table(reader)
