"""Running shovels as the API, the commands, the metrics and the event exchange show them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, confirming, put_shovel, uri, wait_until

from warren.cli.main import main

RABBITMQ = {
    "node", "timestamp", "name", "vhost", "type", "state", "src_uri", "src_protocol", "dest_protocol",
    "dest_uri", "src_queue", "dest_queue",
}  # fmt: skip


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


@pytest.fixture(scope="module")
def client(node: BrokerProcess) -> HttpClient:
    return HttpClient(node)


@pytest.fixture
def command(node: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")

    def run(*words: str, status: int = 0) -> str:
        result = CliRunner().invoke(main, words, prog_name="warren")
        assert result.exit_code == status, result.output
        return str(result.output)

    return run


def test_a_shovel_is_shown_with_its_counters_and_as_idle(node: BrokerProcess, client: HttpClient) -> None:
    source = uri(node.port)
    put_shovel(client, "shown", src_uri=source, src_queue="s", dest_uri="amqp://", dest_queue="d")
    row = await_state(client, "shown", "running")
    assert set(row) >= RABBITMQ
    assert (row["src_uri"], row["src_queue"], row["type"]) == (
        f"amqp://127.0.0.1:{node.port}/%2f", "s", "dynamic",
    )  # fmt: skip
    with confirming(node.port) as channel:
        for _ in range(20):
            channel.basic_publish("", "s", b"x")
    wait_until(lambda: client.get("/shovels/vhost/%2F/shown")["confirmed"] == 20)
    wait_until(lambda: "empty" in client.get("/shovels/vhost/%2F/shown")["why"])
    code, metrics = get(node, "/metrics", "http/prometheus")
    lines = metrics.decode().splitlines()
    assert code == 200
    assert 'rabbitmq_shovel_dynamic{status="running"} 1' in lines
    about = 'kind="shovel",vhost="/",name="shown",upstream=""'
    assert f"warren_link_forwarded_total{{{about}}} 20" in lines


def test_a_shovel_that_cannot_log_in_says_so(node: BrokerProcess, client: HttpClient) -> None:
    wrong = uri(node.port, "guest:wrong")
    put_shovel(client, "refused", src_uri=wrong, src_queue="s", dest_uri="amqp://", dest_queue="d")
    row = await_state(client, "refused", "terminated")
    assert row["reason"]
    assert row["why"]
    assert row["last_error_code"] == 403
    assert "wrong" not in json.dumps(row)


def test_a_restart_and_a_deletion_are_events_of_rabbitmq(node: BrokerProcess, client: HttpClient) -> None:
    with confirming(node.port) as channel:
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.rabbitmq.event", "shovel.#")
        put_shovel(client, "heard", src_uri="amqp://", src_queue="s2", dest_uri="amqp://", dest_queue="d2")
        await_state(client, "heard", "running")
        assert client.status("DELETE /shovels/vhost/%2F/heard/restart") == 204
        wait_until(lambda: client.get("/shovels/vhost/%2F/heard")["restarts"] == 1)
        await_state(client, "heard", "running")
        assert client.status("DELETE /shovels/vhost/%2F/heard") == 204
        heard: list[tuple[str, str | None]] = []

        def is_removed() -> bool:
            while (found := channel.basic_get(queue, auto_ack=True))[0] is not None:
                headers = found[1].headers
                if headers["name"] == "heard":
                    heard.append((found[0].routing_key, headers.get("status")))
            return ("shovel.worker.removed", None) in heard

        wait_until(is_removed)
    assert heard[:2] == [("shovel.worker.status", "starting"), ("shovel.worker.status", "running")]
    assert heard.count(("shovel.worker.status", "running")) == 2


def test_commands_create_change_check_and_delete_a_shovel(command: Any, client: HttpClient) -> None:
    ends = ("--src-uri", "amqp://", "--src-queue", "c1", "--dest-uri", "amqp://", "--dest-queue", "c2")
    assert "create" in command("shovels", "check", *ends)
    assert client.ask("GET /queues/%2F/c1").status == 404
    command("shovels", "create", "made", *ends, "--set", "src-prefetch-count=5")
    assert "exists" in command("shovels", "create", "made", *ends, status=1)
    row = await_state(client, "made", "running")
    assert row["prefetch_count"] == 5
    command("shovels", "update", "made", "--ack-mode", "on-publish", "--unset", "src-prefetch-count")
    value = client.get("/parameters/shovel/%2F/made")["value"]
    assert (value["ack-mode"], "src-prefetch-count" in value) == ("on-publish", False)
    assert "made" in command("shovel_status")
    assert "made" in command("shovels", "show", "made")
    assert "exists" in command("shovels", "check", "made")
    command("shovels", "restart", "made")
    command("shovels", "delete", "made")
    await_state(client, "made", None)


def test_a_dry_run_says_which_right_is_missing(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /users/weak", {"password": "p", "tags": "policymaker"})
    client.ask("PUT /permissions/%2F/weak", {"configure": "^none$", "write": ".*", "read": ".*"})
    weak = HttpClient(node, "weak:p")
    value = {"src-uri": "amqp://", "src-queue": "w1", "dest-uri": "amqp://", "dest-exchange": "amq.topic"}
    answer = weak.ask("POST /warren/shovels/%2F/check", {"value": value})
    assert answer.status == 200, answer
    (declare,) = (step for step in answer.value["steps"] if step["action"] == "declare queue")
    assert (answer.value["can_run"], declare["state"]) == (False, "refused")
    assert "weak" in declare["text"]
    bad = weak.ask("POST /warren/shovels/%2F/check", {"value": {"src-uri": "amqp://"}})
    assert bad.status == 400


def test_a_dry_run_says_that_an_end_cannot_be_reached(client: HttpClient) -> None:
    value = {
        "src-uri": "amqp://u:secret@127.0.0.1:1",
        "src-queue": "q",
        "dest-uri": "amqp://",
        "dest-queue": "q",
    }
    answer = client.ask("POST /warren/shovels/%2F/check", {"value": value})
    first = answer.value["steps"][0]
    assert (first["end"], first["action"], first["state"]) == ("source", "connect", "refused")
    assert "secret" not in json.dumps(answer.value)


def test_a_dry_run_of_an_existing_shovel_uses_its_stored_password(
    node: BrokerProcess, client: HttpClient, command: Any
) -> None:
    put_shovel(client, "stored", src_uri=uri(node.port), src_queue="s", dest_uri="amqp://", dest_queue="d")
    assert "***" in command("shovels", "show", "stored")
    assert "refused" not in command("shovels", "check", "stored")
    hidden = uri(node.port, "guest:***")
    value = {"src-uri": hidden, "src-queue": "s", "dest-uri": "amqp://", "dest-queue": "d"}
    assert client.ask("POST /warren/shovels/%2F/check", {"value": value}).status == 400


def test_an_exchange_without_upstreams_is_explained(client: HttpClient) -> None:
    answer = client.get("/warren/federation/%2F/exchange/amq.topic")
    assert (answer["can_run"], answer["steps"][0]["state"]) == (False, "refused")
