"""Confirmed messages survive kill -9 and a regular stop."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.channels import channel_of
from tests.integration.faults import Faults
from tests.long_params import long_params

PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUEUES = {"plain": {}, "sorted": {"x-max-priority": 5}, "dying": {"x-dead-letter-exchange": "amq.fanout"}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Definitions that are loaded at each start."""
    (tmp_path / "definitions.json").write_text(
        json.dumps(
            {
                "vhosts": [{"name": "/"}],
                "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
                "permissions": [
                    {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
                ],
                "queues": [
                    {
                        "name": name, "vhost": "/", "durable": True, "auto_delete": False,
                        "arguments": arguments,
                    }
                    for name, arguments in QUEUES.items()
                ],
                "bindings": [
                    {
                        "source": "amq.fanout", "vhost": "/", "destination": "plain",
                        "destination_type": "queue", "routing_key": "", "arguments": {},
                    }
                ],
            }
        )
    )  # fmt: skip
    path = tmp_path / "warren.conf"
    path.write_text(f"load_definitions = {tmp_path / 'definitions.json'}\n")
    return path


@contextmanager
def started(
    tmp_path: Path, config: Path, **environment: str
) -> Iterator[tuple[BrokerProcess, BlockingChannel]]:
    """A broker on an existing data directory, and a channel with confirms."""
    with broker("--data-dir", str(tmp_path / "data"), config=config, **environment) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        channel.confirm_delivery()
        yield node, channel


def taken(channel: BlockingChannel, queue: str) -> list[tuple[str, bool]]:
    """All messages in `queue`: body, and whether it is redelivered."""
    found = []
    while True:
        method, _, body = channel.basic_get(queue)
        if method is None:
            return found
        found.append((body.decode(), method.redelivered))


def end(node: BrokerProcess, how: signal.Signals) -> None:
    node.process.send_signal(how)
    node.process.wait(15)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_confirmed_and_unacknowledged_messages_are_recovered_in_order(
    tmp_path: Path, config: Path, how: signal.Signals
) -> None:
    with started(tmp_path, config) as (node, channel):
        for number in range(20):
            channel.basic_publish("", "plain", b"%d" % number, PERSISTENT)
        channel.basic_publish("", "plain", b"transient", pika.BasicProperties(delivery_mode=1))
        tags = [channel.basic_get("plain")[0].delivery_tag for _ in range(6)]
        for tag in (tags[0], tags[1], tags[4]):
            channel.basic_ack(tag)
        # Confirmed after the acknowledgements, so those are durable as well.
        channel.basic_publish("", "plain", b"last", PERSISTENT)
        end(node, how)
    with started(tmp_path, config) as (node, channel):
        expected = [(str(number), number < 6) for number in (2, 3, 5, *range(6, 20))]
        assert taken(channel, "plain") == [*expected, ("last", False)]
        # Confirmed after the deliveries, so it is durable that they were made.
        channel.basic_publish("", "sorted", b"", PERSISTENT)
        end(node, how)
    with started(tmp_path, config) as (_, channel):
        assert [redelivered for _, redelivered in taken(channel, "plain")] == [True] * 18


def test_priorities_dead_letters_and_transactions_survive(tmp_path: Path, config: Path) -> None:
    with started(tmp_path, config) as (node, channel):
        for number in range(6):
            properties = pika.BasicProperties(delivery_mode=2, priority=number % 3)
            channel.basic_publish("", "sorted", b"%d" % number, properties)
        channel.basic_publish("", "dying", b"dead", PERSISTENT)
        method, _, _ = channel.basic_get("dying")
        channel.basic_reject(method.delivery_tag, requeue=False)
        transaction = channel.connection.channel()
        transaction.tx_select()
        transaction.basic_publish("", "dying", b"committed", PERSISTENT)
        transaction.tx_commit()
        transaction.basic_publish("", "dying", b"not committed", PERSISTENT)
        end(node, signal.SIGKILL)
    with started(tmp_path, config) as (_, channel):
        assert taken(channel, "sorted") == [(body, False) for body in "251403"]
        assert taken(channel, "dying") == [("committed", False)]
        _, properties, body = channel.basic_get("plain")
        assert body == b"dead"
        assert properties.headers["x-death"][0]["reason"] == "rejected"


def test_purged_and_expired_messages_do_not_return(tmp_path: Path, config: Path) -> None:
    with started(tmp_path, config) as (node, channel):
        channel.basic_publish("", "plain", b"purged", PERSISTENT)
        channel.queue_purge("plain")
        channel.basic_publish("", "plain", b"kept", PERSISTENT)
        end(node, signal.SIGKILL)
    with started(tmp_path, config) as (_, channel):
        assert taken(channel, "plain") == [("kept", False)]


def test_a_ttl_that_was_set_later_deletes_nothing_at_the_next_start(tmp_path: Path, config: Path) -> None:
    policy = {"pattern": "^plain$", "definition": {"message-ttl": 1}, "apply-to": "queues"}
    with started(tmp_path, config) as (node, channel):
        channel.basic_publish("", "plain", b"before", PERSISTENT)
        api = HttpClient(node)
        assert api.status("PUT /policies/%2F/brief", policy) == 201
        api.close()
        channel.basic_publish("", "plain", b"behind", PERSISTENT)
        end(node, signal.SIGKILL)
    with started(tmp_path, config) as (_, channel):
        assert taken(channel, "plain") == [("before", False)]


def test_a_restart_preserves_ready_and_unacknowledged_messages_and_their_order(
    tmp_path: Path, config: Path
) -> None:
    # More than a queue may have in memory, in two queues at once.
    filling = "." * 100_000
    count = 250
    with started(tmp_path, config) as (node, channel):
        channel.queue_bind("sorted", "amq.fanout", "")
        for number in range(count):
            properties = pika.BasicProperties(delivery_mode=2, priority=number % 3)
            channel.basic_publish("amq.fanout", "", (str(number) + filling).encode(), properties)
        ready = {
            "plain": list(range(count)),
            "sorted": sorted(range(count), key=lambda number: (-(number % 3), number)),
        }
        out = {}
        for queue, order in ready.items():
            tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(60)]
            for tag in tags[::2]:
                channel.basic_ack(tag)
            for tag in tags[1::4]:
                channel.basic_nack(tag, requeue=True)
            out[queue] = set(order[1:60:2])
            ready[queue] = [number for number in order if number not in order[:60:2]]
        # The broker has processed all this, and nothing else, when it stops.
        channel.queue_declare("plain", passive=True)
        assert node.stop() == 0
    for _ in range(2):
        with started(tmp_path, config) as (node, channel):
            for queue, order in ready.items():
                found = [(int(body.rstrip(".")), was_out) for body, was_out in taken(channel, queue)]
                assert found == [(number, number in out[queue]) for number in order]
            out = {queue: set(order) for queue, order in ready.items()}
            assert node.stop() == 0


def test_all_files_of_a_broker_are_accessible_by_their_owner_only(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log" / "warren.log"
    config = tmp_path / "warren.conf"
    config.write_text(f"log.dir = {log.parent}\nlog.file = {log.name}\n")
    with broker("--data-dir", str(data), config=config) as node:
        with channel_of(node) as channel:
            channel.queue_declare("q", durable=True)
            channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
            for queue in ("q", "s"):
                channel.basic_publish("", queue, b"kept", PERSISTENT)
        node.stop()
    found = {path: path.stat().st_mode & 0o777 for folder in (data, log.parent) for path in folder.rglob("*")}
    assert len(found) > 5
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


@pytest.mark.parametrize("queue", ["plain", *long_params("sorted")])
@pytest.mark.parametrize("no_ack", [False, True])
def test_messages_delivered_before_a_kill_are_marked_as_redelivered(
    tmp_path: Path, config: Path, faults: Faults, queue: str, no_ack: bool
) -> None:
    """This includes messages delivered while the disk was busy, when deliveries could not be written."""
    seen: set[str] = set()
    data = tmp_path / "data"
    with started(tmp_path, config, **faults.environment) as (node, channel), ExitStack() as held:
        writing = channel.connection.channel()
        for number in range(1_000):
            properties = pika.BasicProperties(delivery_mode=2, priority=number % 3)
            writing.basic_publish("", queue, b"%d" % number, properties)
        # Confirmed after the others, so those are durable as well.
        channel.basic_publish("", queue, b"last", PERSISTENT)
        faults.set(f"fdatasync hang 0 {data}/vhosts/")
        held.enter_context(faults.held())
        writing.basic_publish("", "dying", b"", PERSISTENT)
        # The answer to this request means that the message was delivered.
        writing.queue_declare(queue, passive=True)

        def take(at: BlockingChannel, method: Basic.Deliver, _: object, body: bytes) -> None:
            seen.add(body.decode())
            if not no_ack:
                at.basic_ack(method.delivery_tag)
            if len(seen) == 300:
                node.process.kill()

        channel.basic_qos(prefetch_count=100)
        channel.basic_consume(queue, take, auto_ack=no_ack)
        with pytest.raises(pika.exceptions.AMQPError):
            channel.start_consuming()
    with started(tmp_path, config) as (_, channel):
        back = dict(taken(channel, queue))
        assert len(back) == 1_001
        assert not [body for body in seen if not back[body]]
        if not no_ack:
            wrongly = [body for body, redelivered in back.items() if redelivered and body not in seen]
            # Each write doubles the noted position, plus a prefetch count ahead.
            assert len(wrongly) <= len(seen) + 2 * 100
