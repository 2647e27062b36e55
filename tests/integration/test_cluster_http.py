"""The cluster over HTTP, on a node that has met no other: status, refusals, maintenance."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pika.exceptions
import pytest
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect
from tests.warren_process import free_port, own_address, running_warren, wait_until_listening

from warren.cli.rabbitmq_tools import run

PUT_MEMBER = "PUT /warren/cluster/members"
CHECKS = ("is-in-service", "ready-to-serve-clients", "protocol-listener/amqp")


@dataclass
class Ports:
    """Where a broker listens, for an HttpClient."""

    ports: dict[str, int]


@pytest.fixture
def name(client: HttpClient) -> str:
    return str(client.get("/overview")["node"])


@pytest.fixture
def maintenance(client: HttpClient, name: str) -> Iterator[str]:
    """The path of the maintenance of the node, which ends with the test."""
    path = f"/warren/nodes/{quoted(name)}/maintenance"
    yield path
    assert client.status(f"DELETE {path}") == 204


def test_a_node_that_has_met_no_other_is_its_own_leader(client: HttpClient, name: str) -> None:
    found = client.get("/warren/cluster")
    (member,) = found.pop("members")
    assert found == {
        "cluster_id": "", "cluster_name": name, "feature_level": 0, "node": name, "leader": name,
        "is_in_minority": False, "minority_since": None, "removed_by": None, "unavailable": [],
        "leaderless": [], "problems": [],
    }  # fmt: skip
    assert member.pop("incarnation") > 1_700_000_000
    assert member.pop("version")
    assert member == {
        "id": 1, "name": name, "host": "", "cluster_port": 0, "is_up": True, "is_draining": False,
        "feature_level": 0, "role": "voter", "is_leader": True, "link": "self",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "body", "reason"),
    [
        (PUT_MEMBER, {"host": "there"}, "cannot connect to the node at there:25672"),
        (PUT_MEMBER, {"host": "there", "port": 1, "reset": True}, "cannot connect to the node at there:1"),
        (PUT_MEMBER, {"host": ""}, "host must have 1 to 255 characters"),
        (PUT_MEMBER, {"host": "x" * 256}, "host must have 1 to 255 characters"),
        (PUT_MEMBER, {"host": "there", "port": 65536}, "port must be between 1 and 65535, not 65536"),
        ("DELETE /warren/cluster/members/NODE", None, "this node is in no cluster with another one"),
        ("DELETE /warren/cluster/members/NODE?accept-loss=true", None, "this node is in no cluster"),
    ],
)
def test_what_is_impossible_is_refused_with_the_reason(
    client: HttpClient, name: str, line: str, body: object, reason: str
) -> None:
    status, refusal = client.refusal(line.replace("NODE", quoted(name)), body)
    assert status == 400
    assert reason in str(refusal)


def test_a_node_joins_no_other_while_it_has_anything_unless_that_is_given_up(
    client: HttpClient, node: BrokerProcess
) -> None:
    channel = connect(node.port).channel()
    channel.confirm_delivery()
    channel.exchange_declare("x", durable=True)
    channel.queue_declare("q", durable=True)
    channel.basic_publish("", "q", b"")
    client.status("PUT /users/u", {"password": "p", "tags": ""})
    status, refusal = client.refusal(PUT_MEMBER, {"host": "there"})
    assert status == 400
    assert "would delete what this node has: 1 exchange, 1 queue, 1 message, 1 user; export" in str(refusal)
    _, unreached = client.refusal(PUT_MEMBER, {"host": "there", "reset": True})
    assert "cannot connect to the node at there:25672" in str(unreached)
    channel.queue_delete("q")
    channel.exchange_delete("x")
    client.status("DELETE /users/u")


def test_a_node_in_maintenance_is_reset_by_the_commands_of_rabbitmq_and_is_empty_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    http = free_port()
    arguments = ("--data-dir", str(tmp_path / "data"), "--management-port", str(http))
    with running_warren(tmp_path, arguments=arguments) as node:
        wait_until_listening(node.process, http, node.log)
        client = HttpClient(Ports({"http": http}))
        name = client.get("/overview")["node"]

        def tool(command: str) -> tuple[int, str]:
            status = run("rabbitmqctl", [command, "--uri", f"http://127.0.0.1:{http}"])
            return status, "".join(capsys.readouterr())

        assert connect(node.port).channel().queue_declare("q", durable=True)
        status, text = tool("reset")
        assert (status, "requires the 'rabbit' app to be stopped" in text) == (64, True)
        assert tool("stop_app") == (0, f"Stopping rabbit application on node {name} ...\n")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connect(node.port)
        status, refusal = client.refusal(f"POST /warren/nodes/{quoted(name)}/reset")
        assert (status, "would delete what this node has: 1 queue; export" in str(refusal)) == (400, True)
        assert tool("reset") == (0, f"Resetting node {name} ...\n")
        client.close()
        client = HttpClient(Ports({"http": http}))
        assert client.get("/queues") == []
        assert tool("start_app") == (0, f"Starting node {name} ...\n")
        connect(node.port).close()
        client.close()


def test_a_node_without_a_data_directory_is_not_reset() -> None:
    with broker("--in-memory") as alone:
        other = HttpClient(alone)
        status, refusal = other.refusal(f"POST /warren/nodes/{quoted(other.get('/overview')['node'])}/reset")
        assert (status, "this node does not listen for other nodes" in str(refusal)) == (400, True), refusal
        other.close()


def test_a_join_that_could_not_listen_is_refused_with_the_address_and_may_be_tried_again(
    tmp_path: Path,
) -> None:
    interface, http = own_address(), free_port()
    listens = {"distribution.listener.interface": interface}
    arguments = ("--data-dir", str(tmp_path / "data"), "--management-port", str(http))
    with running_warren(tmp_path, listens, arguments=arguments) as running:
        wait_until_listening(running.process, http, running.log)
        client = HttpClient(Ports({"http": http}))
        with socket.create_server((interface, 25672)):
            for _ in range(2):
                status, refusal = client.refusal(PUT_MEMBER, {"host": "there"})
                assert status == 400
                assert f"cannot listen to other nodes on {interface}:25672: Address already" in str(refusal)
        status, refusal = client.refusal(PUT_MEMBER, {"host": "there"})
        assert status == 400
        assert "cannot connect to the node at there:25672" in str(refusal)
        client.close()


def test_members_and_nodes_that_do_not_exist_are_not_found(client: HttpClient, name: str) -> None:
    answer = client.ask("DELETE /warren/cluster/members/nobody")
    assert (answer.status, answer.value["message"]) == (
        404, f"the cluster has no member 'nobody'; its members: '{name}'",
    )  # fmt: skip
    for method in ("PUT", "DELETE"):
        answer = client.ask(f"{method} /warren/nodes/nobody/maintenance")
        assert (answer.status, answer.value["message"]) == (404, "there is no node 'nobody'")


def test_in_maintenance_clients_are_closed_and_refused_until_it_ends(
    client: HttpClient, node: BrokerProcess, maintenance: str
) -> None:
    clients = [connect(node.port) for _ in range(20)]
    half_open = socket.create_connection(("127.0.0.1", node.port))
    assert client.status(f"PUT {maintenance}") == 204
    for one in clients:
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            one.process_data_events(time_limit=30)
        text = "CONNECTION_FORCED - Node was put into maintenance mode"
        assert (closed.value.reply_code, closed.value.reply_text) == (320, text)
    half_open.settimeout(30)
    with contextlib.suppress(ConnectionResetError):
        assert half_open.recv(1) == b""
    half_open.close()
    for protocol in ("amqp", "stream"):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", node.ports[protocol]))
    # The HTTP API is how the maintenance ends.
    assert client.get("/warren/cluster")["problems"] == [
        f"'{client.get('/overview')['node']}' is in maintenance mode, without clients: "
        "'warren cluster revive' ends that"
    ]
    assert client.status(f"PUT {maintenance}") == 204
    assert client.status(f"DELETE {maintenance}") == 204
    connect(node.port).close()
    with socket.create_connection(("127.0.0.1", node.ports["stream"])):
        pass
    assert client.get("/warren/cluster")["problems"] == []


def test_health_checks_fail_in_maintenance(client: HttpClient, node: BrokerProcess, maintenance: str) -> None:
    checks = [f"GET /health/checks/{check}" for check in (*CHECKS, f"port-listener/{node.port}")]
    assert [client.status(check) for check in checks] == [200] * 4
    client.status(f"PUT {maintenance}")
    assert [client.status(check) for check in checks] == [503] * 4
    assert client.ask(checks[0]).reason == (
        "the node accepts no clients, for maintenance or because it hears no majority of its cluster"
    )
    assert client.status("GET /health/checks/protocol-listener/http") == 200
    client.status(f"DELETE {maintenance}")
    assert [client.status(check) for check in checks] == [200] * 4


def test_who_changed_the_cluster_is_in_the_audit_log(
    client: HttpClient, node: BrokerProcess, maintenance: str
) -> None:
    client.status(f"PUT {maintenance}")
    node.wait_for("user 'guest': node put into maintenance mode")
    client.status(f"DELETE {maintenance}")
    node.wait_for("user 'guest': maintenance mode ended")
