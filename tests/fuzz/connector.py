"""What brokers send to the client and to the Spark connector: AMQP, Arrow rows, and answers in JSON."""

import io
import socket
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType

import pyarrow as pa

# The package imports Spark, which reading needs not: its modules are imported without it.
_package = ModuleType("pyspark_warren")
_package.__path__ = list(find_spec("pyspark_warren").submodule_search_locations or ())  # type: ignore[union-attr]
sys.modules.setdefault("pyspark_warren", _package)

from pyspark_warren import answers  # noqa: E402
from pyspark_warren.arrow import read_rows  # noqa: E402
from pyspark_warren.batches import to_batch  # noqa: E402
from pyspark_warren.deliveries import DeliveryReader, MalformedDelivery  # noqa: E402
from pyspark_warren.http import HttpApiError, document  # noqa: E402
from pyspark_warren.schema import COLUMNS, arrow_schema  # noqa: E402
from warren.blocking.connection import BlockingConnection, ConnectOptions  # noqa: E402
from warren.client.confirms import ConfirmCounter, UnexpectedBytes  # noqa: E402
from warren.client.errors import BrokerRefused  # noqa: E402
from warren.client.raw_frames import decoded, method_frame, reason  # noqa: E402
from warren.client.uri import parse_uri  # noqa: E402
from warren.wire.methods import (  # noqa: E402
    BasicAck,
    BasicCancel,
    BasicConsumeOk,
    BasicDeliver,
    BasicNack,
    BasicReturn,
    ChannelClose,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionTune,
)
from warren.wire.properties import BasicProperties  # noqa: E402
from warren.wire.table import Timestamp  # noqa: E402

ROWS = 10
RETRIES = 2
PUBLISHED = 300
READERS = (
    answers.stream_bounds, answers.stream_offset, answers.granted_lease, answers.ready_messages,
    answers.staged_rows, answers.commit, answers.queue_type, answers.bound_queues, answers.queue_types,
    answers.traced_vhosts, answers.product,
)  # fmt: skip


class _Server:
    """Sends the same bytes to each connection, and no more."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.data = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            link, _ = self.listener.accept()
            with link, suppress(OSError):
                link.sendall(self.data)
                link.shutdown(socket.SHUT_WR)
                while link.recv(65_536):
                    pass


_servers: list[_Server] = []


def check_client(data: bytes) -> None:
    """Whatever a broker answers, the client connects or is refused."""
    if not _servers:
        _servers.append(_Server())
    (server,) = _servers
    server.data = data
    target = parse_uri(f"amqp://127.0.0.1:{server.listener.getsockname()[1]}")
    with suppress(BrokerRefused):
        link = BlockingConnection(target, ConnectOptions(product="fuzz", answer_s_max=5))
        try:
            assert link.frame_size_max >= 4096
            link.open_channel()
        finally:
            link.close()


def client_seeds() -> list[bytes]:
    """Handshakes, to an open channel or a close."""
    properties = {"product": "RabbitMQ", "capabilities": {"basic.nack": True, "a": [1, {"b": Timestamp(1)}]}}
    start = ConnectionStart(
        version_major=0, version_minor=9, server_properties=properties, mechanisms="PLAIN", locales="en_US"
    )
    head = method_frame(0, start) + method_frame(
        0, ConnectionTune(channel_max=2047, frame_max=131_072, heartbeat=60)
    )
    close = ConnectionClose(reply_code=403, reply_text="ACCESS_REFUSED")
    channel_close = ChannelClose(reply_code=404, reply_text="NOT_FOUND")
    return [
        head + method_frame(0, ConnectionOpenOk()) + method_frame(1, ChannelOpenOk()),
        head + method_frame(0, close),
        head + method_frame(0, ConnectionOpenOk()) + method_frame(1, channel_close),
        b"AMQP\x00\x00\x09\x01",
        b"\x08\0\0\0\0\0\0\xce" + head,
    ]


def check_deliveries(data: bytes) -> None:
    """Deliveries become rows or are refused, and it makes no difference how the bytes are cut."""
    for is_stream in (False, True):
        whole = _read_deliveries(data, len(data) or 1, is_stream=is_stream)
        for size in (1 + (data[-1] if data else 0), 7):
            pieces = _read_deliveries(data, size, is_stream=is_stream)
            # Of a delivery that is not complete, more is looked at if more of it arrives at once.
            assert pieces == whole or whole is None


def _read_deliveries(data: bytes, size: int, *, is_stream: bool) -> object:
    """Return the rows and methods in `data`, fed in pieces of `size`; None if it was refused."""
    reader = DeliveryReader(is_stream=is_stream)
    try:
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
        rows = reader.take()
        assert len(rows) == len(rows.tag) == len(rows.offset) <= len(data)
        batch = to_batch(rows, "q", tuple(COLUMNS))
    except MalformedDelivery:
        return None
    batch.validate(full=True)
    assert batch.num_rows == len(rows)
    for payload in reader.methods:
        with suppress(BrokerRefused):
            decoded(payload)
    return rows.body, rows.tag, rows.offset, reader.methods


def delivery_seeds() -> list[bytes]:
    """Deliveries of a queue and of a stream, with bodies of no, one and several frames."""

    def frame(kind: int, payload: bytes) -> bytes:
        return kind.to_bytes(1, "big") + b"\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"

    def delivery(tag: int, body: bytes, properties: BasicProperties) -> bytes:
        method = BasicDeliver(
            consumer_tag="spark", delivery_tag=tag, redelivered=False, exchange="x", routing_key="ü"
        )
        bodies = b"".join(frame(3, body[at : at + 3]) for at in range(0, len(body), 3))
        return frame(1, method.encode()) + frame(2, properties.encode(len(body))) + bodies

    headers = {"x-stream-offset": 5, "timestamp_in_ms": 1, "a": [1, {"b": b"\xff"}]}
    full = BasicProperties(
        content_type="t", content_encoding="e", headers=headers, delivery_mode=2, priority=3,
        correlation_id="c", reply_to="r", expiration="5", message_id="m", timestamp=7, type="t",
        user_id="u", app_id="a",
    )  # fmt: skip
    cancel = frame(1, BasicCancel(consumer_tag="spark").encode())
    consumed = frame(1, BasicConsumeOk(consumer_tag="spark").encode())
    return [
        consumed + delivery(1, b"abc", full) + delivery(2, b"", full) + cancel,
        delivery(1, b"abcdefgh", BasicProperties()) + delivery(2, b"x", BasicProperties(message_id="m")),
        delivery(1, b"", BasicProperties(headers={"x-stream-offset": 2**40})),
    ]


def check_confirms(data: bytes) -> None:
    """Confirms are counted, and anything else is described in a text."""
    counter = ConfirmCounter()
    rest = b""
    try:
        for at in range(0, len(data), 50):
            counter.feed(data[at : at + 50], PUBLISHED)
    except UnexpectedBytes as unexpected:
        rest = unexpected.data
    with suppress(BrokerRefused):
        assert reason(rest)
    assert 0 <= counter.nacked <= counter.settled <= PUBLISHED


def confirm_seeds() -> list[bytes]:
    """Confirms in order, in any order, negative ones, and what stands between them."""
    acks = b"".join(method_frame(1, BasicAck(delivery_tag=tag)) for tag in range(1, 6))
    several = method_frame(1, BasicAck(delivery_tag=9, multiple=True))
    nack = method_frame(1, BasicNack(delivery_tag=7))
    returned = BasicReturn(reply_code=312, reply_text="NO_ROUTE", exchange="x", routing_key="k")
    close = ChannelClose(reply_code=404, reply_text="NOT_FOUND")
    return [acks + several, nack + several + acks, acks + method_frame(1, returned), method_frame(1, close)]


class _Api:
    """Answers each request with the same bytes; a reader may ask only as often as it retries and gets on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.requests = 0

    def open(self, path: str, query: object) -> io.BytesIO:
        self.requests += 1
        assert self.requests <= ROWS + RETRIES + 1
        return io.BytesIO(self._data)


def check_rows(data: bytes) -> None:
    """Rows are those that were asked for, or the answer is refused."""
    api = _Api(data)
    found = []
    with suppress(HttpApiError):
        for batch in read_rows(
            api,  # type: ignore[arg-type]
            "/rows", {}, start=0, end=ROWS, columns=tuple(COLUMNS), retries=RETRIES,
        ):  # fmt: skip
            batch.validate(full=True)
            found += batch.column("offset").to_pylist()
    assert all(offset is None or -(2**63) <= offset < 2**63 for offset in found)


def row_seeds() -> list[bytes]:
    """Answers with all columns: one batch, several, none, compressed, and one that is cut off."""
    schema = arrow_schema(COLUMNS)
    values = {
        pa.string(): "{}", pa.int64(): 1, pa.int32(): 2, pa.bool_(): True, pa.binary(): b"b",
        pa.timestamp("us", "UTC"): 5, pa.map_(pa.string(), pa.string()): [("k", "v")],
    }  # fmt: skip

    def batch(start: int, end: int) -> pa.RecordBatch:
        arrays = [pa.array([values[field.type]] * (end - start), field.type) for field in schema]
        arrays[schema.get_field_index("offset")] = pa.array(range(start, end), pa.int64())
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def stream(*batches: pa.RecordBatch, compression: str | None = None) -> bytes:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            for each in batches:
                writer.write_batch(each)
        return bytes(sink.getvalue())

    whole = stream(batch(0, 4), batch(4, ROWS))
    return [whole, whole[:-300], stream(batch(0, ROWS)), stream(), stream(batch(0, 3), compression="zstd")]


def check_answers(data: bytes) -> None:
    """Any document is read as what is expected, or refused."""
    try:
        reported = document(data)
    except answers.UnexpectedAnswer:
        return
    for read in READERS:
        with suppress(answers.UnexpectedAnswer):
            read(reported)
    if isinstance(reported, dict):
        assert (answers.first_offset(reported, 5) or 6) > 5


def answer_seeds() -> list[bytes]:
    """One answer for each reader."""
    return [
        b'{"epoch": "e", "first_offset": 5, "committed_offset": 15, "bytes": 2000, "offset": 7}',
        b'{"lease": "l", "messages": 5, "state": "active"}', b'{"lease": null, "messages": 0}',
        b'{"rows": 5, "bytes": 1}', b'{"state": "committed", "rows": 5, "published": 3, "unroutable": 1}',
        b'{"state": "committing", "rows": 5, "published": 3, "reason": "disk"}', b'{"type": "stream"}',
        b'[{"name": "q", "type": "stream"}, {"name": "r"}]', b'[{"name": "/", "tracing": true}]',
        b'[{"destination": "q", "destination_type": "queue"}]', b'{"product_name": "Warren"}', b"",
    ]  # fmt: skip
