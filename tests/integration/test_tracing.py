"""The firehose tracer, switched over HTTP or from the command line, as consumers receive it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

EXCHANGE = "amq.rabbitmq.trace"
RECEIVE_S = patient(10)


@contextmanager
def channel(node: BrokerProcess) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
    yield connection.channel()
    connection.close()


def received(listener: BlockingChannel, count: int) -> list[tuple[str, dict[str, Any], bytes]]:
    """The next `count` traces: routing key, headers and body."""
    found = []
    for method, properties, body in listener.consume("", auto_ack=True, inactivity_timeout=RECEIVE_S):
        assert method is not None, found
        found.append((method.routing_key, properties.headers, body))
        if len(found) == count:
            break
    listener.cancel()
    return found


def listen(listener: BlockingChannel) -> str:
    """A queue for all traces."""
    name: str = listener.queue_declare("", exclusive=True).method.queue
    listener.queue_bind(name, EXCHANGE, "#")
    return name


def run(node: BrokerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warren.cli.main", *arguments]
    uri = f"http://guest:guest@127.0.0.1:{node.ports['http']}"
    return subprocess.run([*command, "--uri", uri], capture_output=True, text=True, check=False)


def test_published_and_delivered_messages_are_traced(node: BrokerProcess, client: HttpClient) -> None:
    assert client.status("PUT /vhosts/%2F", {"tracing": True}) == 204
    with channel(node) as listener, channel(node) as worker:
        listen(listener)
        worker.queue_declare("traced")
        worker.queue_bind("traced", "amq.topic", "a.#")
        worker.basic_publish("amq.topic", "a.b", b"one", pika.BasicProperties(headers={"h": [1, "x"]}))
        worker.basic_get("traced")
        [name, *_] = [one["name"] for one in client.get("/connections") if one["channels"] == 1][1:]
        known = {
            "exchange_name": "amq.topic",
            "routing_keys": ["a.b"],
            "properties": {"headers": {"h": [1, "x"]}},
            "node": client.get("/overview")["node"],
            "vhost": "/",
            "connection": name,
            "channel": 1,
            "user": "guest",
        }
        assert received(listener, 2) == [
            ("publish.amq.topic", known | {"routed_queues": ["traced"]}, b"one"),
            ("deliver.traced", known | {"redelivered": 0}, b"one"),
        ]
        body = {"routing_key": "a", "properties": {}, "payload": "two", "payload_encoding": "string"}
        assert client.status("POST /exchanges/%2F/amq.topic/publish", body) == 200
        [(_, facts, _)] = received(listener, 1)
        assert (facts["connection"], facts["user"]) == ("HTTP from 127.0.0.1", "guest")


def test_it_is_switched_from_the_command_line_and_survives_a_restart(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        assert run(node, "trace", "on").returncode == 0
        assert node.stop() == 0
    with broker("--data-dir", str(tmp_path)) as node, channel(node) as listener:
        queue = listen(listener)
        listener.basic_publish("amq.fanout", "x", b"1")
        assert [key for key, _, _ in received(listener, 1)] == ["publish.amq.fanout"]
        assert run(node, "trace_off").returncode == 0
        listener.basic_publish("amq.fanout", "x", b"2")
        # The answer to a publish follows the traces of the previous one.
        assert listener.queue_declare(queue, passive=True).method.message_count == 0


@pytest.mark.parametrize("command", [("trace", "on"), ("trace_on",)])
def test_tracing_a_missing_vhost_does_not_create_it(node: BrokerProcess, command: tuple[str, ...]) -> None:
    absent = run(node, *command, "-p", "nowhere")
    assert (absent.returncode, "not found" in absent.stderr) == (1, True)
    assert run(node, "list_vhosts", "name", "-q").stdout.split() == ["name", "/"]
