"""Unreadable or unwritable sectors cost the messages in them, and nothing else."""

import errno
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import states
from tests.integration.broker_process import BrokerProcess
from tests.integration.faults import Faults
from tests.integration.test_durability import taken
from tests.integration.test_supervision import (
    PERSISTENT,
    config,
    confirming,
    end,
    folder,
    metrics,
    started,
    until_logged,
)
from tests.long_params import long_params

__all__ = ["config"]

FIRST = "00000001.segment"
# Larger than a sector, so that a sector lies in the middle of a message.
FILLING = "." * 20_000


def filled(tmp_path: Path, config: Path) -> bytes:
    """Three messages in one segment of a killed broker; returns the contents of the file."""
    with started(tmp_path, config) as node:
        channel = confirming(node.port, "a")
        for body in ("before", "within", "behind"):
            channel.basic_publish("", "q", (body + FILLING).encode(), PERSISTENT)
        end(node)
    return (folder(tmp_path, "a") / FIRST).read_bytes()


def names_in(node: BrokerProcess) -> list[str]:
    """The messages of the queue, each without its padding; they stay in the queue."""
    channel = confirming(node.port, "a")
    found = [body.removesuffix(FILLING) for body, _ in taken(channel, "q")]
    channel.connection.close()
    return found


def damage_in(node: BrokerProcess) -> list[str]:
    """The damage in the log, by byte offset."""
    lines = [line for line in node.lines if "vhost 'a' is running without damaged data" in line]
    return [line.partition(f"{FIRST}, byte ")[2] for line in lines]


def test_messages_around_an_unreadable_sector_are_recovered(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    at = filled(tmp_path, config).index(b"within") + 10_000
    path = folder(tmp_path, "a") / FIRST
    faults.set(f"read errno {errno.EIO} {path} {at}")
    with started(tmp_path, config, **faults.environment) as node:
        sector = at - at % 4096
        assert f"{sector}: 4096 bytes cannot be read: Input/output error" in damage_in(node)[0]
        assert b'warren_vhost_damaged_records{vhost="a"} 2\n' in metrics(node)
        assert names_in(node) == ["before", "behind"]
        confirming(node.port, "a").basic_publish("", "q", b"later", PERSISTENT)
        end(node)
    with started(tmp_path, config, **faults.environment) as node:
        assert names_in(node) == ["before", "behind", "later"]
        end(node)
    # The file was left in place: when the sector is readable again, so are its messages.
    faults.set()
    with started(tmp_path, config, **faults.environment) as node:
        assert names_in(node) == ["before", "within", "behind", "later"]


@pytest.mark.parametrize("call", ["read", *long_params("open")])
def test_an_entirely_unreadable_segment_is_reported_and_the_vhost_starts(
    tmp_path: Path, config: Path, faults: Faults, call: str
) -> None:
    filled(tmp_path, config)
    faults.set(f"{call} errno {errno.EIO} {folder(tmp_path, 'a') / FIRST}")
    with started(tmp_path, config, **faults.environment) as node:
        assert damage_in(node)[0].startswith("0: 16777216 bytes cannot be read: Input/output error")
        confirming(node.port, "a").basic_publish("", "q", b"later", PERSISTENT)
        end(node)
    with started(tmp_path, config, **faults.environment) as node:
        assert names_in(node) == ["later"]


def test_a_last_segment_that_cannot_be_sealed_is_left_in_place(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    before = filled(tmp_path, config)
    faults.set(f"write errno {errno.EIO} {folder(tmp_path, 'a') / FIRST}")
    for more in (1, 2):
        with started(tmp_path, config, **faults.environment) as node:
            assert len(damage_in(node)) == 1
            channel = confirming(node.port, "a")
            channel.basic_publish("", "q", b"later", PERSISTENT)
            assert names_in(node) == ["before", "within", "behind", *["later"] * more]
            end(node)
        assert (folder(tmp_path, "a") / FIRST).read_bytes() == before


def numbers_in(channel: BlockingChannel) -> Iterator[int]:
    """The messages that are delivered, until there are no more."""
    while True:
        method, _, body = channel.basic_get("q")
        if method is None:
            return
        yield int(body.rstrip(b"\0"))


def get_all(channel: BlockingChannel, found: list[int]) -> None:
    """Get messages repeatedly, also when there are none."""
    while True:
        found.extend(numbers_in(channel))


def consume_all(channel: BlockingChannel, found: list[int]) -> None:
    """Consume everything without prefetch."""
    for _, _, body in channel.consume("q"):
        found.append(int(body.rstrip(b"\0")))


@pytest.mark.parametrize("take_all", [consume_all, *long_params(get_all)])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_sector_that_becomes_unreadable_restarts_the_vhost_without_its_messages(
    tmp_path: Path,
    config: Path,
    faults: Faults,
    is_damaged: bool,
    take_all: Callable[[BlockingChannel, list[int]], None],
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        channel = confirming(node.port, "a")
        # So many messages that those in the second segment are on disk only.
        for number in range(40):
            channel.basic_publish("", "q", b"%d" % number + bytes(1_000_000), PERSISTENT)
        path = folder(tmp_path, "a") / "00000002.segment"
        at = path.read_bytes().index(b"25" + bytes(1_000_000)) + 500_000
        if is_damaged:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(b"1")
        else:
            faults.set(f"read errno {errno.EIO} {path} {at}")
        found: list[int] = []
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            take_all(channel, found)
        assert closed.value.args[0] == 320
        assert found == list(range(len(found)))
        assert ("damaged" if is_damaged else "Input/output error") in until_logged(node, "'a' failed")
        assert path.name in until_logged(node, "vhost 'a' is running without damaged data")
        until_logged(node, "vhost 'a' was restarted")
        rest = list(numbers_in(confirming(node.port, "a")))
        assert rest == [number for number in range(40) if number != 25]
        end(node)
    if not is_damaged:
        with started(tmp_path, config) as node:
            assert list(numbers_in(confirming(node.port, "a"))) == list(range(40))


def test_requeueing_an_unreadable_message_leaves_nothing_behind(
    tmp_path: Path, config: Path, faults: Faults
) -> None:
    with started(tmp_path, config, **faults.environment) as node:
        holder, waiting = confirming(node.port, "a"), confirming(node.port, "a")
        for number in range(40):
            holder.basic_publish("", "q", b"%d" % number + bytes(1_000_000), PERSISTENT)
        other = holder.connection.channel()
        assert [int(body.rstrip(b"\0")) for _, _, body in islice(other.consume("q"), 40)] == list(range(40))
        path = folder(tmp_path, "a") / "00000002.segment"
        at = path.read_bytes().index(b"25" + bytes(1_000_000)) + 500_000
        faults.set(f"read errno {errno.EIO} {path} {at}")
        found: list[int] = []
        waiting.basic_consume("q", lambda _channel, _method, _properties, body: found.append(len(body)))
        # Messages that are complete in memory, then one that is not: all are delivered to the waiting
        # consumer.
        holder.connection.close()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            waiting.start_consuming()
        assert closed.value.args[0] == 320
        until_logged(node, "vhost 'a' was restarted")
        rest = list(numbers_in(channel := confirming(node.port, "a")))
        assert rest == [number for number in range(40) if number != 25]
        assert states(node) == ["running"]
        channel.connection.close()
        end(node)
