"""`warren move-from` against RabbitMQ: each step, its undo, and every message counted."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from click.testing import CliRunner
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import channel_at, eventually, managed_rabbitmq, ready_count
from tests.rabbitmq import RabbitMQ, is_installed

from warren.cli.main import main

pytestmark = [pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here")]

VHOST = "our store"
COUNT = 300
QUEUES = {"failed carts": "classic", "open carts": "quorum", "clicks of today": "stream"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Operator:
    """Runs the command against a RabbitMQ and a Warren, with a state file of its own."""

    def __init__(self, old: RabbitMQ, there: HttpClient, new: BrokerProcess, folder: Path) -> None:
        self._uri = f"amqp://guest:guest@127.0.0.1:{old.port}"
        self._options = (
            "--management-uri", there.origin, "--state", str(folder / "state.json"),
            "--uri", f"http://guest:guest@127.0.0.1:{new.ports['http']}", "--timeout", "30",
        )  # fmt: skip

    def run(self, *arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(main, ["move-from", self._uri, *arguments, *self._options])
        assert result.exit_code == status, result.output
        return result.output

    def take(self, *steps: str) -> None:
        """Show each step, and take it."""
        for step in steps:
            self.run(step, "--dry-run")
            assert f"step {step}: done" in self.run(step, "--yes")


class Brokers:
    """A RabbitMQ with queues of each kind, and an empty Warren."""

    def __init__(self, old: RabbitMQ, there: HttpClient, new: BrokerProcess, folder: Path) -> None:
        self.old, self.there, self.new = old, there, new
        self.here = HttpClient(new)
        self.operator = Operator(old, there, new, folder)

    def messages(self, name: str) -> int:
        """The number of messages of a queue of Warren."""
        return int(self.here.get(f"/queues/{quoted(VHOST)}/{quoted(name)}")["messages"])

    def publish(self, port: int, name: str, first: int, last: int) -> None:
        with channel_at(port, VHOST) as channel:
            for number in range(first, last):
                channel.basic_publish("", name, str(number).encode(), PERSISTENT)

    def read(self, port: int, name: str, count: int) -> Counter[int]:
        """How often each of the next `count` messages is in a queue, or each of a stream."""
        with channel_at(port, VHOST, confirms=False) as channel:
            channel.basic_qos(prefetch_count=100)
            offset = {"x-stream-offset": "first"} if QUEUES.get(name) == "stream" else {}
            found: Counter[int] = Counter()
            for method, _, body in channel.consume(name, arguments=offset, inactivity_timeout=30):
                assert method is not None, f"{found.total()} of {count}"
                found[int(body)] += 1
                channel.basic_ack(method.delivery_tag)
                if found.total() == count:
                    break
            channel.cancel()
        return found


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RabbitMQ, HttpClient]]:
    with managed_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        yield started


@pytest.fixture
def both(rabbitmq: tuple[RabbitMQ, HttpClient], tmp_path: Path) -> Iterator[Brokers]:
    old, there = rabbitmq
    assert there.status(f"PUT /vhosts/{quoted(VHOST)}") == 201
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    there.ask(f"PUT /permissions/{quoted(VHOST)}/guest", rights)
    for name, kind in QUEUES.items():
        declare(there, name, kind)
    with broker() as new:
        yield Brokers(old, there, new, tmp_path)
    if old.is_running:
        there.ask(f"DELETE /vhosts/{quoted(VHOST)}")


def declare(client: HttpClient, name: str, kind: str) -> None:
    body = {"durable": True, "arguments": {"x-queue-type": kind}}
    assert client.status(f"PUT /queues/{quoted(VHOST)}/{quoted(name)}", body) == 201


def once(*ranges: range) -> Counter[int]:
    return Counter(number for each in ranges for number in each)


def test_every_message_is_moved_once_from_queues_of_each_kind(both: Brokers) -> None:
    operator = both.operator
    for name in QUEUES:
        both.publish(both.old.port, name, 0, COUNT)
    shown = operator.run("--dry-run")
    assert "next: import" in shown
    assert "create queue 'failed carts' in vhost 'our store'" in shown
    assert operator.run("federate", "--yes", status=1) == "warren: federate: step 'import' comes before it\n"
    assert both.here.status(f"GET /vhosts/{quoted(VHOST)}") == 404
    assert "nothing was changed" in operator.run("import", status=2)
    operator.take("import", "federate")
    worked_off = both.read(both.new.port, "open carts", 100)
    both.publish(both.new.port, "clicks of today", COUNT, COUNT + 50)
    operator.take("drain")
    # Publishers that have not moved: what they publish is moved by the same step again.
    for name in QUEUES:
        both.publish(both.old.port, name, COUNT + 50, COUNT + 80)
    assert "messages are left" in operator.run("disconnect", "--dry-run")
    assert "run 'drain' again" in operator.run("disconnect", "--yes", status=1)
    operator.take("drain", "disconnect")
    late = range(COUNT + 50, COUNT + 80)
    assert both.read(both.new.port, "failed carts", COUNT + 30) == once(range(COUNT), late)
    assert worked_off + both.read(both.new.port, "open carts", COUNT - 70) == once(range(COUNT), late)
    assert both.read(both.new.port, "clicks of today", COUNT + 80) == once(range(COUNT + 80))
    for name in ("failed carts", "open carts"):
        with channel_at(both.old.port, VHOST) as channel:
            assert ready_count(channel, name) == 0
        assert both.messages(name) == 0
    assert both.messages("clicks of today") == COUNT + 80
    assert both.here.get("/shovels") == both.here.get("/federation-links") == []
    assert [one["name"] for one in both.here.get("/policies")] == []


def test_each_step_is_undone_and_the_messages_are_back_in_rabbitmq(both: Brokers) -> None:
    operator, before = both.operator, both.here.get("/definitions")
    limit = {"pattern": "carts$", "definition": {"max-length": 10_000}, "apply-to": "all", "priority": -3}
    assert both.there.status(f"PUT /policies/{quoted(VHOST)}/limit", limit) == 201
    for name in QUEUES:
        both.publish(both.old.port, name, 0, COUNT)
    operator.take("import")
    imported = both.here.get("/definitions")
    operator.take("federate", "drain")
    both.publish(both.new.port, "open carts", COUNT, COUNT + 20)
    assert both.messages("open carts") == COUNT + 20
    assert "undo step 'drain' before it" in operator.run("federate", "--undo", "--yes", status=1)
    for step in ("drain", "federate"):
        operator.run("--undo", "--dry-run")
        assert f"step {step}: undone" in operator.run("--undo", "--yes")
    assert both.here.get("/definitions") == imported
    assert both.messages("open carts") == both.messages("failed carts") == 0
    operator.run("--undo", "--yes")
    assert both.here.get("/definitions") == before
    assert "nothing to undo" in operator.run("--undo", "--yes", status=1)
    assert both.read(both.old.port, "failed carts", COUNT) == once(range(COUNT))
    assert both.read(both.old.port, "open carts", COUNT + 20) == once(range(COUNT + 20))
    assert both.read(both.old.port, "clicks of today", COUNT) == once(range(COUNT))


# The last test: it stops RabbitMQ.
def test_nothing_that_moves_messages_begins_before_rabbitmq_has_stopped(both: Brokers) -> None:
    operator, vhost = both.operator, quoted(VHOST)
    uri = f"amqp://guest:guest@127.0.0.1:{both.old.port}/{quoted(VHOST)}"
    settings: dict[str, dict[str, Any]] = {
        "federation-upstream/other": {"uri": uri, "queue": "failed carts"},
        "federation-upstream-set/both": [{"upstream": "other"}],  # type: ignore[dict-item]
    }
    for name, value in settings.items():
        assert (
            both.there.status(f"PUT /parameters/{name.replace('/', f'/{vhost}/')}", {"value": value}) == 201
        )
    policies = {
        "all": {
            "apply-to": "exchanges",
            "pattern": "^amq.topic$",
            "definition": {"federation-upstream-set": "all"},
        },
        "set": {
            "apply-to": "all",
            "pattern": "^nothing",
            "definition": {"federation-upstream-set": "both", "max-length": 9},
        },
    }
    for name, policy in policies.items():
        assert both.there.status(f"PUT /policies/{vhost}/{name}", policy) == 201
    name = both.here.get("/cluster-name")["name"]
    there = "theirs"
    assert both.there.status("PUT /cluster-name", {"name": there}) == 204
    operator.take("import", "federate")
    assert {one["type"] for one in both.here.get("/federation-links")} == {"queue"}
    assert {one["name"] for one in both.here.get("/parameters/federation-upstream")} == {"move-from"}
    assert both.here.get("/cluster-name")["name"] == name
    operator.take("drain", "disconnect")
    assert both.here.get("/federation-links") == []
    assert "stop it first" in operator.run("finish", "--yes", status=1)
    both.old.stop()
    operator.take("finish")
    assert both.here.get("/cluster-name")["name"] == there
    assert {one["name"]: one["definition"] for one in both.here.get("/policies")} == {
        name: policy["definition"] for name, policy in policies.items()
    }
    assert eventually(lambda: both.here.get("/federation-links"))[0]["upstream"] == "other"
    operator.run("--undo", "--yes")
    assert both.here.get("/cluster-name")["name"] == name
    assert both.here.get("/parameters/federation-upstream") == []
