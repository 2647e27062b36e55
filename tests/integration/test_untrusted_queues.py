"""A quorum queue whose data is damaged is down until an operator recovers it; a classic one is served."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ChannelClosedByBroker, NackError
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.test_losses import PERSISTENT, started, victim
from tests.integration.test_operator import Operator
from tests.integration.test_serve import connect

COUNT = 40
REASON = "as its data may be incomplete: 00000001.segment, byte "
CHECK = "/health/checks/quorum-queues-without-elected-leaders"


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with a flipped bit in message 20 of the queue `classic` that is also in the queue `quorum`."""
    fill(tmp_path)
    flip(victim(tmp_path, "queue"), b"020")
    with started(tmp_path) as node:
        yield node


def fill(tmp_path: Path) -> None:
    """Publish to both queues, confirmed; acknowledge the first five; and stop."""
    with started(tmp_path) as node:
        channel = connect(node.port).channel()
        channel.queue_declare("classic", durable=True)
        channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        for queue in ("classic", "quorum"):
            channel.queue_bind(queue, "amq.fanout")
        channel.confirm_delivery()
        for number in range(COUNT):
            channel.basic_publish("amq.fanout", "", b"%03d" % number + bytes(200), PERSISTENT)
        for _ in range(5):
            method, _, _ = channel.basic_get("quorum")
            channel.basic_ack(method.delivery_tag)
        node.stop()


def flip(path: Path, body: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(body + bytes(100))] ^= 1
    path.write_bytes(data)


def taken(channel: BlockingChannel, queue: str) -> list[tuple[int, bool]]:
    """The numbers of all messages of `queue`, which stay in it, and whether each is redelivered."""
    found = []
    while (got := channel.basic_get(queue))[0] is not None:
        found.append((int(got[2][:3]), got[0].redelivered))
    channel.close()
    return found


def read_until_closed(channel: BlockingChannel) -> list[int]:
    """The numbers of the messages of the quorum queue, up to the one that cannot be read."""
    seen: list[int] = []
    with suppress(AMQPError):
        while channel.is_open:
            seen.append(int(channel.basic_get("quorum")[2][:3]))
    return seen


def refused(node: BrokerProcess, use: str) -> str:
    """The reply of the broker to `use` of the quorum queue."""
    with connect(node.port) as connection:
        channel = connection.channel()
        arguments = {"x-queue-type": "quorum"}
        uses: dict[str, Callable[[], object]] = {
            "get": lambda: channel.basic_get("quorum"),
            "consume": lambda: channel.basic_consume("quorum", lambda *_: None),
            "purge": lambda: channel.queue_purge("quorum"),
            "passive": lambda: channel.queue_declare("quorum", passive=True),
            "declare": lambda: channel.queue_declare("quorum", durable=True, arguments=arguments),
        }
        with pytest.raises(ChannelClosedByBroker) as raised:
            uses[use]()
        assert raised.value.reply_code == 404
        return str(raised.value.reply_text)


def test_clients_of_the_damaged_quorum_queue_hear_why_and_those_of_a_classic_one_are_served(
    damaged: BrokerProcess,
) -> None:
    for use in ("get", "consume", "purge", "passive", "declare"):
        assert REASON in refused(damaged, use)
    with connect(damaged.port) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(NackError):
            channel.basic_publish("", "quorum", b"refused", PERSISTENT)
        channel.basic_publish("", "classic", b"040", PERSISTENT)
        numbers = [number for number, _ in taken(connection.channel(), "classic")]
    assert numbers == [number for number in range(COUNT + 1) if number != 20]


def test_the_damaged_queue_is_shown_and_recovered_with_what_is_readable(
    damaged: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{damaged.ports['http']}")
    client = HttpClient(damaged)
    line = next(line for line in damaged.lines if "queue 'quorum' in vhost '/' is down" in line)
    assert REASON in line
    queue = client.get("/queues/%2F/quorum")
    assert (queue["state"], client.get("/queues/%2F/classic")["state"]) == ("down", "running")
    [replica] = queue["replicas"]
    assert (replica["role"], replica["state"]) == ("down", "untrusted")
    assert replica["reason"].startswith("00000001.segment, byte ")
    for of in ("all-vhosts", "vhost/%2F", "all-vhosts/pattern/^quo"):
        answer = client.ask(f"GET {CHECK}/{of}")
        assert answer.status == 503
        assert [each["name"] for each in answer.value["queues"]] == ["quorum"]
    assert client.get(f"{CHECK}/all-vhosts/pattern/^other")["status"] == "ok"

    shown = Operator().asks("queues", "recover", "quorum")
    assert shown.exit_code == 1
    assert "readable: 34 messages" in shown.stderr
    assert "--accept-loss" in shown.stderr
    assert "missing: 00000001.segment, byte" in shown.stderr
    assert client.get("/queues/%2F/quorum")["state"] == "down"
    done = Operator().gets("queues", "recover", "quorum", "--accept-loss")
    assert done == "queue quorum: running with 34 messages\n"
    assert "nothing to recover" in Operator().gets("queues", "recover", "quorum")

    assert client.get(f"{CHECK}/all-vhosts")["status"] == "ok"
    expected = [(number, True) for number in range(5, COUNT) if number != 20]
    with connect(damaged.port) as connection:
        assert taken(connection.channel(), "quorum") == expected
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "quorum", b"040", PERSISTENT)
    damaged.process.kill()
    damaged.process.wait()
    # The file stays damaged, and that is accepted.
    with started(tmp_path) as again, connect(again.port) as connection:
        numbers = [number for number, _ in taken(connection.channel(), "quorum")]
        assert numbers == [*(number for number, _ in expected), COUNT]


def test_a_damaged_queue_can_be_deleted_and_declared_again(damaged: BrokerProcess) -> None:
    with connect(damaged.port) as connection:
        channel = connection.channel()
        channel.queue_delete("quorum")
        channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        channel.confirm_delivery()
        channel.basic_publish("", "quorum", b"000", PERSISTENT)
        assert taken(channel, "quorum") == [(0, False)]


def test_damage_that_is_read_while_the_broker_runs_takes_the_quorum_queue_down(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        channel = connect(node.port).channel()
        channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        channel.confirm_delivery()
        # More than a queue keeps in memory.
        filling = bytes(1_000_000)
        for number in range(COUNT):
            channel.basic_publish("", "quorum", b"%03d" % number + filling, PERSISTENT)
        [path] = [
            path
            for path in (tmp_path / "data").rglob("*.segment")
            if b"030" + bytes(100) in path.read_bytes()
        ]
        with path.open("r+b") as file:
            at = file.read().index(b"030" + bytes(100))
            file.seek(at)
            file.write(b"9")
        seen = read_until_closed(channel)
        assert seen == [*range(len(seen))]
        assert len(seen) <= 30
        node.wait_for("queue 'quorum' in vhost '/' is down")
        assert "as its data may be incomplete: " in refused(node, "get")
