"""Route traces over HTTP, compared with where messages are actually routed."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess

BINDINGS = 3_000


@pytest.fixture
def channel(node: BrokerProcess) -> Iterator[Any]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        yield connection.channel()


def route(client: HttpClient, exchange: str, key: str, **more: object) -> Any:
    path = f"POST /warren/exchanges/%2F/{quote(exchange, safe='')}/route"
    answer = client.ask(path, {"routing_key": key, **more})
    assert answer.status == 200, answer
    return answer.value


def names(answer: Any) -> list[str]:
    return sorted(queue["name"] for queue in answer["queues"])


def test_a_trace_equals_the_actual_route_and_publishes_nothing(client: HttpClient, channel: Any) -> None:
    channel.exchange_declare("r.shop", "topic", arguments={"alternate-exchange": "r.rest"})
    channel.exchange_declare("r.rest", "fanout", internal=True)
    channel.exchange_declare("r.next", "headers", internal=True)
    for queue in ("r.orders", "r.eu", "r.other", "r.big"):
        channel.queue_declare(queue, exclusive=True)
    channel.queue_bind("r.orders", "r.shop", "order.#")
    channel.exchange_bind("r.next", "r.shop", "order.*")
    channel.queue_bind("r.eu", "r.next", arguments={"region": "eu"})
    channel.queue_bind("r.big", "r.next", arguments={"x-match": "any", "size": 9, "weight": 9})
    channel.queue_bind("r.other", "r.rest")
    headers = {"region": "eu", "CC": ["r.nothing"], "BCC": ["order.copy"]}
    for key, properties in (("order.new", {}), ("order.new", {"headers": headers}), ("else", {})):
        answer = route(client, "r.shop", key, properties=properties)
        channel.basic_publish("r.shop", key, b"x", pika.BasicProperties(headers=properties.get("headers")))
        got = [
            queue for queue in ("r.orders", "r.eu", "r.other", "r.big") if channel.basic_get(queue, True)[0]
        ]
        assert names(answer) == sorted(got)
        assert all(queue["is_certain"] for queue in answer["queues"])
        assert not any(channel.basic_get(queue, True)[0] for queue in got)
    alternate = route(client, "r.shop", "else")
    assert [visit["name"] for visit in alternate["exchanges"]] == ["r.shop", "r.rest"]
    assert alternate["exchanges"][1]["is_alternate"]
    reasons = {
        miss["destination"]: miss["reason"] for miss in route(client, "r.shop", "order.a.b")["unmatched"]
    }
    assert reasons == {"r.next": "the pattern 'order.*' wants its end as word 3, which is 'b'"}
    reasons = {miss["destination"]: miss["reason"] for miss in route(client, "r.next", "")["unmatched"]}
    assert reasons["r.eu"] == "x-match is all: header 'region' is missing"


def test_a_trace_changes_no_counter(client: HttpClient, channel: Any) -> None:
    before = client.get("/exchanges/%2F/amq.topic").get("message_stats")
    channel.queue_declare("r.counted", exclusive=True)
    channel.queue_bind("r.counted", "amq.topic", "r.#")
    assert names(route(client, "amq.topic", "r.x")) == ["r.counted"]
    assert client.get("/exchanges/%2F/amq.topic").get("message_stats") == before
    assert channel.queue_declare("r.counted", passive=True).method.message_count == 0


def test_limits_of_queues_are_taken_into_account(client: HttpClient, channel: Any) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish", "x-dead-letter-exchange": "r.none"}
    channel.queue_declare("r.full", exclusive=True, arguments=arguments)
    (queue,) = route(client, "amq.default", "r.full")["queues"]
    assert (queue["outcome"], queue["dead_letter"]) == ("accepted", None)
    channel.basic_publish("", "r.full", b"x")
    (queue,) = route(client, "amq.default", "r.full")["queues"]
    assert queue["outcome"] == "refused"
    channel.queue_declare(
        "r.short", exclusive=True, arguments={"x-max-length-bytes": 3, "x-dead-letter-exchange": "r.none"}
    )
    (queue,) = route(client, "amq.default", "r.short", payload_bytes=4)["queues"]
    assert queue["outcome"] == "dropped"
    assert queue["dead_letter"] == {"exchange": "r.none", "routing_key": None, "exists": False}


def test_a_random_choice_is_reported(client: HttpClient, channel: Any) -> None:
    channel.exchange_declare("r.random", "x-random", auto_delete=True)
    for queue in ("r.heads", "r.tails"):
        channel.queue_declare(queue, exclusive=True)
        channel.queue_bind(queue, "r.random")
    answer = route(client, "r.random", "k")
    assert names(answer) == ["r.heads", "r.tails"]
    assert [queue["is_certain"] for queue in answer["queues"]] == [False, False]
    assert {queue["matched_bindings"][0]["probability"] for queue in answer["queues"]} == {0.5}


def test_of_thousands_of_misses_the_nearest_are_listed_and_all_counted(
    client: HttpClient, channel: Any
) -> None:
    channel.exchange_declare("r.many", "topic", auto_delete=True)
    channel.queue_declare("r.target", exclusive=True)
    for number in range(BINDINGS):
        channel.queue_bind("r.target", "r.many", f"shop.{number}.order")
    answer = route(client, "r.many", "shop.7.orders", misses=5)
    assert (len(answer["unmatched"]), answer["unmatched_total"], answer["is_routed"]) == (5, BINDINGS, False)
    assert answer["unmatched"][0]["binding_key"] == "shop.7.order"
    assert not answer["is_topology_changed"]


def test_reasons_to_refuse_a_publish_are_reported(client: HttpClient, channel: Any) -> None:
    channel.exchange_declare("r.internal", "fanout", internal=True, auto_delete=True)
    answer = route(
        client, "r.internal", "k", properties={"user_id": "somebody", "headers": {"CC": "no list"}}
    )
    refusals = " ".join(answer["refusals"])
    for text in ("403 ACCESS_REFUSED", "user_id property set to", "unacceptable_type_in_header"):
        assert text in refusals


def test_a_direct_reply_queue_is_revealed_only_to_users_who_know_it(client: HttpClient, channel: Any) -> None:
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *_: None, auto_ack=True)
    answer = route(client, "amq.default", "amq.rabbitmq.reply-to.g", misses=1000)
    assert "reply-to." not in json.dumps(answer["unmatched"])


@pytest.mark.parametrize(
    ("exchange", "body", "status"),
    [
        ("r.nowhere", {"routing_key": "k"}, 404),
        ("amq.topic", {}, 400),
        ("amq.topic", {"routing_key": "k" * 256}, 400),
        ("amq.topic", {"routing_key": "k", "unmatched": 1001}, 400),
        ("amq.topic", {"routing_key": "k", "unmatched": "x"}, 400),
        ("amq.topic", {"routing_key": "k", "properties": {"headers": {"a": None}}}, 400),
    ],
)
def test_invalid_requests_are_refused(
    client: HttpClient, exchange: str, body: dict[str, object], status: int
) -> None:
    assert client.status(f"POST /warren/exchanges/%2F/{exchange}/route", body) == status
