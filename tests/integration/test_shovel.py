"""Shovels of a running broker: set over HTTP, shown, restarted and deleted."""

from collections.abc import Iterator

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
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
