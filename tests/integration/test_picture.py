"""The topology of a virtual host as the web interface draws it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.own_vhost import channel_in_vhost
from tests.integration.shovels import wait_until

from warren.limits_http import (
    PICTURED_AROUND_MAX,
    PICTURED_CONSUMERS_MAX,
    PICTURED_EACH_MAX,
)

MANY = 500


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient) -> Iterator[Any]:
    with channel_in_vhost(node, client, "drawn") as channel:
        yield channel


def drawn(client: HttpClient, query: str = "") -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    answer = client.get(f"/warren/topology/drawn{query}")
    things = {thing["id"]: thing for thing in answer["nodes"]}
    lines = {(line["from"], line["to"]): line for line in answer["edges"]}
    assert all(start in things and end in things for start, end in lines)
    return things, lines


def test_two_steps_in_each_direction_are_drawn(client: HttpClient, channel: Any) -> None:
    for name in ("a", "b", "c", "d", "e"):
        channel.exchange_declare(
            name, "topic", arguments={"alternate-exchange": "e"} if name == "c" else None
        )
    for source, destination in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "c")):
        channel.exchange_bind(destination, source, "k")
    channel.queue_declare("q", arguments={"x-dead-letter-exchange": "e"})
    for key in ("1", "2", "3", "4"):
        channel.queue_bind("q", "c", key)
    channel.basic_consume("q", lambda *_: None, consumer_tag="eater")
    client.ask("PUT /warren/queues/drawn/q/pause")
    things, lines = drawn(client, "?kind=exchange&name=c")
    columns = {name: thing["layer"] for name, thing in things.items()}
    assert columns == {
        "exchange c": 0, "exchange b": -1, "exchange d": -1, "exchange a": -2, "queue q": 1, "queue q 0": 2,
        "exchange e": 1,
    }  # fmt: skip
    assert lines["exchange c", "queue q"]["keys"] == ["1", "2", "3"]
    assert lines["exchange c", "queue q"]["count"] == 4
    assert lines["exchange c", "exchange e"]["kind"] == "alternate"
    assert lines["queue q", "exchange e"]["kind"] == "dead-letter"
    assert lines["queue q", "queue q 0"]["kind"] == "consumer"
    assert things["queue q"]["paused"]
    assert things["queue q 0"]["name"] == "eater"
    things, _ = drawn(client, "?kind=queue&name=q")
    assert {name for name, thing in things.items() if thing["layer"] < 0} == {
        "exchange c", "exchange b", "exchange d",
    }  # fmt: skip


def test_of_many_objects_the_first_are_drawn_and_the_others_counted(client: HttpClient, channel: Any) -> None:
    channel.exchange_declare("hub", "fanout")
    for number in range(MANY):
        channel.queue_declare(f"q{number:03}")
        channel.queue_bind(f"q{number:03}", "hub")
    for number in range(PICTURED_CONSUMERS_MAX + 2):
        channel.basic_consume("q000", lambda *_: None, consumer_tag=f"c{number}")
    for query, most in (("", PICTURED_EACH_MAX), ("?kind=exchange&name=hub", PICTURED_AROUND_MAX)):
        things, _ = drawn(client, query)
        assert things["exchange hub"]["more_downstream"] == MANY - most
        assert things["queue q000"]["more_downstream"] == 2
        assert len(things) == 1 + most + PICTURED_CONSUMERS_MAX


def test_exchanges_are_placed_behind_those_that_lead_to_them(client: HttpClient, channel: Any) -> None:
    for name in ("last", "middle", "first", "one", "other"):
        channel.exchange_declare(name, "fanout")
    channel.queue_declare("q")
    for source, destination in (
        ("first", "middle"), ("first", "last"), ("middle", "last"), ("one", "other"), ("other", "one"),
    ):  # fmt: skip
        channel.exchange_bind(destination, source)
    channel.queue_bind("q", "last")
    things, _ = drawn(client)
    columns = {thing["name"]: thing["layer"] for thing in things.values()}
    assert columns["first"] < columns["middle"] < columns["last"] < columns["q"]
    assert set(columns) == {"first", "middle", "last", "q", "one", "other"}


def test_missing_objects_are_not_drawn(client: HttpClient, channel: Any) -> None:
    assert drawn(client) == ({}, {})
    assert client.status("GET /warren/topology/drawn?kind=queue&name=none") == 404
    assert client.status("GET /warren/topology/drawn?kind=star&name=none") == 400
    assert client.status("GET /warren/topology/none") == 404


def put(client: HttpClient, component: str, name: str, **value: object) -> None:
    body = {"value": {key.replace("_", "-"): item for key, item in value.items()}}
    assert client.ask(f"PUT /parameters/{component}/drawn/{name}", body).status == 201


@pytest.fixture
def links(node: BrokerProcess, client: HttpClient, channel: Any) -> None:
    """A shovel within the vhost, two from outside, one of which cannot log in, and a federation link."""
    there = f"@127.0.0.1:{node.port}/%2f"
    for name in ("in", "out"):
        channel.queue_declare(name)
    channel.exchange_declare("fed", "topic", durable=True)
    here = "amqp:///drawn"
    put(client, "shovel", "within", src_uri=here, src_queue="in", dest_uri=here, dest_queue="out")
    remote = {"src_queue": "away", "dest_uri": here, "dest_queue": "in"}
    put(client, "shovel", "fetching", src_uri=f"amqp://guest:guest{there}", **remote)
    put(client, "shovel", "refused", src_uri=f"amqp://guest:wrong{there}", **remote)
    put(client, "federation-upstream", "site", uri=f"amqp://guest:guest{there}")
    policy = {"pattern": "^fed$", "definition": {"federation-upstream": "site"}, "apply-to": "exchanges"}
    assert client.ask("PUT /policies/drawn/fed", policy).status == 201


def test_links_are_drawn_to_brokers_without_credentials_and_those_that_fail_come_first(
    node: BrokerProcess, client: HttpClient, links: None
) -> None:
    away = f"broker amqp://127.0.0.1:{node.port}/%2f"

    def shown() -> dict[str, list[str]]:
        _, lines = drawn(client)
        return {
            f"{start} → {end}": [f"{link['name']} {link['state']}" for link in line["links"]]
            for (start, end), line in lines.items()
            if "links" in line
        }

    expected = {
        f"{away} → queue in": ["refused terminated", "fetching running"],
        "queue in → queue out": ["within running"],
        f"{away} → exchange fed": ["fed running"],
    }
    wait_until(lambda: shown() == expected, lambda: str(shown()))
    things, lines = drawn(client)
    assert things[away]["kind"] == "broker"
    assert things[away]["layer"] < things["queue in"]["layer"] < things["queue out"]["layer"]
    edge = lines[away, "queue in"]
    assert (edge["kind"], edge["keys"], edge["count"]) == ("shovel", ["refused", "fetching"], 2)
    assert "login was refused" in edge["links"][0]["why"]
    assert lines[away, "exchange fed"]["links"][0]["upstream"] == "site"
    answer = client.get("/warren/topology/drawn")
    assert answer["links_total"] == 4
    assert "guest:" not in str(answer)
    assert "wrong" not in str(answer)
    # Around a queue only its own links are drawn.
    things, lines = drawn(client, "?kind=queue&name=out")
    assert set(lines) == {("queue in", "queue out")}


def test_links_are_drawn_for_users_who_may_monitor_only(
    node: BrokerProcess, client: HttpClient, links: None
) -> None:
    client.ask("PUT /users/onlooker", {"password": "x", "tags": "management"})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    client.ask("PUT /permissions/drawn/onlooker", everything)
    onlooker = HttpClient(node, "onlooker:x")
    assert onlooker.get("/warren/topology/drawn")["links_total"] == 0
    client.ask("PUT /users/onlooker", {"password": "x", "tags": "monitoring"})
    assert onlooker.get("/warren/topology/drawn")["links_total"] == 4
    client.ask("DELETE /users/onlooker")
