"""Requests that arrive before the group of a quorum queue has opened wait until its messages are there."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.faults import Faults
from tests.integration.test_serve import connect

QUEUE = "/warren/queues/%2F/jobs"
# How long each sync takes, of which a group needs one before it opens.
SYNC_MS = 800


@contextmanager
def opening(tmp_path: Path, faults: Faults) -> Iterator[BrokerProcess]:
    """A broker that has just started, whose quorum queue `jobs` with 3 messages has not opened yet."""
    data = str(tmp_path / "data")
    with broker("--data-dir", data) as node, connect(node.port) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("jobs", durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_declare("others", durable=True)
        for number in range(3):
            channel.basic_publish("", "jobs", b"%d" % number)
    faults.set(f"fdatasync delay {SYNC_MS} {data}/vhosts/")
    with broker("--data-dir", data, **faults.environment) as node:
        yield node


def peeked(client: HttpClient) -> int:
    return len(client.get(f"{QUEUE}/messages")["messages"])


def previewed(client: HttpClient) -> int:
    preview = client.ask(f"POST {QUEUE}/move", {"destination": "others", "dry_run": True}).value
    count: int = preview["examined"]
    return count


def dead_letters_examined(client: HttpClient) -> int:
    found = client.get(f"{QUEUE}/dead-letters")
    count: int = found["examined"]
    return count


def test_what_only_reads_waits_for_the_group(tmp_path: Path, faults: Faults) -> None:
    reads = (peeked, previewed, dead_letters_examined)
    with opening(tmp_path, faults) as node, ThreadPoolExecutor(len(reads)) as pool:
        # All at the same time, so that none of them waits for another one.
        found = [pool.submit(read, HttpClient(node)) for read in reads]
        assert [each.result() for each in found] == [3, 3, 3]


def leased(node: BrokerProcess) -> int:
    answer = HttpClient(node).ask(f"POST {QUEUE}/leases", {"key": "k"})
    count: int = answer.value["messages"]
    return count


def purged(node: BrokerProcess) -> int:
    with connect(node.port) as connection:
        count: int = connection.channel().queue_purge("jobs").method.message_count
        return count


@pytest.mark.parametrize("take", [leased, purged])
def test_what_takes_messages_waits_for_the_group(
    tmp_path: Path, faults: Faults, take: Callable[[BrokerProcess], int]
) -> None:
    with opening(tmp_path, faults) as node:
        assert take(node) == 3
