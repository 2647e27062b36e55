"""Streams as applications use them: repeated reads, kills, and retention by age or size."""

import datetime
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker
from pika.spec import Basic
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.channels import channel_of
from tests.patience import patient

STREAM = {"x-queue-type": "stream"}


@contextmanager
def started(folder: Path) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(folder / "data")) as node:
        yield node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with started(tmp_path_factory.mktemp("streams")) as node:
        yield node


@pytest.fixture
def channel(node: BrokerProcess) -> Iterator[BlockingChannel]:
    with channel_of(node) as channel:
        yield channel


def declare(channel: BlockingChannel, name: str, count: int = 0, **more: Any) -> None:
    channel.queue_declare(name, durable=True, arguments={**STREAM, **more})
    for number in range(count):
        channel.basic_publish("", name, b"%d" % number)


def read(
    node: BrokerProcess, name: str, count: int, start: Any = "first", **more: Any
) -> list[tuple[int, bytes]]:
    """Offset and body of `count` messages from `start` on."""
    with channel_of(node) as channel:
        channel.basic_qos(prefetch_count=100)
        found: list[tuple[int, bytes]] = []

        def take(_: object, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes) -> None:
            found.append((properties.headers["x-stream-offset"], body))
            channel.basic_ack(method.delivery_tag)

        channel.basic_consume(name, take, arguments={"x-stream-offset": start, **more})
        until = time.monotonic() + patient(20)
        while len(found) < count:
            assert time.monotonic() < until, f"{len(found)} of {count} were received"
            channel.connection.process_data_events(0.1)
        return found[:count]


def numbered(first: int, end: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(first, end)]


def test_a_stream_can_be_read_repeatedly_from_any_offset(
    node: BrokerProcess, channel: BlockingChannel
) -> None:
    declare(channel, "anywhere", 500)
    for _ in range(2):
        assert read(node, "anywhere", 500) == numbered(0, 500)
    assert read(node, "anywhere", 10, 490) == numbered(490, 500)
    assert read(node, "anywhere", 500, "1h") == numbered(0, 500)
    assert read(node, "anywhere", 500, datetime.datetime(2020, 1, 1)) == numbered(0, 500)
    assert read(node, "anywhere", 1, "last")[0][0] > 0
    assert channel.queue_declare("anywhere", passive=True).method.message_count == 500


def test_a_consumer_receives_later_messages(channel: BlockingChannel) -> None:
    declare(channel, "later", 3)
    channel.basic_qos(prefetch_count=10)
    got: list[bytes] = []
    channel.basic_consume("later", lambda *delivery: got.append(delivery[3]))
    channel.basic_publish("", "later", b"new")
    until = time.monotonic() + patient(20)
    while not got and time.monotonic() < until:
        channel.connection.process_data_events(0.1)
    assert got == [b"new"]


def test_an_exchange_routes_a_message_to_a_stream_and_a_queue(
    node: BrokerProcess, channel: BlockingChannel
) -> None:
    declare(channel, "both")
    channel.queue_declare("beside", durable=True)
    for queue in ("both", "beside"):
        channel.queue_bind(queue, "amq.fanout")
    channel.basic_publish("amq.fanout", "key", b"body", pika.BasicProperties(delivery_mode=2))
    assert channel.basic_get("beside", auto_ack=True)[2] == b"body"
    assert read(node, "both", 1) == [(0, b"body")]


def test_a_stream_can_receive_dead_letters(node: BrokerProcess, channel: BlockingChannel) -> None:
    declare(channel, "graves")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves", "x-message-ttl": 0}
    channel.queue_declare("short", arguments=arguments)
    channel.basic_publish("", "short", b"late")
    assert read(node, "graves", 1) == [(0, b"late")]


def test_a_filter_selects_messages(node: BrokerProcess, channel: BlockingChannel) -> None:
    declare(channel, "filtered")
    for number, region in enumerate(("eu", "us", "eu", None, "us")):
        headers = {} if region is None else {"x-stream-filter-value": region}
        channel.basic_publish("", "filtered", b"%d" % number, pika.BasicProperties(headers=headers))
    assert read(node, "filtered", 2, **{"x-stream-filter": "us"}) == [(1, b"1"), (4, b"4")]
    both = {"x-stream-filter": ["us"], "x-stream-match-unfiltered": True}
    assert read(node, "filtered", 3, **both) == [(1, b"1"), (3, b"3"), (4, b"4")]


RETURNS: list[Callable[[BlockingChannel], object]] = [
    lambda channel: channel.basic_nack(2, multiple=True, requeue=True),
    lambda channel: channel.basic_nack(2, multiple=True, requeue=False),
    lambda channel: [channel.basic_reject(tag, requeue=True) for tag in (1, 2)],
    lambda channel: [channel.basic_reject(tag, requeue=False) for tag in (1, 2)],
    lambda channel: channel.basic_recover(True),
]


@pytest.mark.parametrize("settle", RETURNS)
def test_what_a_consumer_of_a_stream_returns_counts_as_acknowledged(
    node: BrokerProcess, settle: Callable[[BlockingChannel], object]
) -> None:
    with channel_of(node) as channel:
        channel.queue_delete("settled")
        declare(channel, "settled", 4)
        channel.basic_qos(prefetch_count=2)
        consumed = channel.consume("settled", arguments={"x-stream-offset": 0}, inactivity_timeout=20)
        assert [next(consumed)[2], next(consumed)[2]] == [b"0", b"1"]
        settle(channel)
        assert [next(consumed)[2], next(consumed)[2]] == [b"2", b"3"]


def test_basic_get_of_a_stream_closes_the_connection(node: BrokerProcess) -> None:
    with channel_of(node) as channel:
        declare(channel, "refused", 1)
        with pytest.raises(ConnectionClosedByBroker) as caught:
            channel.basic_get("refused")
    assert caught.value.reply_code == 540


def test_a_consumer_without_prefetch_is_refused(channel: BlockingChannel) -> None:
    declare(channel, "unlimited")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume("unlimited", lambda *_: None)
    assert caught.value.reply_text.endswith(
        "consumer prefetch count is not set for 'queue 'unlimited' in vhost '/''"
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_confirmed_messages_have_the_same_offsets_after_a_kill_and_a_stop(
    tmp_path: Path, how: signal.Signals
) -> None:
    with started(tmp_path) as node, channel_of(node) as channel:
        declare(channel, "kept", 300)
        node.process.send_signal(how)
        node.process.wait(15)
    with started(tmp_path) as node, channel_of(node) as channel:
        assert read(node, "kept", 300) == numbered(0, 300)
        channel.basic_publish("", "kept", b"300")
        assert read(node, "kept", 1, 300) == numbered(300, 301)


def test_a_deleted_stream_frees_its_disk_space(node: BrokerProcess, tmp_path: Path) -> None:
    with started(tmp_path) as node, channel_of(node) as channel:
        declare(channel, "large")
        for _ in range(20):
            channel.basic_publish("", "large", bytes(100_000))
        channel.queue_delete("large")
        declare(channel, "large")
        channel.basic_publish("", "large", b"new")
        assert read(node, "large", 1) == [(0, b"new")]
        files = list((tmp_path / "data").glob("vhosts/*/streams/*"))
        assert sum(path.stat().st_size for path in files) < 1_000_000


def test_a_stream_keeps_at_most_its_maximum_size(node: BrokerProcess, channel: BlockingChannel) -> None:
    small = {"x-max-length-bytes": 200_000, "x-stream-max-segment-size-bytes": 50_000}
    declare(channel, "short-lived", **small)
    for _ in range(100):
        channel.basic_publish("", "short-lived", bytes(10_000))
    until = time.monotonic() + patient(20)
    while (count := channel.queue_declare("short-lived", passive=True).method.message_count) > 30:
        assert time.monotonic() < until, f"{count} messages still exist"
        time.sleep(0.1)
    assert count >= 20
    assert read(node, "short-lived", 1)[0][0] == 100 - count
