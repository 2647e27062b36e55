"""Data directories of every earlier format are read completely."""

import json
import re
import signal
import tarfile
import time
from pathlib import Path

import pika
import pytest
from google_crc32c import value
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker
from tests.integration.api import HttpClient
from tests.integration.broker_process import broker, refusal
from tests.integration.test_serve import connect
from tests.long_params import long_params
from tests.patience import patient

from warren.journal.file_format import VERSION

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.tar.gz"))
DEFINITIONS = {
    "vhosts": [{"name": "/"}, {"name": "v"}],
    "users": [{"name": "keeper", "password": "kept", "tags": "administrator"}],
    "permissions": [
        {"user": "keeper", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
        for vhost in ("/", "v")
    ],
    "policies": [{"vhost": "v", "name": "short", "pattern": "^limited", "definition": {"max-length": 2}}],
}
PAUSE = "/warren/queues/v/paused/pause"
LEASES = "/warren/queues/v/leased/leases"
DAY_S = 86_400
WAIT_S_MAX = patient(10)
# The first version whose messages record that the broker dead-lettered them.
NOT_DEAD = re.compile(r"store-[12]-metadata-\d+\.tar\.gz")
DEATH = {"count": 3, "reason": "rejected", "queue": "work", "exchange": "", "routing-keys": ["work"]}
TOLD = pika.BasicProperties(delivery_mode=2, headers={"x-death": [DEATH]})
# The first version with pauses and leases.
NOT_PAUSED = ("store-1-metadata-1.tar.gz", "store-1-metadata-2.tar.gz")
NOT_LEASED = re.compile(r"store-\d+-metadata-[123]\.tar\.gz")
PROPERTIES = pika.BasicProperties(
    delivery_mode=2, content_type="text/plain", message_id="7", timestamp=1_700_000_000,
    headers={"text": "ü", "number": 2**40, "table": {"list": [True, None, 5]}},
)  # fmt: skip


def fill(data: Path, folder: Path) -> None:
    """Have two brokers, one after the other, create in `data` what the test expects; both are killed."""
    definitions = folder / "definitions.json"
    definitions.write_text(json.dumps(DEFINITIONS))
    with broker("--data-dir", str(data), WARREN_LOAD_DEFINITIONS=str(definitions)) as started:
        channel = connect(started.port, "keeper", "kept", "v").channel()
        channel.confirm_delivery()
        channel.exchange_declare("events", "topic", durable=True, arguments={"x": 1})
        channel.exchange_bind("amq.fanout", "events", "all")
        channel.queue_declare("plain", durable=True)
        channel.queue_declare("sorted", durable=True, arguments={"x-max-priority": 5})
        channel.queue_declare("limited", durable=True)
        channel.queue_declare("deleted", durable=True)
        channel.queue_bind("plain", "events", "a.#")
        for queue in ("plain", "sorted"):
            channel.queue_bind(queue, "amq.fanout", "")
        for number in range(10):
            channel.basic_publish("", "plain", b"%d" % number, PROPERTIES)
        for tag in [channel.basic_get("plain")[0].delivery_tag for _ in range(6)][::2]:
            channel.basic_ack(tag)
        for number in range(6):
            properties = pika.BasicProperties(delivery_mode=2, priority=number % 3)
            channel.basic_publish("", "sorted", b"%d" % number, properties)
        for queue, behind in (("work", "dead"), ("dead", "deader")):
            to = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": behind}
            channel.queue_declare(queue, durable=True, arguments=to)
        channel.queue_declare("deader", durable=True)
        channel.basic_publish("", "work", b"died", PROPERTIES)
        channel.basic_reject(channel.basic_get("work")[0].delivery_tag, requeue=False)
        channel.basic_publish("", "dead", b"said so", TOLD)
        channel.basic_publish("", "deleted", b"deleted", PROPERTIES)
        channel.queue_delete("deleted")
        started.process.send_signal(signal.SIGKILL)
        started.process.wait()
    with broker("--data-dir", str(data)) as started:
        channel = connect(started.port, "keeper", "kept", "v").channel()
        channel.confirm_delivery()
        channel.basic_publish("events", "all", b"in both", PROPERTIES)
        channel.basic_publish("", "plain", bytes(100_000), PROPERTIES)
        channel.queue_declare("paused", durable=True)
        channel.basic_publish("", "paused", b"later", PROPERTIES)
        HttpClient(started, "keeper:kept").ask(f"PUT {PAUSE}")
        channel.queue_declare("leased", durable=True)
        channel.basic_publish("", "leased", b"on lease", PROPERTIES)
        lease = HttpClient(started, "keeper:kept").ask(f"POST {LEASES}", {"key": "kept", "ttl": DAY_S})
        assert lease.value["messages"] == 1
        started.process.send_signal(signal.SIGKILL)
        started.process.wait()


def unpacked(fixture: Path, folder: Path) -> Path:
    """The data directory in `fixture`."""
    with tarfile.open(fixture) as archive:
        archive.extractall(folder, filter="data")
    return folder / "data"


def taken(channel: BlockingChannel, queue: str) -> list[tuple[bytes, bool]]:
    found = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append((body, method.redelivered))


def awaited(channel: BlockingChannel, queue: str) -> list[tuple[bytes, bool]]:
    """The messages of the queue, once there are any."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not (found := taken(channel, queue)):
        assert time.monotonic() < deadline
    return found


def died_again(channel: BlockingChannel) -> None:
    """Dead letters of the broker count their next death; those that a client claims do not."""
    deaths = {}
    for _ in range(2):
        channel.basic_reject(channel.basic_get("dead")[0].delivery_tag, requeue=False)
    for _ in range(2):
        _, properties, body = channel.basic_get("deader", auto_ack=True)
        deaths[body] = [death["queue"] for death in properties.headers["x-death"]]
    assert deaths == {b"died": ["dead", "work"], b"said so": ["dead"]}


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_data_directory_of_an_older_format_is_read_completely(fixture: Path, tmp_path: Path) -> None:
    data = unpacked(fixture, tmp_path)
    older = (data / "metadata" / "metadata").read_bytes()
    with broker("--data-dir", str(data)) as started:
        channel = connect(started.port, "keeper", "kept", "v").channel()
        method, properties, body = channel.basic_get("plain", auto_ack=True)
        assert (body, method.redelivered) == (b"1", True)
        assert (properties.content_type, properties.message_id) == ("text/plain", "7")
        assert (properties.timestamp, properties.headers) == (PROPERTIES.timestamp, PROPERTIES.headers)
        rest = [(b"3", True), (b"5", True), *((b"%d" % number, False) for number in range(6, 10))]
        assert taken(channel, "plain") == [*rest, (b"in both", False), (bytes(100_000), False)]
        sorted_bodies = [b"2", b"5", b"1", b"4", b"0", b"3", b"in both"]
        assert taken(channel, "sorted") == [(body, False) for body in sorted_bodies]
        # Bindings and the policy apply, and names are unchanged.
        channel.basic_publish("events", "a.b", b"bound")
        for number in range(3):
            channel.basic_publish("", "limited", b"%d" % number)
        assert taken(channel, "plain") == [(b"bound", False)]
        assert taken(channel, "limited") == [(b"1", False), (b"2", False)]
        channel.exchange_declare("events", "topic", durable=True, arguments={"x": 1})
        channel.queue_declare("sorted", durable=True, arguments={"x-max-priority": 5})
        if not NOT_DEAD.fullmatch(fixture.name):
            died_again(channel)
        if fixture.name not in NOT_PAUSED:
            assert taken(channel, "paused") == []
            assert HttpClient(started, "keeper:kept").status(f"DELETE {PAUSE}") == 204
            assert taken(channel, "paused") == [(b"later", False)]
        if not NOT_LEASED.fullmatch(fixture.name):
            # The lease expires at once, because the fixture is older than its duration.
            [lease] = HttpClient(started, "keeper:kept").get(LEASES)
            assert (lease["key"], lease["messages"], lease["state"] in ("active", "expired")) == (
                "kept", 1, True,
            )  # fmt: skip
            HttpClient(started, "keeper:kept").ask(
                f"POST /warren/leases/{lease['lease']}/settle", {"outcome": "requeue"}
            )
            assert awaited(channel, "leased") == [(b"on lease", True)]
        with pytest.raises(ChannelClosedByBroker, match="404"):
            channel.queue_declare("deleted", passive=True)
        assert not any("damaged" in line for line in started.lines)
    kept = data / "metadata" / f"metadata.{int.from_bytes(older[6:8], 'big')}"
    assert kept.name == f"metadata.{VERSION}" or kept.read_bytes() == older


@pytest.mark.parametrize("fixture", [*long_params(*FIXTURES[:-1]), FIXTURES[-1]], ids=lambda path: path.name)
def test_metadata_of_a_newer_format_are_refused_with_the_name_of_their_file(
    fixture: Path, tmp_path: Path
) -> None:
    data = unpacked(fixture, tmp_path)
    file = data / "metadata" / "metadata"
    raw = bytearray(file.read_bytes())
    raw[6:8] = (99).to_bytes(2, "big")
    raw[16:20] = value(bytes(raw[:16])).to_bytes(4, "big")
    file.write_bytes(raw)
    status, errors = refusal("--data-dir", str(data))
    assert status == 1
    assert (
        f"metadata in '{file.parent}': metadata, byte 6: format 99 is newer than" in errors.splitlines()[-1]
    )
    assert file.read_bytes() == raw
