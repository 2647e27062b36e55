"""RabbitMQ's own `rabbitmqadmin`, as Debian ships it, does with Warren what it does with RabbitMQ."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.process import Broker, broker

TIMEOUT_S = 60
SCRIPT = shutil.which("rabbitmqadmin")
pytestmark = [
    pytest.mark.rabbitmq,
    pytest.mark.skipif(SCRIPT is None, reason="no rabbitmqadmin here"),
]

# Everything that it has a command for, in an order in which each can be done.
STEPS = (
    ("declare vhost name=v", "vhost declared"),
    ("declare user name=u password=p tags=monitoring", "user declared"),
    ("declare permission vhost=v user=u configure=.* write=.* read=.*", "permission declared"),
    ('declare queue name=q durable=true arguments={"x-max-length":5}', "queue declared"),
    ("declare exchange name=x type=topic", "exchange declared"),
    ("declare binding source=x destination=q routing_key=a.b", "binding declared"),
    ('declare policy name=p pattern=^q definition={"max-length":3} apply-to=queues', "policy declared"),
    ('declare operator_policy name=o pattern=^q definition={"max-length":3}', "operator_policy declared"),
    ("declare vhost_limit vhost=v name=max-queues value=7", "vhost_limit declared"),
    ('declare parameter component=vhost-limits name=limits value={"max-queues":700}', "parameter declared"),
    ("publish exchange=x routing_key=a.b payload=hello", "Message published"),
    ("publish exchange=amq.default routing_key=q payload=two", "Message published"),
    ("publish exchange=x routing_key=none payload=lost", "Message published but NOT routed"),
    ("show overview", "rabbitmq_version"),
    ("list queues vhost name messages", "| q "),
    ("list exchanges", "| x "),
    ("list bindings", "a.b"),
    ("list users", "monitoring"),
    ("list vhosts", "| v "),
    ("list permissions", "| u "),
    ("list policies", "| p "),
    ("list operator_policies", "| o "),
    ("list parameters", "vhost-limits"),
    ("list vhost_limits", "max-queues"),
    ("list nodes", "| ram "),
    ("list connections", "No items"),
    ("list channels", "No items"),
    ("list consumers", "No items"),
    ("get queue=q count=2", "hello"),
    ("get queue=q count=1 ackmode=ack_requeue_false", "True"),
    ("purge queue name=q", "queue purged"),
    ("delete binding source=x destination=q destination_type=queue properties_key=a.b", "binding deleted"),
    ("delete parameter component=vhost-limits name=limits", "parameter deleted"),
    ("delete vhost_limit vhost=v name=max-queues", "vhost_limit deleted"),
    ("delete operator_policy name=o", "operator_policy deleted"),
    ("delete policy name=p", "policy deleted"),
    ("delete exchange name=x", "exchange deleted"),
    ("delete queue name=q", "queue deleted"),
    ("delete permission vhost=v user=u", "permission deleted"),
    ("delete user name=u", "user deleted"),
    ("delete vhost name=v", "vhost deleted"),
)


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with broker() as started:
        yield started


def asked(node: Broker, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    assert SCRIPT is not None
    return subprocess.run(
        [sys.executable, SCRIPT, "--host", "127.0.0.1", "--port", str(node.ports["http"]), *arguments],
        cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip


def test_everything_can_be_made_seen_and_deleted(node: Broker, tmp_path: Path) -> None:
    for line, expected in STEPS:
        result = asked(node, tmp_path, *line.split())
        assert result.returncode == 0, (line, result.stdout, result.stderr)
        assert expected in result.stdout, (line, result.stdout)


def test_definitions_go_out_and_come_in(node: Broker, tmp_path: Path) -> None:
    assert asked(node, tmp_path, "export", "definitions.json").returncode == 0
    assert json.loads((tmp_path / "definitions.json").read_text())["users"]
    assert asked(node, tmp_path, "import", "definitions.json").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("delete", "queue", "name=none"), "Not found"),
        (("close", "connection", "name=none"), "Not found"),
        (("declare", "exchange", "name=y", "type=none"), "invalid exchange type"),
        (("--password", "wrong", "list", "queues"), "Access refused"),
    ],
)
def test_what_is_refused_is_said(node: Broker, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    result = asked(node, tmp_path, *arguments)
    assert result.returncode != 0
    assert said.lower() in (result.stdout + result.stderr).lower()
