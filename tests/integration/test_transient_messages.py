"""Transient messages beyond the memory limit, with a disk that is full or slow."""

import errno
import os
import threading
import time
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import states
from tests.integration.broker_process import BrokerProcess
from tests.integration.faults import Faults
from tests.integration.test_supervision import (
    PERSISTENT,
    config,
    confirming,
    connect,
    folder,
    metrics,
    started,
    until_logged,
)
from tests.long_params import long_params

from warren.limits import QUEUE_MEMORY_MAX, STORE_PENDING_SIZE_MAX

__all__ = ["config"]

TRANSIENT = pika.BasicProperties(delivery_mode=1)
BODY_SIZE = 100_000
# More than a queue may have in memory, and more than may wait for the disk.
COUNT = (QUEUE_MEMORY_MAX + 3 * STORE_PENDING_SIZE_MAX) // BODY_SIZE
PATIENCE_S = 30


class Publisher(threading.Thread):
    """Publishes transient messages as fast as its socket accepts them."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._connection = connect(port, vhost="a")
        self.sent = 0
        self.start()

    def run(self) -> None:
        channel = self._connection.channel()
        for number in range(COUNT):
            channel.basic_publish("", "q", b"%d," % number + bytes(BODY_SIZE), TRANSIENT)
            self.sent += 1
        self._connection.close()


def fill_memory(channel: BlockingChannel) -> None:
    """Publish transient messages until the broker writes them to disk."""
    for _ in range(QUEUE_MEMORY_MAX // BODY_SIZE + 10):
        channel.basic_publish("", "q", bytes(BODY_SIZE), TRANSIENT)


def processor_s(node: BrokerProcess) -> float:
    """The processor time that the broker has used so far."""
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("call", ["write", *long_params("open")])
def test_with_a_full_disk_publishers_of_transient_messages_wait_and_then_continue(
    tmp_path: Path, config: Path, faults: Faults, call: str
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        faults.set(f"{call} errno {errno.ENOSPC} {folder(tmp_path, 'a') / 'transient'}")
        publisher = Publisher(node.port)
        until_logged(node, "the disk is full: transient messages of vhost 'a' cannot be paged out")
        while "flow" not in states(node):
            channel.connection.sleep(0.05)
        assert b'warren_vhost_disk_full{vhost="a"} 1\n' in metrics(node)
        before, sent = processor_s(node), publisher.sent
        channel.connection.sleep(2)
        assert processor_s(node) - before < 1
        assert sent <= publisher.sent < COUNT
        # Consumers are served, also with messages that wait for the disk.
        taken = [channel.basic_get("q", auto_ack=True)[2] for _ in range(20)]
        faults.set()
        until_logged(node, "vhost 'a': messages can be written to disk again")
        publisher.join(PATIENCE_S)
        assert not publisher.is_alive()
        assert b'warren_vhost_disk_full{vhost="a"} 0\n' in metrics(node)
        taken += [channel.basic_get("q", auto_ack=True)[2] for _ in range(COUNT - 20)]
        assert [int(body.partition(b",")[0]) for body in taken] == list(range(COUNT))
        assert channel.basic_get("q")[0] is None


def test_with_a_full_disk_for_transient_messages_persistent_ones_are_confirmed(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        faults.set(f"write errno {errno.ENOSPC} {folder(tmp_path, 'a') / 'transient'}")
        fill_memory(channel)
        until_logged(node, "the disk is full")
        channel.basic_publish("", "passing", b"kept", PERSISTENT)
        assert channel.basic_get("passing")[2] == b"kept"


def test_confirms_do_not_wait_for_writes_of_transient_messages(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    delay_s = 5
    with started(tmp_path, config, **faults.environment) as node:
        faults.set(f"write delay {delay_s * 1000} {folder(tmp_path, 'a') / 'transient'}")
        fill_memory(confirming(node.port, "a"))
        begun = time.monotonic()
        for vhost in "ab":
            confirming(node.port, vhost).basic_publish("", "passing", b"", PERSISTENT)
        assert time.monotonic() - begun < delay_s / 2
