"""Publishing and getting messages over HTTP, purging, and the aliveness test."""

import base64
from collections.abc import Iterator

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect

DEFAULT = "POST /exchanges/%2f/amq.default/publish"
GET = {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto"}


def message(
    key: str, payload: str = "hi", encoding: str = "string", **properties: object
) -> dict[str, object]:
    return {"routing_key": key, "payload": payload, "payload_encoding": encoding, "properties": properties}


@pytest.fixture
def queue(client: HttpClient, default_queue_type: str) -> Iterator[str]:
    client.ask("PUT /queues/%2f/q", {"durable": True})
    yield "q"
    client.ask("DELETE /queues/%2f/q")


def got(client: HttpClient, **how: object) -> list[dict[str, object]]:
    answer = client.ask("POST /queues/%2f/q/get", GET | how)
    assert answer.status == 200, answer
    return answer.value


def test_a_message_is_routed_or_reported_as_unroutable(client: HttpClient, queue: str) -> None:
    assert client.ask(DEFAULT, message(queue)).value == {"routed": True}
    assert client.ask(DEFAULT, message("nowhere")).value == {"routed": False}


def test_a_persistent_message_survives_a_kill(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("kept"))
    with broker("--data-dir", folder) as first:
        client = HttpClient(first)
        client.ask("PUT /queues/%2f/q", {"durable": True})
        assert client.ask(DEFAULT, message("q", delivery_mode=2)).value == {"routed": True}
        first.process.kill()
        first.process.wait()
    with broker("--data-dir", folder) as second:
        assert [entry["payload"] for entry in got(HttpClient(second))] == ["hi"]


def test_properties_and_headers_are_returned_as_they_were_published(
    client: HttpClient, queue: str, default_queue_type: str
) -> None:
    # As the answer of basic.get.
    added = {"x-delivery-count": 0} if default_queue_type == "quorum" else {}
    headers = {"a": [1, "x", {"b": True}], "f": 1.5}
    properties = {
        "headers": headers, "content_type": "ct", "content_encoding": "ce",
        "delivery_mode": 2, "priority": 5, "correlation_id": "c", "reply_to": "r", "expiration": "60000",
        "message_id": "m", "timestamp": 1700000000, "type": "t", "user_id": "guest", "app_id": "a",
        "cluster_id": "cl",
    }  # fmt: skip
    client.ask(DEFAULT, message(queue, **properties))
    client.ask(DEFAULT, message(queue))
    assert got(client) == [
        {
            "payload_bytes": 2, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 1,
            "properties": properties | {"headers": headers | added}, "payload": "hi",
            "payload_encoding": "string",
        },
        {
            "payload_bytes": 2, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0,
            "properties": {"headers": added} if added else [], "payload": "hi", "payload_encoding": "string",
        },
    ]  # fmt: skip


def test_a_body_that_is_not_utf_8_is_base64(client: HttpClient, queue: str) -> None:
    data = base64.b64encode(b"\x00\xff").decode()
    client.ask(DEFAULT, message(queue, data, "base64"))
    client.ask(DEFAULT, message(queue, "wörter"))
    shown = [(entry["payload"], entry["payload_encoding"]) for entry in got(client)]
    assert shown == [(data, "base64"), ("wörter", "string")]
    assert got(client, encoding="base64")[1]["payload"] == base64.b64encode("wörter".encode()).decode()
    cut = got(client, truncate=1)
    assert [(entry["payload"], entry["payload_bytes"]) for entry in cut] == [("\x00", 2), ("w", 7)]


def test_requeued_messages_are_redelivered_in_order_and_acknowledged_ones_are_gone(
    client: HttpClient, queue: str
) -> None:
    for number in range(4):
        client.ask(DEFAULT, message(queue, str(number)))
    assert [entry["payload"] for entry in got(client, count=2)] == ["0", "1"]
    again = got(client, count=3, ackmode="reject_requeue_true")
    assert [(entry["payload"], entry["redelivered"]) for entry in again] == [
        ("0", True), ("1", True), ("2", False),
    ]  # fmt: skip
    assert [entry["payload"] for entry in got(client, count=1, ackmode="ack_requeue_false")] == ["0"]
    assert [entry["payload"] for entry in got(client, count=-1)] == ["1", "2", "3"]


def test_a_rejected_message_is_dead_lettered(client: HttpClient) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.ask("PUT /queues/%2f/dead", {})
    client.ask("PUT /queues/%2f/q", {"arguments": arguments})
    client.ask(DEFAULT, message("q", "bad"))
    assert len(got(client, ackmode="reject_requeue_false")) == 1
    assert got(client) == []
    answer = client.ask("POST /queues/%2f/dead/get", GET)
    assert answer.value[0]["properties"]["headers"]["x-first-death-reason"] == "rejected"
    client.ask("DELETE /queues/%2f/q")


def test_a_waiting_consumer_receives_requeued_messages(
    node: BrokerProcess, client: HttpClient, queue: str
) -> None:
    connection = connect(node.port)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1)
    client.ask(DEFAULT, message(queue, "a"))
    assert [entry["payload"] for entry in got(client)] == ["a"]
    for method, _, body in channel.consume(queue, inactivity_timeout=10):
        assert method is not None
        assert (body, method.redelivered) == (b"a", True)
        channel.basic_ack(method.delivery_tag)
        break
    connection.close()


@pytest.mark.parametrize(
    ("line", "body", "answer"),
    [
        (
            DEFAULT, {},
            (400, "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n "
                  "{key_missing,payload_encoding}]"),
        ),
        (DEFAULT, message("q", encoding="rot13"), (400, ["unsupported_encoding", "rot13"])),
        (DEFAULT, message("q", "!!", "base64"), (400, ["not_base64", "!!"])),
        (DEFAULT, message("q") | {"payload": 5}, (400, "payload_not_string")),
        (DEFAULT, message("q", priority="x"), (400, ["not_int", "priority"])),
        (DEFAULT, message("q", expiration=5), (400, ["not_string", "expiration"])),
        (DEFAULT, message("q", headers={"a": [None]}), (400, "null_not_allowed")),
        (
            DEFAULT, message("q", expiration="x"),
            (400, "406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"),
        ),
        (
            DEFAULT, message("q", user_id="other"),
            (400, "406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user "
                  "was 'guest'"),
        ),
        (
            "POST /exchanges/%2f/nosuch/publish", message("q"),
            (400, "404 NOT_FOUND - no exchange 'nosuch' in vhost '/'"),
        ),
        ("POST /queues/%2f/nosuch/get", GET, (404, "NOT_FOUND - no queue 'nosuch' in vhost '/'")),
        ("POST /queues/%2f/q/get", {"count": 1}, (400, "[{key_missing,ackmode},{key_missing,encoding}]")),
        ("POST /queues/%2f/q/get", GET | {"ackmode": "x"}, (400, ["unknown_ackmode", "x"])),
        (
            "POST /queues/%2f/q/get", GET | {"encoding": "x"},
            (400, "Unsupported encoding. Please use auto or base64."),
        ),
        ("POST /queues/%2f/q/get", GET | {"count": "x"}, (400, ["not_integer", "x"])),
        ("POST /queues/%2f/q/get", GET | {"truncate": -1}, (400, ["negative_truncate", -1])),
        ("POST /queues/%2f/q/actions", {"action": "bogus"}, (400, ["unknown", "bogus"])),
        ("DELETE /queues/%2f/nosuch/contents", None, (404, "Not Found")),
    ],
)  # fmt: skip
def test_invalid_requests_are_refused(
    client: HttpClient, queue: str, line: str, body: object, answer: tuple[int, object]
) -> None:
    assert client.refusal(line, body) == answer
    assert got(client) == []


def test_a_full_queue_is_reported(client: HttpClient) -> None:
    client.ask("PUT /queues/%2f/full", {"arguments": {"x-max-length": 0, "x-overflow": "reject-publish"}})
    assert client.refusal(DEFAULT, message("full")) == (
        400, "rejected Unable to publish message. Check queue limits.",
    )  # fmt: skip


def test_the_permissions_of_a_channel_apply(node: BrokerProcess, client: HttpClient, queue: str) -> None:
    client.ask("PUT /users/m", {"password": "p", "tags": "management"})
    client.ask("PUT /permissions/%2f/m", {"configure": "^m", "write": "^m", "read": "^m"})
    other = HttpClient(node, "m:p")
    assert other.refusal(DEFAULT, message("q")) == (
        400,
        "403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'm'",
    )
    refused = (401, "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'm'")
    assert other.refusal("POST /queues/%2f/q/get", GET) == refused
    assert other.refusal("DELETE /queues/%2f/q/contents") == (401, "Access refused.")
    assert other.refusal("GET /aliveness-test/%2f")[0] == 401


def test_mirror_actions_do_nothing_and_the_aliveness_test_succeeds(client: HttpClient, queue: str) -> None:
    assert client.status("POST /queues/%2f/q/actions", {"action": "sync"}) == 204
    assert client.get("/aliveness-test/%2f") == {"status": "ok"}
    assert client.get("/aliveness-test/%2f") == {"status": "ok"}
    assert client.status("GET /aliveness-test/nosuch") == 404


def test_a_body_that_is_too_large_is_refused(client: HttpClient) -> None:
    assert client.refusal(DEFAULT, b"x" * 10_000_001) == (400, "Exceeded HTTP request body size limit")
