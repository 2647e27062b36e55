"""Connections of the stream protocol over HTTP, with the fields of RabbitMQ 3.10.8."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess
from tests.integration.own_vhost import channel_in_vhost
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands

VHOST = "streaming"
CONNECTION = {
    "auth_mechanism", "channel_max", "channels", "client_properties", "connected_at", "frame_max",
    "garbage_collection", "host", "name", "node", "peer_cert_issuer", "peer_cert_subject",
    "peer_cert_validity", "peer_host", "peer_port", "port", "protocol", "recv_cnt", "recv_oct",
    "recv_oct_details", "reductions", "reductions_details", "send_cnt", "send_oct", "send_oct_details",
    "send_pend", "ssl", "ssl_cipher", "ssl_hash", "ssl_key_exchange", "ssl_protocol", "state", "timeout",
    "user", "user_provided_name", "user_who_performed_action", "vhost",
}  # fmt: skip


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient) -> Iterator[Any]:
    with channel_in_vhost(node, client, VHOST) as channel:
        channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
        yield channel


@pytest.fixture
def raw(node: BrokerProcess, channel: Any) -> Iterator[RawStreamClient]:
    """A client that has published twenty messages to the stream as `ref`, and read them."""
    raw = RawStreamClient(node.ports["stream"], VHOST, connection_name="mine")
    raw.ask(commands.DeclarePublisher(1, "ref", "s"))
    raw.publish(*range(1, 21))
    raw.confirmed(20)
    raw.subscribe(7, "s", credit=10, name="audit")
    raw.hear()
    yield raw
    raw.close()


def test_a_stream_connection_is_in_the_common_list_and_at_its_own_paths(
    node: BrokerProcess, client: HttpClient, channel: Any, raw: RawStreamClient
) -> None:
    path = f"{VHOST}/{quoted(raw.name)}"
    everywhere = [
        *(one for one in client.get("/connections") if one["protocol"] == "stream"),
        *(one for one in client.get(f"/vhosts/{VHOST}/connections") if one["protocol"] == "stream"),
        *(one for one in client.get("/connections/username/guest") if one["protocol"] == "stream"),
        *client.get("/stream/connections"),
        *client.get(f"/stream/connections/{VHOST}"),
        client.get(f"/stream/connections/{path}"),
        client.get(f"/connections/{quoted(raw.name)}"),
    ]
    assert len(everywhere) == 7
    for found in everywhere:
        assert found.keys() == CONNECTION
        assert (found["name"], found["user"], found["vhost"]) == (raw.name, "guest", VHOST)
        assert (found["channels"], found["channel_max"], found["state"]) == (0, 0, "running")
        assert (found["client_properties"], found["ssl"]) == ({"connection_name": "mine"}, False)
        assert (found["user_provided_name"], found["auth_mechanism"]) == ("mine", "PLAIN")
    assert client.get(f"/connections/{quoted(raw.name)}/channels") == []
    assert client.get("/stream/connections?page=1&page_size=1")["total_count"] == 1
    assert client.get("/overview")["object_totals"]["connections"] == 2
    assert client.get("/stream/connections/%2F") == []


def test_its_publishers_and_consumers_are_shown(client: HttpClient, raw: RawStreamClient) -> None:
    on = f"/stream/connections/{VHOST}/{quoted(raw.name)}"
    (published,) = client.get(f"{on}/publishers")
    details = published["connection_details"]
    assert (details["name"], details["user"], details["peer_host"]) == (raw.name, "guest", "127.0.0.1")
    assert published | {"connection_details": details} == {
        "connection_details": details,
        "queue": {"name": "s", "vhost": VHOST},
        "publisher_id": 1,
        "reference": "ref",
        "published": 20,
        "confirmed": 20,
        "errored": 0,
    }
    for path in (f"/{VHOST}", f"/{VHOST}/s", ""):
        assert client.get(f"/stream/publishers{path}") == [published]
    (consumer,) = client.get(f"{on}/consumers")
    assert consumer == {
        "connection_details": details,
        "queue": {"name": "s", "vhost": VHOST},
        "subscription_id": 7,
        "credits": 9,
        "consumed": 20,
        "offset": 19,
        "offset_lag": 0,
        "properties": {"name": "audit"},
    }
    assert client.get("/stream/consumers") == client.get(f"/stream/consumers/{VHOST}") == [consumer]
    assert client.get("/stream/consumers/%2F") == client.get("/stream/publishers/%2F") == []
    for nowhere in (
        "/stream/publishers/nosuch", f"/stream/publishers/{VHOST}/nosuch", "/stream/consumers/nosuch",
        "/stream/connections/nosuch", f"/stream/connections/{VHOST}/nosuch/publishers",
        f"/stream/connections/%2F/{quoted(raw.name)}",
    ):  # fmt: skip
        assert client.refusal(f"GET {nowhere}") == (404, "Not Found")


def test_it_counts_as_a_consumer_of_its_queue(client: HttpClient, channel: Any, raw: RawStreamClient) -> None:
    queue = client.get(f"/queues/{VHOST}/s")
    assert (queue["consumers"], queue["readers"]) == (1, {queue["node"]: 1})
    (shown,) = queue["consumer_details"]
    assert shown["consumer_tag"] == "stream.subid-7"
    assert (shown["ack_required"], shown["active"], shown["activity_status"]) == (False, True, "up")
    assert (shown["channel_details"]["connection_name"], shown["channel_details"]["number"]) == (raw.name, 0)
    assert client.get(f"/consumers/{VHOST}") == [shown]
    assert client.refusal(f"DELETE /queues/{VHOST}/s?if-unused=true")[0] == 400
    raw.ask(commands.Unsubscribe(7))
    assert client.get(f"/queues/{VHOST}/s")["consumers"] == 0
    assert channel.queue_declare("s", passive=True).method.consumer_count == 0


@pytest.mark.parametrize("path", ["/stream/connections/{vhost}/{name}", "/connections/{name}"])
def test_it_is_closed_without_a_frame(client: HttpClient, raw: RawStreamClient, path: str) -> None:
    line = "DELETE " + path.format(vhost=VHOST, name=quoted(raw.name))
    assert client.ask(line, headers={"x-reason": "because"}).status == 204
    with pytest.raises(ConnectionError, match="has closed the connection"):
        raw.hear()
    assert client.get("/stream/connections") == []
    assert client.status(line) == 404


def test_other_users_see_and_close_only_their_own_connections(
    node: BrokerProcess, client: HttpClient, raw: RawStreamClient
) -> None:
    for name, tags in (("mine", "management"), ("sees", "monitoring")):
        client.ask(f"PUT /users/{name}", {"password": name, "tags": tags})
        client.ask(f"PUT /permissions/{VHOST}/{name}", {"configure": "", "write": "", "read": ".*"})
    own = RawStreamClient(node.ports["stream"], VHOST, user="mine")
    own.subscribe(1, "s")
    mine, sees = HttpClient(node, "mine:mine"), HttpClient(node, "sees:sees")
    assert [found["name"] for found in mine.get("/stream/connections")] == [own.name]
    assert len(sees.get(f"/stream/connections/{VHOST}")) == 2
    assert (len(mine.get("/stream/publishers")), len(sees.get("/stream/publishers"))) == (0, 1)
    assert [found["subscription_id"] for found in mine.get("/stream/consumers")] == [1]
    others = f"/stream/connections/{VHOST}/{quoted(raw.name)}"
    for path in (others, f"{others}/consumers", f"{others}/publishers"):
        assert mine.refusal(f"GET {path}") == (401, "User not authorised to access object")
        assert sees.status(f"GET {path}") == 200
    for other in (mine, sees):
        assert other.refusal(f"DELETE {others}")[0] == 401
    assert mine.status(f"DELETE /stream/connections/{VHOST}/{quoted(own.name)}") == 204
    own.close()
    for name in ("mine", "sees"):
        client.ask(f"DELETE /users/{name}")


def test_bytes_of_a_stream_connection_are_counted_for_its_vhost(
    client: HttpClient, raw: RawStreamClient
) -> None:
    name = raw.name
    sent = client.get(f"/connections/{quoted(name)}")
    assert sent["recv_oct"] > 20 * 5
    assert sent["recv_cnt"] > 0
    raw.close()
    while client.get("/stream/connections"):
        pass
    assert client.get(f"/vhosts/{VHOST}")["recv_oct"] >= sent["recv_oct"]
