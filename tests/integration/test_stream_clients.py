"""Publishers and consumers of streams in the HTTP API."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.own_vhost import channel_in_vhost
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands

VHOST = "clients"
STREAM = f"/warren/streams/{VHOST}/s"


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient) -> Iterator[Any]:
    with channel_in_vhost(node, client, VHOST) as channel:
        arguments = {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 1_000_000}
        channel.queue_declare("s", durable=True, arguments=arguments)
        channel.queue_declare("none", durable=True)
        yield channel


def publisher(node: BrokerProcess, count: int) -> RawStreamClient:
    """A client that has published `count` messages to the stream as `ref`."""
    raw = RawStreamClient(node.ports["stream"], VHOST)
    raw.ask(commands.DeclarePublisher(1, "ref", "s"))
    raw.publish(*range(1, count + 1))
    raw.confirmed(count)
    return raw


def test_publishers_and_consumers_are_shown_with_their_progress(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    writes = publisher(node, 20)
    reads = RawStreamClient(node.ports["stream"], VHOST)
    reads.subscribe(7, "s", name="audit")
    reads.hear()
    reads.say(commands.StoreOffset("audit", "s", 12).encode())
    reads.ask(commands.QueryOffset("audit", "s"))
    channel.basic_qos(prefetch_count=5)
    tag = channel.basic_consume("s", lambda *_: None, arguments={"x-stream-offset": "first"})
    channel.connection.process_data_events()
    found = client.get(f"{STREAM}/clients")
    over_amqp, over_streams = found["readers"]
    assert (over_amqp["name"], over_amqp["channel"], over_amqp["offset"], over_amqp["lag"]) == (tag, 1, 5, 15)
    assert over_streams == {
        "protocol": "stream",
        "connection": reads.name,
        "user": "guest",
        "channel": None,
        "name": "audit",
        "subscription": 7,
        "offset": 20,
        "lag": 0,
        "delivered": 20,
        "is_active": True,
    }
    assert found["publishers"] == [
        {
            "connection": writes.name,
            "user": "guest",
            "publisher": 1,
            "reference": "ref",
            "published": 20,
            "confirmed": 20,
            "refused": 0,
        }
    ]
    assert found["offsets"] == [{"reference": "audit", "offset": 12, "lag": 7}]
    assert found["sequences"] == [{"reference": "ref", "sequence": 20}]
    (listed,) = client.get(f"/warren/streams/{VHOST}")
    assert (listed["readers"], listed["max_lag"], listed["publishers"], listed["messages"]) == (2, 15, 1, 20)
    reads.close()
    writes.close()


def test_an_inactive_consumer_of_a_group_has_no_offset(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    reads = RawStreamClient(node.ports["stream"], VHOST)
    for number in (1, 2):
        reads.say(
            commands.Subscribe(
                number, "s", RawStreamClient.FIRST, 10, {"name": "group", "single-active-consumer": "true"}
            ).encode(1)
        )
    reads.ask(commands.QueryOffset("none", "s"))
    found = client.get(f"{STREAM}/clients")["readers"]
    assert [(reader["subscription"], reader["offset"], reader["lag"]) for reader in found] == [
        (1, None, None), (2, None, None),
    ]  # fmt: skip
    assert client.get(f"/warren/streams/{VHOST}")[0]["max_lag"] is None
    reads.close()


def test_streams_are_listed_in_pages_and_by_column(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    publisher(node, 3).close()
    channel.queue_declare("t", durable=True, arguments={"x-queue-type": "stream"})
    assert [found["name"] for found in client.get(f"/warren/streams/{VHOST}")] == ["s", "t"]
    page = client.get(f"/warren/streams/{VHOST}?page=1&page_size=1&sort=messages&sort_reverse=true")
    assert (page["total_count"], page["items"][0]["name"], page["items"][0]["committed_offset"]) == (
        2,
        "s",
        3,
    )
    empty = client.get(f"/warren/streams/{VHOST}?sort=name&sort_reverse=true&columns=name,first_time,max_lag")
    assert empty[0] == {"name": "t", "first_time": None, "max_lag": None}
    kept = {"max_age_ms": 7 * 86_400_000, "max_bytes": 1_000_000, "segment_size": 500_000_000}
    assert client.get(STREAM)["retention"].items() >= kept.items()
    assert client.get("/warren/streams?columns=name,vhost")[:2] == [
        {"name": "s", "vhost": VHOST},
        {"name": "t", "vhost": VHOST},
    ]


def test_consumers_are_shown_only_with_read_permission_on_the_stream(
    node: BrokerProcess, client: HttpClient, channel: Any
) -> None:
    client.ask("PUT /users/blind", {"password": "blind", "tags": "management"})
    client.ask(f"PUT /permissions/{VHOST}/blind", {"configure": "", "write": "", "read": "^x"})
    blind = HttpClient(node, "blind:blind")
    assert blind.status(f"GET {STREAM}/clients") == 401
    assert client.status(f"GET /warren/streams/{VHOST}/none/clients") == 404
    assert client.status(f"GET /warren/streams/{VHOST}/nosuch/clients") == 404
    client.ask(f"DELETE /permissions/{VHOST}/blind")
    assert blind.status(f"GET /warren/streams/{VHOST}") == 401
    assert blind.get("/warren/streams") == []
    client.ask("DELETE /users/blind")
