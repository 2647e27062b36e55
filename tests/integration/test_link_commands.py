"""`shovel_status`, `federation_status` and restarts, as rabbitmqctl 3.10.8 has them, and who asked."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, put_shovel, wait_until

from warren.cli.main import main

# The fields that rabbitmqctl 3.10.8 prints as JSON (measured).
OF_ALL = {"destination", "last_changed", "name", "source", "state", "termination_reason", "type"}
OF_RUNNING = OF_ALL | {
    "vhost",
    "destination_protocol",
    "destination_queue",
    "source_protocol",
    "source_queue",
}
OF_STATIC = OF_RUNNING - {"vhost"}
OF_EXCHANGE = {
    "error", "exchange", "id", "last_changed", "local_connection", "queue", "status", "type", "upstream",
    "upstream_exchange", "upstream_queue", "uri", "vhost",
}  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with a static shovel, and links in two states."""
    file = tmp_path_factory.mktemp("static") / "warren.conf"
    keys = ("src-uri = amqp://", "src-queue = s", "dest-uri = amqp://", "dest-queue = d")
    file.write_text("".join(f"shovel.fixed.{key}\n" for key in keys))
    with broker(config=file) as started:
        client = HttpClient(started)
        put_shovel(client, "up", src_uri="amqp://", src_queue="a", dest_uri="amqp://", dest_queue="b")
        put_shovel(
            client, "down", src_uri="amqp://guest:guest@127.0.0.1:1", src_queue="a", dest_uri="amqp://"
        )
        for name, uri in (("up", "amqp://"), ("down", "amqp://guest:guest@127.0.0.1:1")):
            value = {"value": {"uri": uri}}
            assert client.status(f"PUT /parameters/federation-upstream/%2F/{name}", value) == 201
        definition = {"pattern": "^fed", "definition": {"federation-upstream-set": "all"}}
        assert client.status("PUT /policies/%2F/p", definition) == 201
        assert client.status("PUT /queues/%2F/fedq", {"durable": True}) == 201
        assert client.status("PUT /exchanges/%2F/fedx", {"type": "topic", "durable": True}) == 201
        for name, state in (("up", "running"), ("fixed", "running"), ("down", "terminated")):
            await_state(client, name, state)
        wait_until(lambda: states(client) == ["error", "error", "running", "running"])
        client.close()
        yield started


def states(client: HttpClient) -> list[str]:
    return sorted(one["status"] for one in client.get("/federation-links"))


def printed(node: BrokerProcess, *arguments: str, status: int = 0) -> str:
    uri = f"http://guest:guest@127.0.0.1:{node.ports['http']}"
    found = CliRunner().invoke(main, [*arguments, "--uri", uri], catch_exceptions=False)
    assert found.exit_code == status, found.output
    return found.output


def rows(node: BrokerProcess, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(node, *arguments, "--formatter", "json"))
    return found


def test_shovel_status_has_the_fields_of_rabbitmqctl(node: BrokerProcess) -> None:
    found = {row["name"]: row for row in rows(node, "shovel_status")}
    assert set(found) == {"up", "down", "fixed"}
    assert (set(found["up"]), set(found["fixed"])) == (OF_RUNNING, OF_STATIC)
    assert set(found["down"]) == OF_ALL | {"vhost"}
    assert (found["up"]["source"], found["up"]["source_queue"], found["up"]["state"]) == (
        "amqp://",
        "a",
        "running",
    )
    assert (found["down"]["source"], found["down"]["state"]) == ("", "terminated")
    assert "connection refused" in found["down"]["termination_reason"]
    assert [row["name"] for row in rows(node, "shovel_status", "-p", "/")] == ["down", "up"]


def test_the_table_of_shovel_status_has_the_columns_in_order(node: BrokerProcess) -> None:
    header = printed(node, "shovel_status").splitlines()[0].split()
    assert header == sorted(OF_RUNNING)
    assert "termination_reason" not in printed(node, "shovel_status", "--silent")
    assert (
        printed(node, "shovel_status", "name", "state", "--formatter", "tsv").splitlines()[0] == "name\tstate"
    )
    assert "unknown column 'nosuch'" in printed(node, "shovel_status", "nosuch", status=2)


def test_federation_status_has_the_fields_of_rabbitmqctl(node: BrokerProcess) -> None:
    found = rows(node, "federation_status")
    assert {(row["type"], row["status"]) for row in found} == {
        ("exchange", "running"), ("exchange", "error"), ("queue", "running"), ("queue", "error"),
    }  # fmt: skip
    for row in found:
        assert set(row) == (OF_EXCHANGE if row["type"] == "exchange" else OF_EXCHANGE | {"consumer_tag"})
        assert bool(row["error"]) == (row["status"] == "error")
    down = rows(node, "federation_status", "--only-down")
    assert {row["upstream"] for row in down} == {"down"}
    assert printed(node, "federation_status").splitlines()[0].split()[0] == "consumer_tag"


def test_restarts_and_deletions_are_logged_with_the_user(node: BrokerProcess) -> None:
    client = HttpClient(node)
    client.ask("PUT /users/operator", {"password": "secret", "tags": "policymaker,monitoring"})
    client.ask("PUT /permissions/%2F/operator", {"configure": ".*", "write": ".*", "read": ".*"})
    put_shovel(client, "gone", src_uri="amqp://", src_queue="a", dest_uri="amqp://", dest_queue="b")
    client.close()
    own = f"http://operator:secret@127.0.0.1:{node.ports['http']}"
    link = rows(node, "federation_status", "--only-down")[0]["id"]
    for arguments in (
        ("restart_shovel", "gone"),
        ("restart_federation_link", link),
        ("delete_shovel", "gone"),
    ):
        done = CliRunner().invoke(main, [*arguments, "--uri", own])
        assert done.exit_code == 0, done.output
    for logged in (
        "user 'operator': shovel.worker.restarted: name 'gone', vhost '/'",
        "user 'operator': federation.link.restarted:",
        "user 'operator': parameter.cleared: ",
    ):
        node.wait_for(logged)
    assert "gone" not in printed(node, "shovel_status", "name")


@pytest.mark.parametrize("name", ["nosuch", "fixed"])
def test_what_is_no_dynamic_shovel_cannot_be_restarted_or_deleted(node: BrokerProcess, name: str) -> None:
    assert f"there is no shovel '{name}' in vhost '/'" in printed(node, "restart_shovel", name, status=1)
    assert "not found" in printed(node, "delete_shovel", name, status=1)
    assert "not found" in printed(node, "restart_federation_link", name, status=1)
