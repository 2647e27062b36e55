"""Messages as Arrow rows over HTTP: contents, limits, and the cost for other clients."""

import http.client
import json
import os
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pika
import pyarrow as pa
import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

PERSISTENT = 2
TIMEOUT_S = patient(30)
# The place of the first message by type of queue: those without priority come behind 31 levels.
FIRST_PLACES = {"classic": 0, "quorum": 31 << 48}
AUTHORIZATION = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}


@pytest.fixture(params=["classic", "quorum"])
def queue_type(request: pytest.FixtureRequest) -> str:
    """The type of the queues of the test."""
    return str(request.param)


@pytest.fixture
def channel(
    node: BrokerProcess, queue_type: str
) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments={"x-queue-type": queue_type})
        channel.confirm_delivery()
        yield channel
        channel.queue_delete("orders")


def read(node: BrokerProcess, path: str, **query: object) -> tuple[pa.Table, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=TIMEOUT_S)
    connection.request("GET", f"/api/warren{path}?{urlencode(query, doseq=True)}", headers=AUTHORIZATION)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == 200, body
    assert response.headers.get_content_type() == "application/vnd.apache.arrow.stream"
    return pa.ipc.open_stream(body).read_all(), response


def browse(node: BrokerProcess, queue: str = "orders", **query: object) -> pa.Table:
    return read(node, f"/queues/%2F/{quote(queue, safe='')}/rows", **query)[0]


def publish(channel: Any, count: int, size: int = 0) -> None:
    for number in range(count):
        properties = pika.BasicProperties(delivery_mode=PERSISTENT, headers={"n": number % 3})
        channel.basic_publish("", "orders", f"{number}".encode() + bytes(size), properties)


def test_all_ready_messages_are_rows_and_stay_in_the_queue(
    node: BrokerProcess, channel: Any, queue_type: str
) -> None:
    begin = FIRST_PLACES[queue_type]
    publish(channel, 1_000)
    table = browse(node)
    assert table["body"].to_pylist() == [f"{number}".encode() for number in range(1_000)]
    assert table["offset"].to_pylist() == list(range(begin, begin + 1_000))
    assert table["headers"].to_pylist()[4] == [("n", "1")]
    assert set(table["queue"].to_pylist()) == {"orders"}
    assert set(table["redelivered"].to_pylist()) == {False}
    method, _, body = channel.basic_get("orders")
    assert (method.redelivered, method.message_count, body) == (False, 999, b"0")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_rows_can_be_compressed(node: BrokerProcess, channel: Any, compression: str) -> None:
    publish(channel, 300, size=1_000)
    plain, _ = read(node, "/queues/%2F/orders/rows")
    packed, _ = read(node, "/queues/%2F/orders/rows", compression=compression)
    assert packed.equals(plain)


def test_a_number_of_rows_from_a_position_can_be_requested(
    node: BrokerProcess, channel: Any, queue_type: str
) -> None:
    begin = FIRST_PLACES[queue_type]
    publish(channel, 600)
    table = browse(node, first=begin + 10, count=500, columns="offset")
    assert table.to_pydict() == {"offset": list(range(begin + 10, begin + 510))}
    assert browse(node, first=begin + 600).num_rows == 0
    assert browse(node, count=0).num_rows == 0


def test_rows_are_limited_by_bytes(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 600, size=97)
    assert browse(node, max_bytes=98 * 10, columns="offset").num_rows == 10
    assert browse(node, max_bytes=0, columns="offset").num_rows == 1
    assert browse(node, max_bytes=980 + 99 * 90 + 100 * 251 - 1, columns="body").num_rows == 350
    assert browse(node, max_bytes=1_000_000, columns="body").num_rows == 600


def test_only_rows_published_with_the_given_address_are_returned(node: BrokerProcess, channel: Any) -> None:
    channel.exchange_declare("shop", "fanout")
    channel.queue_bind("orders", "shop")
    publish(channel, 3)
    for key in ("a", "b", "c", "a"):
        channel.basic_publish("shop", key, key.encode())
    assert browse(node, routing_key="a")["body"].to_pylist() == [b"a", b"a"]
    assert browse(node, routing_key=["b", "c"], exchange="shop")["body"].to_pylist() == [b"b", b"c"]
    assert browse(node, exchange="")["body"].to_pylist() == [b"0", b"1", b"2"]
    assert browse(node, exchange="shop", count=3)["body"].to_pylist() == [b"a", b"b", b"c"]
    channel.exchange_delete("shop")


def test_earlier_deliveries_are_shown(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 2)
    method, _, _ = channel.basic_get("orders")
    channel.basic_nack(method.delivery_tag)
    channel.queue_declare("orders", passive=True)
    assert browse(node)["redelivered"].to_pylist() == [True, False]


@pytest.mark.parametrize(
    "query",
    ["columns=nothing", "columns=", "compression=gzip", "first=-1", "count=x", "max_bytes=1e3",
     "exchange=" + "x" * 256, "first=9223372036854775808"],
)  # fmt: skip
def test_invalid_requests_are_refused_with_the_reason(node: BrokerProcess, channel: Any, query: str) -> None:
    status, body = get(node, f"/api/warren/queues/%2F/orders/rows?{query}")
    assert status == 400
    assert json.loads(body)["reason"]


def test_a_missing_queue_is_not_found(node: BrokerProcess) -> None:
    assert get(node, "/api/warren/queues/%2F/none/rows")[0] == 404


def test_rows_require_read_permission(node: BrokerProcess, channel: Any) -> None:
    guest = HttpClient(node)
    guest.ask("PUT /users/blind", {"password": "x", "tags": "management"})
    guest.ask("PUT /permissions/%2F/blind", {"configure": ".*", "write": ".*", "read": "^other$"})
    assert HttpClient(node, "blind:x").status("GET /warren/queues/%2F/orders/rows") == 401
    guest.ask("DELETE /users/blind")


def test_head_answers_without_rows(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 3)
    answer = HttpClient(node).ask("HEAD /warren/queues/%2F/orders/rows")
    assert (answer.status, answer.value) == (200, None)


def test_a_reader_that_does_not_read_takes_bounded_memory(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 400, size=100_000)
    assert browse(node, columns="offset").num_rows == 400
    before = resident(node)
    readers = [stalled(node) for _ in range(8)]
    # Other requests are answered meanwhile, and not all rows of the eight readers are in memory.
    assert browse(node, columns="offset").num_rows == 400
    assert resident(node) - before < 100_000_000
    for reader in readers:
        reader.close()


def test_the_number_of_concurrent_answers_is_bounded(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 200, size=100_000)
    readers = [stalled(node) for _ in range(32)]
    assert get(node, "/api/warren/queues/%2F/orders/rows")[0] == 503
    for reader in readers:
        reader.close()
    deadline = time.monotonic() + TIMEOUT_S
    while get(node, "/api/warren/queues/%2F/orders/rows?count=1")[0] == 503:
        assert time.monotonic() < deadline


def stalled(node: BrokerProcess) -> socket.socket:
    """A reader that has requested all rows, and reads only the beginning of the answer."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    reader.settimeout(TIMEOUT_S)
    reader.connect(("127.0.0.1", node.ports["http"]))
    lines = ["GET /api/warren/queues/%2F/orders/rows HTTP/1.1", "host: x"]
    lines += [f"{name}: {value}" for name, value in AUTHORIZATION.items()]
    reader.sendall("\r\n".join([*lines, "", ""]).encode())
    assert reader.recv(100).startswith(b"HTTP/1.1 200")
    return reader


def resident(node: BrokerProcess) -> int:
    """The resident memory of the broker in bytes."""
    pages = int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_without_pyarrow_the_answer_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with broker(PYTHONPATH=path) as node:
        HttpClient(node).ask("PUT /queues/%2F/q", {})
        status, reason = HttpClient(node).refusal("GET /warren/queues/%2F/q/rows")
        assert status == 501
        assert "pyarrow" in str(reason)
