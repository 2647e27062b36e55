"""Streams as rows over HTTP: first and last offset, and any range, repeatedly."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_rows import read
from tests.patience import patient

COUNT = 1_500
STREAM = "/warren/streams/%2F/events"


@pytest.fixture
def channel(node: BrokerProcess) -> Iterator[Any]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        declare(channel)
        yield channel
        channel.queue_delete("events")


def declare(channel: Any, **arguments: object) -> None:
    channel.queue_declare("events", durable=True, arguments={"x-queue-type": "stream", **arguments})


def publish(node: BrokerProcess, channel: Any, count: int = COUNT, size: int = 0) -> None:
    before = HttpClient(node).get(STREAM)["committed_offset"]
    for number in range(count):
        channel.basic_publish("", "events", b"%d" % (before + number) + bytes(size))
    deadline = time.monotonic() + patient(30)
    while HttpClient(node).get(STREAM)["committed_offset"] < before + count:
        assert time.monotonic() < deadline


def numbers(node: BrokerProcess, **query: object) -> list[int]:
    table, _ = read(node, "/streams/%2F/events/rows", **query)
    offsets: list[int] = table["offset"].to_pylist()
    assert [int(body) for body in table["body"].to_pylist()] == offsets
    return offsets


def test_any_range_can_be_read_repeatedly(node: BrokerProcess, channel: Any) -> None:
    publish(node, channel)
    assert numbers(node) == numbers(node, start=0) == list(range(COUNT))
    for start, end in ((0, 1), (700, 900), (COUNT - 1, COUNT), (5, 5), (COUNT, COUNT + 5), (900, 800)):
        assert numbers(node, start=start, end=end) == list(range(start, min(end, COUNT)))
    table, response = read(node, "/streams/%2F/events/rows", start=10, end=COUNT + 100, columns="offset")
    assert response.headers["warren-next-offset"] == str(COUNT)
    assert table.num_rows == COUNT - 10


def test_a_stream_shows_its_first_and_last_offset(node: BrokerProcess, channel: Any) -> None:
    assert HttpClient(node).get(STREAM)["committed_offset"] == 0
    before = int(time.time() * 1000)
    publish(node, channel)
    shown = HttpClient(node).get(STREAM)
    assert (shown["name"], shown["vhost"], shown["first_offset"], shown["committed_offset"]) == (
        "events",
        "/",
        0,
        COUNT,
    )
    [segment] = shown["segments"]
    assert (segment["first"], segment["end"], segment["is_sealed"]) == (0, COUNT, False)
    assert before - 1_000 <= segment["first_time"] <= segment["last_time"] <= int(time.time() * 1000) + 1_000
    assert HttpClient(node).get(f"{STREAM}?timestamp=0")["offset"] == 0
    assert HttpClient(node).get(f"{STREAM}?timestamp={segment['last_time'] + 5_000}")["offset"] == COUNT


def test_rows_are_limited_by_bytes(node: BrokerProcess, channel: Any) -> None:
    publish(node, channel, 10)
    table, response = read(node, "/streams/%2F/events/rows", max_bytes=5)
    assert table["offset"].to_pylist() == [0, 1, 2, 3, 4]
    assert "warren-next-offset" not in response.headers
    assert read(node, "/streams/%2F/events/rows", start=4, max_bytes=0)[0]["offset"].to_pylist() == [4]


def test_only_rows_published_with_the_given_address_are_returned(node: BrokerProcess, channel: Any) -> None:
    channel.exchange_declare("shop", "fanout")
    channel.queue_bind("events", "shop")
    publish(node, channel, 3)
    for key in "abcab":
        channel.basic_publish("shop", key, key.encode())
    deadline = time.monotonic() + patient(30)
    while HttpClient(node).get(STREAM)["committed_offset"] < 8:
        assert time.monotonic() < deadline
    rows = "/streams/%2F/events/rows"
    assert read(node, rows, routing_key="a")[0]["offset"].to_pylist() == [3, 6]
    assert read(node, rows, routing_key=["b", "c"])[0]["body"].to_pylist() == [b"b", b"c", b"b"]
    assert read(node, rows, exchange="")[0]["offset"].to_pylist() == [0, 1, 2]
    assert read(node, rows, exchange="shop", routing_key="none")[0].num_rows == 0
    channel.exchange_delete("shop")


def test_a_redeclared_stream_is_a_different_one(node: BrokerProcess, channel: Any) -> None:
    epoch = HttpClient(node).get(STREAM)["epoch"]
    assert get(node, f"/api{STREAM}/rows?epoch={epoch}")[0] == 200
    channel.queue_delete("events")
    declare(channel)
    other = HttpClient(node).get(STREAM)["epoch"]
    assert other != epoch
    assert HttpClient(node).status(f"GET {STREAM}/rows?epoch={epoch}") == 409


def test_a_queue_that_is_not_a_stream_is_not_found(node: BrokerProcess, channel: Any) -> None:
    channel.queue_declare("classic")
    assert HttpClient(node).status("GET /warren/streams/%2F/classic") == 404
    assert HttpClient(node).status("GET /warren/streams/%2F/classic/rows") == 404
    assert HttpClient(node).status("GET /warren/streams/%2F/none") == 404
    assert HttpClient(node).status("POST /warren/queues/%2F/events/leases", {"key": "k"}) == 400
    channel.queue_delete("classic")


def test_reading_requires_permission_on_the_stream(node: BrokerProcess, channel: Any) -> None:
    guest = HttpClient(node)
    guest.ask("PUT /users/blind", {"password": "x", "tags": "management"})
    guest.ask("PUT /permissions/%2F/blind", {"configure": ".*", "write": ".*", "read": "^other$"})
    blind = HttpClient(node, "blind:x")
    assert [blind.status(f"GET {path}") for path in (STREAM, f"{STREAM}/rows")] == [401, 401]
    guest.ask("DELETE /users/blind")


def test_rows_removed_by_retention_are_gone_and_the_first_offset_is_returned(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        limits = {"x-max-length-bytes": 1_000_000, "x-stream-max-segment-size-bytes": 300_000}
        declare(channel, **limits)
        publish(node, channel, 300, size=10_000)
        deadline = time.monotonic() + patient(60)
        while not HttpClient(node).get(STREAM)["first"]:
            publish(node, channel, 30, size=10_000)
            assert time.monotonic() < deadline
        first, status = 0, 410
        while status == 410:
            # More may be removed meanwhile.
            status, body = get(node, f"/api{STREAM}/rows?start={first}&columns=offset")
            if status == 410:
                gone = json.loads(body)
                assert gone["error"] == "gone"
                assert gone["first"] > first
                first = gone["first"]
        assert status == 200
        assert first > 0
        assert pa.ipc.open_stream(body).read_all()["offset"].to_pylist()[0] == first
        connection.close()


def test_equal_rows_are_returned_after_a_crash(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        declare(connection.channel())
        publish(node, connection.channel())
        before, _ = read(node, "/streams/%2F/events/rows")
        epoch = HttpClient(node).get(STREAM)["epoch"]
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node:
        assert read(node, "/streams/%2F/events/rows", epoch=epoch)[0].equals(before)
