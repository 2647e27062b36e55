"""Paused queues: what stops, what continues, and what a restart and a kill preserve."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.conftest import QUEUE_TYPES
from tests.long_params import long_params

PERSISTENT = pika.BasicProperties(delivery_mode=2)
PAUSE = "/warren/queues/%2F/{}/pause"


@pytest.fixture
def channel(node: BrokerProcess, default_queue_type: str) -> Iterator[Any]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def test_a_paused_queue_delivers_nothing_and_everything_else_continues(
    client: HttpClient, channel: Any
) -> None:
    channel.queue_declare("p.all", durable=True)
    got: list[bytes] = []
    channel.basic_publish("", "p.all", b"before")
    held, _, _ = channel.basic_get("p.all")
    channel.basic_consume("p.all", lambda c, method, p, body: got.append(body), auto_ack=True)
    assert client.status("PUT " + PAUSE.format("p.all")) == 201
    assert client.status("PUT " + PAUSE.format("p.all")) == 204
    assert client.get(PAUSE.format("p.all")) == {"paused": True}
    channel.basic_publish("", "p.all", b"while", mandatory=True)
    channel.basic_ack(held.delivery_tag)
    assert channel.basic_get("p.all") == (None, None, None)
    assert channel.queue_declare("p.all", passive=True).method.message_count == 1
    assert got == []
    assert client.get("/queues/%2F?columns=name,paused") == [{"name": "p.all", "paused": True}]
    assert client.get("/queues/%2F/p.all")["state"] == "running"
    assert (
        client.ask(
            "POST /queues/%2F/p.all/get", {"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"}
        ).value
        == []
    )
    assert client.status("DELETE " + PAUSE.format("p.all")) == 204
    channel.connection.process_data_events(time_limit=5)
    assert got == [b"while"]
    assert "paused" not in client.get("/queues/%2F/p.all")
    assert client.get(PAUSE.format("p.all")) == {"paused": False}
    channel.queue_delete("p.all")


def test_a_queue_that_is_deleted_and_redeclared_is_not_paused(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("p.again", durable=True)
    client.ask("PUT " + PAUSE.format("p.again"))
    channel.queue_delete("p.again")
    channel.queue_declare("p.again", durable=True)
    channel.basic_publish("", "p.again", b"x")
    assert channel.basic_get("p.again", auto_ack=True)[2] == b"x"
    channel.queue_delete("p.again")


def test_limits_and_dead_lettering_apply_to_a_paused_queue(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("p.dead", exclusive=True)
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "p.dead"}
    channel.queue_declare("p.short", durable=True, arguments=arguments)
    client.ask("PUT " + PAUSE.format("p.short"))
    for body in (b"1", b"2"):
        channel.basic_publish("", "p.short", body)
    assert channel.basic_get("p.dead", auto_ack=True)[2] == b"1"
    channel.queue_delete("p.short")


def test_pausing_a_queue_requires_configure_permission(
    client: HttpClient, channel: Any, node: BrokerProcess
) -> None:
    channel.queue_declare("p.theirs", exclusive=True)
    assert client.status("PUT " + PAUSE.format("p.theirs")) == 400
    assert client.status("PUT " + PAUSE.format("p.none")) == 404
    assert client.status("DELETE " + PAUSE.format("p.none")) == 404
    client.ask("PUT /users/looker", {"password": "p", "tags": "management"})
    client.ask("PUT /permissions/%2F/looker", {"configure": "", "write": "", "read": ".*"})
    channel.queue_declare("p.read", durable=True)
    looker = HttpClient(node, "looker:p")
    assert looker.status("PUT " + PAUSE.format("p.read")) == 401
    assert looker.status("POST /warren/queues/%2F/p.read/return", {"all": True}) == 401
    looker.close()
    channel.queue_delete("p.read")


@pytest.mark.parametrize("queue_type", QUEUE_TYPES)
@pytest.mark.parametrize("end", [signal.SIGKILL, *long_params(signal.SIGTERM)])
def test_a_durable_queue_stays_paused_over_restarts(
    tmp_path: Path, end: signal.Signals, queue_type: str
) -> None:
    with broker("--data-dir", str(tmp_path)) as started:
        client = HttpClient(started)
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for queue in ("kept", "other", "again"):
                channel.queue_declare(queue, durable=True, arguments={"x-queue-type": queue_type})
                channel.basic_publish("", queue, b"x", PERSISTENT)
            channel.queue_declare("transient")
        for queue in ("kept", "again", "transient"):
            assert client.status("PUT " + PAUSE.format(queue)) == 201
        client.ask("DELETE " + PAUSE.format("again"))
        os.kill(started.process.pid, end)
        started.process.wait()
    for _ in range(2):
        with broker("--data-dir", str(tmp_path)) as started:
            client = HttpClient(started)
            assert client.get(PAUSE.format("kept")) == {"paused": True}
            with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port)) as connection:
                channel = connection.channel()
                assert channel.basic_get("kept")[0] is None
                assert channel.basic_get("other")[2] == b"x"
                assert channel.basic_get("again")[2] == b"x"
            assert started.stop() == 0
    with broker("--data-dir", str(tmp_path)) as started:
        assert HttpClient(started).status("DELETE " + PAUSE.format("kept")) == 204
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", started.port)) as connection:
            assert connection.channel().basic_get("kept", auto_ack=True)[2] == b"x"
