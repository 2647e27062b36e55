"""The header that carries the stream offset of a message."""

import pytest

from warren.queues.offset_header import OFFSET_HEADER, OffsetHeader
from warren.wire.properties import BasicProperties
from warren.wire.table import Int8, Table


@pytest.mark.parametrize("offset", [0, 1, 255, 2**40, 2**62])
@pytest.mark.parametrize(
    "headers",
    [
        None,
        {},
        {"z": 1, "b": Int8(3)},
        {"x-stream-offset": "mine"},
        {"a": {"x-stream-offset": 0}, "b": b"\x0fx-stream-offsetl" + bytes(8)},
    ],
)
def test_the_offset_is_added_to_the_existing_headers(headers: Table | None, offset: int) -> None:
    sent = BasicProperties(message_id="m", delivery_mode=2, headers=headers)
    read = BasicProperties.decode_list(OffsetHeader(sent.encode_list()).with_offset(offset))
    assert read.headers is not None
    assert read.headers == {**(headers or {}), "x-stream-offset": offset}
    # Headers keep the order in which they were published.
    assert list(read.headers) == [*(name for name in headers or () if name != OFFSET_HEADER), OFFSET_HEADER]
    assert (read.message_id, read.delivery_mode) == ("m", 2)
