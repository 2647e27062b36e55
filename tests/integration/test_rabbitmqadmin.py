"""RabbitMQ's `rabbitmqadmin`, as in Debian, and Warren's behave alike; Warren's also works with RabbitMQ."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.api import get_page
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient
from tests.rabbitmq import RabbitMQ, is_installed
from tests.warren_process import free_port

TIMEOUT_S = patient(60)
THEIRS = shutil.which("rabbitmqadmin")
has_theirs = (
    pytest.mark.rabbitmq,
    pytest.mark.skipif(THEIRS is None, reason="no rabbitmqadmin here"),
)

# Everything that it has a command for, in an order in which each step is possible.
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
    ("list nodes", "mem_used"),
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
def node() -> Iterator[BrokerProcess]:
    with broker("--in-memory") as started:
        yield started


@pytest.fixture(scope="module")
def ours(node: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Warren's script, as it is installed."""
    path = tmp_path_factory.mktemp("script") / "rabbitmqadmin"
    path.write_bytes(get_page(node, "/cli/rabbitmqadmin")[2])
    return str(path)


@pytest.fixture(params=["ours", pytest.param("theirs", marks=has_theirs)])
def script(request: pytest.FixtureRequest, ours: str) -> str:
    return ours if request.param == "ours" else str(THEIRS)


def asked(script: str, port: int, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, script, "--host", "127.0.0.1", "--port", str(port), *arguments],
        cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, input="piped",
    )  # fmt: skip


def take_steps(script: str, port: int, folder: Path) -> None:
    for line, expected in STEPS:
        result = asked(script, port, folder, *line.split())
        assert result.returncode == 0, (line, result.stdout, result.stderr)
        assert expected in result.stdout, (line, result.stdout)


def test_every_kind_of_object_can_be_created_listed_and_deleted(
    node: BrokerProcess, script: str, tmp_path: Path
) -> None:
    take_steps(script, node.ports["http"], tmp_path)


def test_definitions_are_exported_and_imported(node: BrokerProcess, script: str, tmp_path: Path) -> None:
    port = node.ports["http"]
    assert asked(script, port, tmp_path, "export", "definitions.json").returncode == 0
    assert json.loads((tmp_path / "definitions.json").read_text())["users"]
    assert asked(script, port, tmp_path, "import", "definitions.json").returncode == 0


REFUSED = (
    (("delete", "queue", "name=none"), "Not found"),
    (("close", "connection", "name=none"), "Not found"),
    (("declare", "exchange", "name=y", "type=none"), "unknown exchange type"),
    (("--password", "wrong", "list", "queues"), "Access refused"),
    (("list", "nosuch"), "know how to list nosuch"),
    (("dance",), "Action dance not understood"),
    (("declare", "queue"), 'mandatory argument "name" is required'),
    (("declare", "queue", "nme=x"), 'Argument "nme" is not recognised'),
    (("declare", "queue", "x"), 'Argument "x" not in the name=value format'),
    (("declare", "queue", "name=x", "arguments={"), "Could not parse JSON"),
)


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_a_refusal_is_printed(
    node: BrokerProcess, script: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = asked(script, node.ports["http"], tmp_path, *arguments)
    assert result.returncode == 1
    assert said.lower() in (result.stdout + result.stderr).lower()


# Commands whose output is equal.
PRINTED = (
    "list queues name messages arguments durable", "-V w list queues", "list exchanges", "list bindings",
    "list permissions", "list policies", "list users name tags", "list vhosts name tracing",
    "list vhost_limits",
    "-f tsv list queues", "-f kvp list exchanges name type", "-f long list exchanges name type",
    "-f bash list queues", "-f raw_json list exchanges name", "-f pretty_json list exchanges name",
    "-S name -R list exchanges name", "show overview rabbitmq_version", "-f kvp list policies",
    "get queue=seen count=2", "-f long get queue=seen", "-q list consumers",
    "-d 2 list exchanges name nosuch",
)  # fmt: skip


@pytest.mark.rabbitmq
@pytest.mark.skipif(THEIRS is None, reason="no rabbitmqadmin here")
def test_both_scripts_print_the_same(node: BrokerProcess, ours: str, tmp_path: Path) -> None:
    port = node.ports["http"]
    for line in (
        "declare vhost name=w", "declare queue name=seen",
        'declare queue name=full arguments={"x-max-length":5}',
        "-V w declare queue name=elsewhere", "publish routing_key=seen payload=one",
        'declare policy name=p pattern=^f definition={"max-length":9}',
        "declare vhost_limit vhost=w name=max-queues value=7",
    ):  # fmt: skip
        assert asked(ours, port, tmp_path, *line.split()).returncode == 0, line
    # Delivered once already, so that both see it as redelivered.
    asked(ours, port, tmp_path, "get", "queue=seen")
    for line in PRINTED:
        found, expected = (
            asked(which, port, tmp_path, *line.split()).stdout for which in (ours, str(THEIRS))
        )
        assert found == expected, line


def test_a_payload_is_read_from_standard_input_and_written_to_a_file(
    node: BrokerProcess, ours: str, tmp_path: Path
) -> None:
    port = node.ports["http"]
    asked(ours, port, tmp_path, "declare", "queue", "name=piped")
    assert "Message published" in asked(ours, port, tmp_path, "publish", "routing_key=piped").stdout
    assert asked(ours, port, tmp_path, "get", "queue=piped", "payload_file=out").returncode == 0
    assert (tmp_path / "out").read_bytes() == b"piped"


def test_a_file_can_name_the_broker(node: BrokerProcess, ours: str, tmp_path: Path) -> None:
    (tmp_path / "admin.conf").write_text(
        f"[here]\nhostname = 127.0.0.1\nport = {node.ports['http']}\npassword = wrong\nquiet = true\n"
    )
    command = [sys.executable, ours, "-c", str(tmp_path / "admin.conf"), "-N", "here"]
    refused = subprocess.run([*command, "list", "vhosts"], capture_output=True, text=True, check=False)
    assert "Access refused" in refused.stderr
    found = subprocess.run(
        [*command, "-p", "guest", "list", "vhosts"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0
    found = subprocess.run(
        [*command, "-p", "guest", "declare", "queue", "name=said"], capture_output=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, b"")


@pytest.mark.long
@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_the_script_works_with_rabbitmq(ours: str, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "rabbit").mkdir()
    server = RabbitMQ(
        tmp_path / "rabbit",
        listen="127.0.0.1",
        settings=f"management.tcp.port = {port}\nmanagement.tcp.ip = 127.0.0.1\n",
        plugins=("rabbitmq_management",),
    )
    try:
        server.start()
        take_steps(ours, port, tmp_path)
    finally:
        server.stop()


def test_the_help_lists_what_can_be_requested(node: BrokerProcess) -> None:
    for path, place in (
        ("/api", "/api/index.html"), ("/api/", "/api/index.html"), ("/doc/stats.html", "/api/index.html"),
        ("/cli", "/cli/index.html"), ("/cli/", "/cli/index.html"),
    ):  # fmt: skip
        status, headers, _ = get_page(node, path)
        assert (status, headers["location"]) == (301, place)
    status, headers, body = get_page(node, "/api/index.html")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert b"<code>DELETE</code><td><code>/api/queues/{vhost}/{queue}/contents</code>" in body
    assert b"<script" not in body
    assert b"style=" not in body
    assert b'href="../api/index.css"' in body
    assert b'href="rabbitmqadmin"' in get_page(node, "/cli/index.html")[2]
    assert get_page(node, "/api/index.css")[0] == 200
    assert get_page(node, "/cli/rabbitmqadmin")[1]["content-type"] == "application/octet-stream"
