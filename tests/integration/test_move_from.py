"""`warren move-from` against RabbitMQ: each step, its undo, and every message counted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import broker
from tests.integration.federation import channel_at, eventually, managed_rabbitmq, ready_count
from tests.integration.moves import QUEUES, VHOST, Brokers, declare_queues, once
from tests.rabbitmq import RabbitMQ, is_installed

pytestmark = [pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here")]

COUNT = 300


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RabbitMQ, HttpClient]]:
    with managed_rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        yield started


@pytest.fixture
def both(rabbitmq: tuple[RabbitMQ, HttpClient], tmp_path: Path) -> Iterator[Brokers]:
    old, there = rabbitmq
    declare_queues(there)
    with broker() as new:
        yield Brokers(old, there, new, tmp_path)
    if old.is_running:
        there.ask(f"DELETE /vhosts/{quoted(VHOST)}")


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
