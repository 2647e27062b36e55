"""Exchanges, queues and bindings over HTTP: the checks of a channel, with RabbitMQ's texts."""

import pytest
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess
from tests.integration.test_serve import connect


@pytest.fixture(scope="module", autouse=True)
def vhost(client: HttpClient) -> None:
    client.ask("PUT /vhosts/t")
    client.ask("PUT /users/m", {"password": "p", "tags": "management"})
    client.ask("PUT /permissions/t/m", {"configure": "^m", "write": "^m", "read": "^m"})


def test_a_redeclared_exchange_is_compared_with_the_existing_one(client: HttpClient) -> None:
    assert client.status("PUT /exchanges/t/e", {"type": "direct", "durable": True}) == 201
    assert client.status("PUT /exchanges/t/e", {"type": "direct", "durable": "true"}) == 204
    assert client.refusal("PUT /exchanges/t/e", {"type": "topic", "durable": True}) == (
        400,
        "inequivalent arg 'type' for exchange 'e' in vhost 't': received 'topic' but current is 'direct'",
    )
    assert client.status("DELETE /exchanges/t/e") == 204
    assert client.status("DELETE /exchanges/t/e") == 404


@pytest.mark.parametrize(
    ("line", "body", "answer"),
    [
        ("PUT /exchanges/t/bad", {"type": "nope"}, (400, "unknown exchange type 'nope'")),
        ("PUT /exchanges/t/bad", {"type": True}, (400, "invalid exchange type 'true'")),
        ("PUT /exchanges/t/bad", {"durable": "x"}, (400, ["not_boolean", "x"])),
        ("PUT /exchanges/t/bad", {"arguments": {"x": None}}, (400, "null_not_allowed")),
        ("PUT /exchanges/t/amq.bad", {"type": "direct"}, (401, "Access refused.")),
        ("PUT /exchanges/t/amq.default", {"type": "direct"}, (401, "Access refused.")),
        ("PUT /exchanges/nosuch/e", {}, (404, "vhost_not_found")),
        ("DELETE /exchanges/t/amq.direct", None, (401, "Access refused.")),
        ("PUT /queues/t/bad", {"auto_delete": "yes please"}, (400, ["not_boolean", "yes please"])),
        (
            "PUT /queues/t/bad",
            {"arguments": {"x-message-ttl": -1}},
            (400, "invalid arg 'x-message-ttl' for queue 'bad' in vhost 't': {value_negative,-1}"),
        ),
        ("PUT /queues/t/bad", {"node": "nosuch@x"}, (400, "Node nosuch@x could not be contacted")),
        ("PUT /queues/t/bad", {"passive": True}, (404, "no queue 'bad' in vhost 't'")),
        ("PUT /queues/t/amq.bad", {}, (401, "Access refused.")),
        ("DELETE /queues/t/bad", None, (404, "Not Found")),
        ("POST /bindings/t/e/nosuch/q/bad", {}, (404, "no exchange 'nosuch' in vhost 't'")),
        ("POST /bindings/t/e/amq.topic/q/bad", {}, (404, "no queue 'bad' in vhost 't'")),
        ("POST /bindings/t/e/amq.default/q/bad", {}, (401, "Access refused.")),
    ],
)
def test_invalid_declarations_are_refused(
    client: HttpClient, line: str, body: object, answer: tuple[int, object]
) -> None:
    assert client.refusal(line, body) == answer


def test_the_permissions_of_a_channel_apply(node: BrokerProcess) -> None:
    client = HttpClient(node, "m:p")
    refused = (401, "Access refused.")
    assert client.status("PUT /queues/t/mine", {}) == 201
    assert client.refusal("PUT /queues/t/other", {}) == refused
    assert client.status("PUT /exchanges/t/mx", {"type": "topic"}) == 201
    assert client.refusal("PUT /exchanges/t/xm", {"type": "topic"}) == refused
    assert client.status("POST /bindings/t/e/mx/q/mine", {"routing_key": "k"}) == 201
    assert client.refusal("POST /bindings/t/e/amq.topic/q/mine", {"routing_key": "k"}) == refused
    assert client.status("DELETE /queues/t/mine") == 204


def test_a_queue_declared_over_http_can_be_used_by_clients(node: BrokerProcess, client: HttpClient) -> None:
    arguments = {"x-max-length": 5, "x-dead-letter-exchange": "amq.fanout"}
    assert client.status("PUT /queues/t/q1", {"durable": True, "arguments": arguments}) == 201
    connection = connect(node.port, vhost="t")
    channel = connection.channel()
    channel.queue_declare("q1", durable=True, arguments=arguments)
    channel.basic_publish("", "q1", b"x")
    channel.basic_consume("q1", lambda *_: None)
    assert client.refusal("DELETE /queues/t/q1?if-unused=true") == (400, "queue 'q1' in vhost 't' in use")
    assert client.refusal("PUT /queues/t/q1", {"durable": False}) == (
        400,
        "inequivalent arg 'durable' for queue 'q1' in vhost 't': received 'false' but current is 'true'",
    )
    connection.close()
    assert client.refusal("DELETE /queues/t/q1?if-empty=true") == (400, "queue 'q1' in vhost 't' not empty")
    assert client.status("DELETE /queues/t/q1/contents") == 204
    assert client.status("DELETE /queues/t/q1?if-empty=true&if-unused=true") == 204


def test_bindings_are_found_by_their_properties_key(client: HttpClient) -> None:
    client.ask("PUT /queues/t/b", {})
    client.ask("PUT /exchanges/t/x", {"type": "direct"})
    keys = ["", "a/b", "~", "ü ~+%", "k"]
    for key in keys:
        answer = client.ask("POST /bindings/t/e/x/q/b", {"routing_key": key})
        assert answer.status == 201
        assert client.status(f"GET /bindings/t/e/x/q/{answer.headers['location']}") == 200
    arguments = {"a": "x", "b": [1, {"c": 1.5}]}
    answer = client.ask("POST /bindings/t/e/x/q/b", {"routing_key": "k", "arguments": arguments})
    # As answered by RabbitMQ 3.10.8 and 4.3.6: null is the key of this name, and no key the empty one.
    assert answer.headers["location"] == "b/k~Pd4_iQ"
    assert client.ask("POST /bindings/t/e/x/q/b", {}).headers["location"] == "b/~"
    assert client.ask("POST /bindings/t/e/x/q/b", {"routing_key": None}).headers["location"] == "b/null"
    found = client.get("/bindings/t/e/x/q/b")
    assert sorted(binding["routing_key"] for binding in found) == sorted([*keys, "k", "null"])
    assert [binding["arguments"] for binding in found if binding["arguments"]] == [arguments]
    for binding in found:
        path = f"/bindings/t/e/x/q/b/{quoted(binding['properties_key'])}"
        assert client.get(path) == binding
        assert client.status(f"DELETE {path}") == 204
        assert client.status(f"GET {path}") == 404
    assert client.get("/bindings/t/e/x/q/b") == []


def test_bindings_are_listed_from_every_side(client: HttpClient) -> None:
    client.ask("PUT /queues/t/c", {})
    for name in ("from", "to"):
        client.ask(f"PUT /exchanges/t/{name}", {"type": "fanout"})
    assert client.status("POST /bindings/t/e/from/e/to", {"routing_key": "e"}) == 201
    assert client.status("POST /bindings/t/e/from/q/c", {}) == 201
    columns = "columns=source,destination,destination_type,routing_key"
    to_exchange = {"source": "from", "destination": "to", "destination_type": "exchange", "routing_key": "e"}
    to_queue = {"source": "from", "destination": "c", "destination_type": "queue", "routing_key": ""}
    implicit = {"source": "", "destination": "c", "destination_type": "queue", "routing_key": "c"}
    assert client.get(f"/exchanges/t/from/bindings/source?{columns}") == [to_exchange, to_queue]
    assert client.get(f"/exchanges/t/to/bindings/destination?{columns}") == [to_exchange]
    assert client.get(f"/queues/t/c/bindings?{columns}") == [implicit, to_queue]
    assert implicit in client.get(f"/exchanges/t/amq.default/bindings/source?{columns}")
    assert [entry in client.get(f"/bindings/t?{columns}") for entry in (implicit, to_queue, to_exchange)] == [
        True, True, True,
    ]  # fmt: skip
    assert client.get("/bindings") == client.get("/bindings/t")
    assert client.status("DELETE /bindings/t/e/from/e/to/e") == 204
    assert client.get("/bindings/t/e/from/e/to") == []
    assert client.refusal("DELETE /exchanges/t/from?if-unused=true") == (
        400, "exchange 'from' in vhost 't' in use",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["{x}", "{{7*7}}", "a/b?c=d#e%2F&f", "<i>", "ä\u202e", ".", "..", " "])
def test_a_name_may_contain_any_character(client: HttpClient, name: str) -> None:
    assert client.status(f"PUT /queues/t/{quoted(name)}", {"durable": True}) == 201
    found = client.get(f"/queues/t/{quoted(name)}")
    assert found["name"] == name
    assert client.status(f"DELETE /queues/t/{quoted(name)}") == 204
