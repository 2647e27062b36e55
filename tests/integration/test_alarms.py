"""Memory and disk alarms of a real broker, as its clients experience them."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from click.testing import CliRunner
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration import api
from tests.integration.api import get, states
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

from warren.cli.main import main

WAIT_S_MAX = patient(30)
LITTLE = "vm_memory_high_watermark.absolute = 1MB"
MUCH = "vm_memory_high_watermark.absolute = 2GB"
NO_DISK = "disk_free_limit.absolute = 1000000TB"


class Client:
    """A connection with two channels that records connection.blocked and connection.unblocked."""

    def __init__(self, port: int) -> None:
        self.connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self.reported: list[str] = []
        self.connection.add_on_connection_blocked_callback(
            lambda _, frame: self.reported.append(frame.method.reason)
        )
        self.connection.add_on_connection_unblocked_callback(lambda *_: self.reported.append("unblocked"))
        self.publishing = self.connection.channel()
        self.consuming = self.connection.channel()

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Process events until the condition holds."""
        for _ in range(int(WAIT_S_MAX * 10)):
            if is_so():
                return
            self.connection.process_data_events(0.1)
        raise AssertionError(self.reported)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with enough memory, until its configuration says otherwise."""
    config = tmp_path / "warren.conf"
    config.write_text(MUCH)
    with broker("--data-dir", str(tmp_path / "data"), config=config) as started:
        yield started


def reconfigure(node: BrokerProcess, folder: Path, lines: str, expected: str) -> None:
    """Replace the configuration, and wait until the log reports that it was read."""
    (folder / "warren.conf").write_text(lines)
    node.process.send_signal(signal.SIGHUP)
    node.wait_for(expected)


def resources(node: BrokerProcess) -> list[str]:
    """The alarms that are set, which the API, the metrics and the health check must agree on."""
    status, body = get(node, "/api/health/checks/alarms")
    assert get(node, "/api/health/checks/local-alarms")[0] == status
    found = json.loads(body)
    assert (status, found["status"]) == ((503, "failed") if "alarms" in found else (200, "ok"))
    low = [alarm["resource"] for alarm in found.get("alarms", [])]
    [here] = json.loads(get(node, "/api/nodes")[1])
    assert here["mem_alarm"] == ("memory" in low) == (here["mem_used"] > here["mem_limit"])
    assert here["disk_free_alarm"] == ("disk space" in low) == (here["disk_free"] < here["disk_free_limit"])
    lines = get(node, "/metrics", "http/prometheus")[1].decode().splitlines()
    assert f"rabbitmq_alarms_memory_used_watermark {int(here['mem_alarm'])}" in lines
    assert f"rabbitmq_alarms_free_disk_space_watermark {int(here['disk_free_alarm'])}" in lines
    assert f"rabbitmq_resident_memory_limit_bytes {here['mem_limit']}" in lines
    return low


def count(channel: BlockingChannel, queue: str) -> int:
    return channel.queue_declare(queue, passive=True).method.message_count


def test_a_publisher_is_blocked_and_its_consumer_is_not(node: BrokerProcess, tmp_path: Path) -> None:
    client = Client(node.port)
    client.publishing.queue_declare("work")
    client.publishing.queue_declare("more")
    for number in range(3):
        client.publishing.basic_publish("", "work", str(number).encode())
    taken: list[bytes] = []

    def take(channel: BlockingChannel, method: pika.spec.Basic.Deliver, _: object, body: bytes) -> None:
        taken.append(body)
        channel.basic_ack(method.delivery_tag)

    reconfigure(node, tmp_path, LITTLE, "memory alarm set")
    assert resources(node) == ["memory"]
    assert states(node) == ["blocking"]
    client.publishing.basic_publish("", "more", b"held")
    client.wait(lambda: bool(client.reported))
    assert client.reported == ["low on memory"]
    assert states(node) == ["blocked"]

    client.consuming.basic_qos(prefetch_count=1)
    client.consuming.basic_consume("work", take)
    client.wait(lambda: len(taken) == 3)
    assert taken == [b"0", b"1", b"2"]
    assert count(client.consuming, "work") == 0
    assert count(client.consuming, "more") == 0

    reconfigure(node, tmp_path, MUCH, "memory alarm cleared")
    client.wait(lambda: len(client.reported) == 2)
    assert client.reported == ["low on memory", "unblocked"]
    assert client.publishing.basic_get("more")[2] == b"held"
    assert resources(node) == []
    assert states(node) == ["running"]
    client.connection.close()


def test_publishers_in_the_api_are_told_of_the_alarm_and_the_result(
    node: BrokerProcess, tmp_path: Path
) -> None:
    asks = api.HttpClient(node)
    asks.ask("PUT /queues/%2f/by-hand", {})
    line = "POST /exchanges/%2f/amq.default/publish"
    body = {"routing_key": "by-hand", "properties": {}, "payload": "1", "payload_encoding": "string"}
    assert asks.ask(line, body).value == {"routed": True}
    reconfigure(node, tmp_path, f"{LITTLE}\n{NO_DISK}", "disk alarm set")
    # As in RabbitMQ, publishing over HTTP is not blocked.
    assert asks.ask(line, body).value == {"routed": True, "alarms": ["disk", "memory"]}
    assert asks.ask(line, body | {"routing_key": "none"}).value["routed"] is False
    publish = ("exchanges", "publish", "--uri", f"http://127.0.0.1:{node.ports['http']}", "", "by-hand", "2")
    said = CliRunner().invoke(main, publish)
    assert said.output == "published; an alarm (disk, memory) blocks AMQP publishers\n"
    script = tmp_path / "rabbitmqadmin"
    script.write_bytes(get(node, "/cli/rabbitmqadmin")[1])
    words = [sys.executable, str(script), "-P", str(node.ports["http"]), "publish", "routing_key=by-hand"]
    reported = subprocess.run(
        words, input="3", capture_output=True, text=True, check=True, timeout=WAIT_S_MAX
    )
    assert reported.stdout == "Message published\nAlarm: disk, memory. AMQP publishers are blocked.\n"
    assert asks.get("/queues/%2f/by-hand?columns=messages") == {"messages": 4}


def test_both_alarms_are_named_and_publishers_resume_when_the_last_is_cleared(
    node: BrokerProcess, tmp_path: Path
) -> None:
    reconfigure(node, tmp_path, f"{LITTLE}\n{NO_DISK}", "disk alarm set")
    client = Client(node.port)
    client.publishing.queue_declare("work")
    client.publishing.basic_publish("", "work", b"held")
    client.wait(lambda: bool(client.reported))
    assert client.reported == ["low on disk & memory"]
    assert resources(node) == ["disk space", "memory"]
    reconfigure(node, tmp_path, LITTLE, "disk alarm cleared")
    assert resources(node) == ["memory"]
    assert count(client.consuming, "work") == 0
    reconfigure(node, tmp_path, "", "memory alarm cleared")
    client.wait(lambda: len(client.reported) == 2)
    client.connection.close()


def test_consuming_the_backlog_clears_the_alarm(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("vm_memory_high_watermark.absolute = 150MiB")
    body = bytes(100_000)
    with broker(config=config) as node:
        client = Client(node.port)
        client.publishing.queue_declare("work")
        for _ in range(20_000):
            if client.reported:
                break
            client.publishing.basic_publish("", "work", body)
            client.connection.process_data_events(0)
        client.wait(lambda: bool(client.reported))
        # On its own connection: reading of the other one may be paused.
        other = Client(node.port)
        while client.reported == ["low on memory"]:
            other.consuming.basic_get("work", auto_ack=True)
            client.connection.process_data_events(0)
        assert client.reported == ["low on memory", "unblocked"]
        node.wait_for("memory alarm cleared")
        for each in (client, other):
            each.connection.close()


def test_an_invalid_configuration_changes_nothing(node: BrokerProcess, tmp_path: Path) -> None:
    reconfigure(node, tmp_path, "vm_memory_high_watermark.absolute = none of it", "thresholds are unchanged")
    assert resources(node) == []
    assert "must be a size" in node.lines[-1]
