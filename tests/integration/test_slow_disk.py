"""A broker with a hanging disk: memory is bounded, and clients that do not publish are served."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pika
import pytest
from pika import BlockingConnection
from tests.integration.api import get, states
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.faults import Faults
from tests.patience import patient

from warren.limits import STORE_PENDING_SIZE_MAX

PERSISTENT = pika.BasicProperties(delivery_mode=2)
BODY = bytes(1_000_000)
COUNT = 150
WAIT_S_MAX = patient(30)


class Publisher(threading.Thread):
    """Publishes as fast as its socket allows, then closes the connection."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.sent = 0
        self.reported: list[object] = []

    def run(self) -> None:
        connection = BlockingConnection(pika.ConnectionParameters("127.0.0.1", self._port))
        connection.add_on_connection_blocked_callback(lambda *reported: self.reported.append(reported))
        channel = connection.channel()
        for _ in range(COUNT):
            channel.basic_publish("", "work", BODY, PERSISTENT)
            self.sent += 1
        connection.close()


@contextmanager
def hanging(
    tmp_path: Path, faults: Faults
) -> Iterator[tuple[BrokerProcess, Callable[[], None], BlockingConnection]]:
    """A broker whose disk hangs until it is released; 10 messages in the queue "done" are confirmed."""
    data = str(tmp_path / "data")
    with broker("--data-dir", data, **faults.environment) as node, ExitStack() as held:
        connection = BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        channel = connection.channel()
        channel.confirm_delivery()
        for name in ("done", "work"):
            channel.queue_declare(name, durable=True)
        for number in range(10):
            channel.basic_publish("", "done", str(number).encode(), PERSISTENT)
        faults.set(f"fdatasync hang 0 {data}/vhosts/")
        held.enter_context(faults.held())
        yield node, held.close, connection


def memory(node: BrokerProcess) -> int:
    """The memory of the process in bytes, without pages of files, which the system drops as it likes."""
    _, resident, shared, *_ = map(int, Path(f"/proc/{node.process.pid}/statm").read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def wait_for_flow(node: BrokerProcess, connection: BlockingConnection) -> None:
    """Wait until a connection is in the state flow."""
    for _ in range(int(WAIT_S_MAX * 20)):
        if "flow" in states(node):
            return
        connection.sleep(0.05)
    raise AssertionError(states(node))


def wait_for_rest(node: BrokerProcess, publisher: Publisher, connection: BlockingConnection) -> None:
    """Wait until the number of messages sent does not increase any more."""
    before = -1
    while publisher.sent > before:
        before = publisher.sent
        connection.sleep(0.5)


@pytest.mark.timeout(120)
def test_with_a_hanging_disk_memory_is_bounded_and_other_clients_are_served(
    tmp_path: Path, faults: Faults
) -> None:
    with hanging(tmp_path, faults) as (node, go_on, connection):
        before = memory(node)
        publisher = Publisher(node.port)
        publisher.start()
        wait_for_flow(node, connection)
        wait_for_rest(node, publisher, connection)
        assert publisher.sent < COUNT
        # Pending messages, messages being written, as bytes and as one buffer, and held frames.
        assert memory(node) - before < 4 * STORE_PENDING_SIZE_MAX < COUNT * len(BODY) / 2

        channel = connection.channel()
        taken = []
        for _ in range(10):
            method, _, body = channel.basic_get("done")
            assert method is not None
            channel.basic_ack(method.delivery_tag)
            taken.append(body)
        assert taken == [str(number).encode() for number in range(10)]
        assert channel.queue_declare("done", passive=True).method.message_count == 0
        assert channel.queue_declare("", exclusive=True).method.queue
        assert json.loads(get(node, "/api/health/checks/alarms")[1]) == {"status": "ok"}

        go_on()
        publisher.join(WAIT_S_MAX)
        assert not publisher.is_alive()
        assert publisher.reported == [], "clients are not notified of a slow disk"
        assert channel.queue_declare("work", passive=True).method.message_count == COUNT
        connection.close()


def test_confirms_arrive_when_the_disk_continues_and_not_before(tmp_path: Path, faults: Faults) -> None:
    with hanging(tmp_path, faults) as (node, go_on, connection):
        publisher = Publisher(node.port)
        publisher.start()
        wait_for_flow(node, connection)
        confirmed: list[int] = []

        def publish_safely() -> None:
            own = BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
            channel = own.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "work", b"safe", PERSISTENT)
            confirmed.append(1)
            own.close()

        other = threading.Thread(target=publish_safely, daemon=True)
        other.start()
        other.join(1)
        assert confirmed == []
        go_on()
        other.join(WAIT_S_MAX)
        publisher.join(WAIT_S_MAX)
        assert confirmed == [1]
        connection.close()
