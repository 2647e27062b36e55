"""Shovels of a running broker: set over HTTP, shown, restarted and deleted."""

import json
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from click.testing import CliRunner
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.shovels import (
    await_state,
    confirming,
    put_shovel,
    ready,
    shovels,
    take,
    uri,
    wait_until,
)

from warren.cli.main import main


@pytest.fixture(scope="module")
def other() -> Iterator[BrokerProcess]:
    """A second broker."""
    with broker() as node:
        yield node


def test_a_shovel_moves_messages_to_another_broker_until_it_is_deleted(
    node: BrokerProcess, other: BrokerProcess, client: HttpClient
) -> None:
    with confirming(node.port) as source, confirming(other.port) as destination:
        put_shovel(
            client, "first", src_uri=uri(node.port), src_queue="s1", dest_uri=uri(other.port), dest_queue="d1"
        )
        shown = await_state(client, "first", "running")
        assert (shown["src_queue"], shown["dest_queue"], shown["type"]) == ("s1", "d1", "dynamic")
        assert shown["src_uri"] == f"amqp://127.0.0.1:{node.port}/%2f"
        for number in range(100):
            source.basic_publish("", "s1", b"%d" % number)
        wait_until(lambda: ready(destination, "d1") == 100)
        assert [body for body, _ in take(destination, "d1")] == [b"%d" % number for number in range(100)]
        assert client.status("DELETE /shovels/vhost/%2F/first") == 204
        assert "first" not in shovels(client)
        wait_until(lambda: source.queue_declare("s1", passive=True).method.consumer_count == 0)
        source.basic_publish("", "s1", b"stays")
        assert ready(source, "s1") == 1
        assert client.get("/parameters/shovel") == []


def test_a_link_that_goes_silent_is_noticed_by_heartbeats_of_ten_seconds(
    node: BrokerProcess, other: BrokerProcess, client: HttpClient
) -> None:
    for name, query, heartbeat_s in (("ten", "", 10), ("four", "?heartbeat=4", 4)):
        put_shovel(
            client, name, src_uri=uri(other.port) + query, src_queue=name, dest_uri="amqp://", dest_queue=name
        )
        await_state(client, name, "running")
        there = HttpClient(other)
        (agreed,) = [
            each["timeout"]
            for each in there.get("/connections")
            if each["client_properties"].get("connection_name") == f"Shovel {name}"
        ]
        there.close()
        assert agreed == heartbeat_s
        assert client.status(f"DELETE /shovels/vhost/%2F/{name}") == 204


@pytest.mark.parametrize("ack_mode", ["on-confirm", "on-publish", "no-ack"])
def test_a_node_shovels_to_itself_without_a_socket(
    node: BrokerProcess, client: HttpClient, ack_mode: str
) -> None:
    source, destination = f"from-{ack_mode}", f"to-{ack_mode}"
    with confirming(node.port) as channel:
        put_shovel(
            client, ack_mode, src_uri="amqp://", src_queue=source, dest_uri="amqp://", dest_queue=destination,
            ack_mode=ack_mode,
        )  # fmt: skip
        await_state(client, ack_mode, "running")
        protocols = {one["protocol"] for one in client.get("/connections")}
        assert "Direct 0-9-1" in protocols
        for number in range(200):
            channel.basic_publish("", source, b"%d" % number, pika.BasicProperties(delivery_mode=2))
        wait_until(lambda: ready(channel, destination) == 200)
        assert [body for body, _ in take(channel, destination)] == [b"%d" % at for at in range(200)]
        assert client.status(f"DELETE /shovels/vhost/%2F/{ack_mode}") == 204


def test_a_shovel_that_has_moved_the_length_of_its_queue_is_deleted(
    node: BrokerProcess, client: HttpClient
) -> None:
    with confirming(node.port) as channel:
        channel.queue_declare("drained", durable=True)
        for number in range(1_500):
            channel.basic_publish("", "drained", b"%d" % number)
        put_shovel(
            client, "drain", src_uri=uri(node.port), src_queue="drained", src_delete_after="queue-length",
            dest_uri="amqp://", dest_queue="full",
        )  # fmt: skip
        await_state(client, "drain", None)
        assert client.get("/parameters/shovel") == []
        assert (ready(channel, "drained"), ready(channel, "full")) == (0, 1_500)


def test_a_local_end_has_the_rights_of_the_user_who_set_the_shovel(
    node: BrokerProcess, client: HttpClient
) -> None:
    nothing = {"configure": "", "write": "", "read": ".*"}
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    client.ask("PUT /users/maker", {"password": "secret", "tags": "policymaker"})
    client.ask("PUT /permissions/%2F/maker", nothing)
    maker = HttpClient(node, "maker:secret")
    put_shovel(
        maker, "limited", src_uri="amqp://", src_queue="mine", dest_uri="amqp://", dest_queue="yours",
        reconnect_delay=1,
    )  # fmt: skip
    maker.close()
    refused = await_state(client, "limited", "terminated")
    assert "ACCESS_REFUSED" in refused["reason"], refused
    assert "'maker'" in refused["reason"], refused
    client.ask("PUT /permissions/%2F/maker", everything)
    await_state(client, "limited", "running")
    assert client.status("DELETE /users/maker") == 204
    gone = await_state(client, "limited", "terminated")
    assert "maker" in gone["reason"], gone
    assert client.status("DELETE /shovels/vhost/%2F/limited") == 204


def test_a_shovel_is_restarted_and_a_wrong_one_is_refused(node: BrokerProcess, client: HttpClient) -> None:
    put_shovel(client, "again", src_uri="amqp://", src_queue="a", dest_uri="amqp://", dest_queue="b")
    before = await_state(client, "again", "running")
    assert client.status("DELETE /shovels/vhost/%2F/again/restart") == 204
    wait_until(lambda: shovels(client)["again"].get("connected_at", 0) > before["connected_at"])
    both = {"src-uri": "amqp://", "src-queue": "a", "src-exchange": "b", "dest-uri": "amqp://"}
    status, reason = client.refusal("PUT /parameters/shovel/%2F/wrong", {"value": both})
    assert (status, reason) == (400, "Validation failed\n\nCannot specify 'src-exchange' and 'src-queue'\n")
    assert "wrong" not in shovels(client)
    assert client.status("DELETE /shovels/vhost/%2F/again") == 204
    assert client.status("DELETE /shovels/vhost/%2F/again/restart") == 404


def test_a_removed_vhost_ends_its_shovels(client: HttpClient) -> None:
    client.ask("PUT /vhosts/short")
    value = {"src-uri": "amqp:///short", "src-queue": "a", "dest-uri": "amqp:///short", "dest-queue": "b"}
    assert client.status("PUT /parameters/shovel/short/s", {"value": value}) == 201
    await_state(client, "s", "running")
    assert client.status("DELETE /vhosts/short") == 204
    await_state(client, "s", None)


def test_shovels_run_again_after_a_restart(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        client = HttpClient(node)
        put_shovel(client, "kept", src_uri="amqp://", src_queue="a", dest_uri="amqp://", dest_queue="b")
        await_state(client, "kept", "running")
        client.close()
        assert node.stop() == 0
    with broker("--data-dir", str(tmp_path)) as node, confirming(node.port) as channel:
        client = HttpClient(node)
        await_state(client, "kept", "running")
        channel.basic_publish("", "a", b"m")
        wait_until(lambda: ready(channel, "b") == 1)
        client.close()


def test_a_static_shovel_runs_and_cannot_be_changed_over_http(tmp_path: Path, other: BrokerProcess) -> None:
    file = tmp_path / "warren.conf"
    file.write_text(
        f"shovel.fixed.src-uri.1 = {uri(1)}\nshovel.fixed.src-uri.2 = {uri(other.port)}\n"
        f"shovel.fixed.src-queue = s\nshovel.fixed.dest-uri = {uri(other.port)}\n"
        "shovel.fixed.dest-queue = d\n"
        "shovel.fixed.dest-add-forward-headers = true\nshovel.fixed.src-prefetch-count = 10\n"
        'shovel.fixed.dest-publish-properties = {"delivery_mode": 2}\nshovel.fixed.reconnect-delay = 1\n'
    )
    with broker(config=file) as node, confirming(other.port) as channel:
        client = HttpClient(node)
        shown = await_state(client, "fixed", "running")
        assert (shown["type"], shown["src_queue"], shown["prefetch_count"]) == ("static", "s", 10)
        assert "vhost" not in shown
        assert client.status("DELETE /shovels/vhost/%2F/fixed") == 404
        assert client.status("DELETE /shovels/vhost/%2F/fixed/restart") == 404
        assert client.get("/parameters") == []
        address = ("--uri", f"http://127.0.0.1:{node.ports['http']}")
        shown = CliRunner().invoke(main, ["shovels", "show", "fixed", "--json", *address]).output
        assert json.loads(shown)["type"] == "static"
        channel.basic_publish("", "s", b"m")
        wait_until(lambda: ready(channel, "d") == 1)
        [(_, properties)] = take(channel, "d")
        entry = properties.headers["x-shovelled"][0]
        assert list(entry) == ["shovelled-by", "shovel-type", "shovel-name", "src-uri", "dest-uri"]
        assert (entry["shovel-type"], properties.delivery_mode) == ("static", 2)
        client.close()


def test_a_wrong_static_shovel_is_refused_with_its_place_and_without_its_password(tmp_path: Path) -> None:
    file = tmp_path / "warren.conf"
    file.write_text("\nshovel.wrong.src-uri = http://u:secret@h\nshovel.wrong.dest-uri = amqp://\n")
    status, text = refusal("--config", str(file))
    assert status == 1
    assert "warren.conf:2: shovel 'wrong': Must specify 'src-exchange' or 'src-queue'" in text
    assert "secret" not in text
