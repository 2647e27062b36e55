"""The HTTP API says of quorum queues what that of RabbitMQ 3.10.8 says, or what 4.3.6 says otherwise."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.client import PASSWORD, USER
from tests.conformance.definitions import VHOSTS
from tests.conformance.peer import Peer
from tests.oracle.quorum_brokers import BROKERS, QuorumBroker, QuorumBrokers
from tests.oracle.quorum_differences import (
    ALSO_EXPORTED,
    CONSUMERS_OF_ONE_GET,
    DEAD_LETTER_BYTES,
    DEFAULT_TYPE,
    FIELDS,
    FIELDS_OF_ONE,
    FIELDS_OF_RABBITMQ_4,
    GOT,
    IMPOSSIBLE_ENTRY,
    LATER_ROUTES,
    NOT_LISTED_BY_RABBITMQ_4,
    OBEYED,
    OTHER_TYPE,
    REFUSED_BY_RABBITMQ_4,
    SINGLE_ACTIVE_TAGS,
    VALID_APPLY_TO,
    VALID_POLICIES,
)
from tests.oracle.quorum_http_cases import (
    APPLICABLE,
    DETAILS,
    INVALID,
    NODE,
    OPERATOR,
    QUEUE,
    QUORUM,
    REFUSALS,
)
from tests.patience import patient

pytestmark = pytest.mark.timeout(300)
# Not used by the recorded scripts, which may run meanwhile.
VHOST = VHOSTS[-1]
QUEUES = f"/api/queues/{VHOST}"
# RabbitMQ counts a quorum queue every 5 s.
STATISTICS_S = patient(30.0)
AGAIN_S = 0.25
Broker = QuorumBroker


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest, quorum_brokers: QuorumBrokers) -> Iterator[Broker]:
    """Each broker that accepts quorum queues; its queues in VHOST are deleted afterwards."""
    found = quorum_brokers[request.param]
    if not found.accepts_quorum_queues:
        pytest.skip(f"{found.name} does not accept quorum queues")
    yield found
    for queue in found.ask("GET", f"{QUEUES}?columns=name")[1]:
        found.ask("DELETE", f"{QUEUES}/{queue['name']}")


@pytest.fixture
def peer(broker: Broker) -> Iterator[Peer]:
    """A connection to the broker, with the channel 1."""
    peer = Peer("127.0.0.1", broker.port)
    peer.handshake(USER, PASSWORD, VHOST)
    peer.send_method(1, "channel.open")
    peer.expect_method(1, "channel.open-ok")
    yield peer
    peer.disconnect()


def publish(broker: Broker, queue: str, *bodies: str) -> None:
    for body in bodies:
        message = {"properties": {}, "routing_key": queue, "payload": body, "payload_encoding": "string"}
        status, answer = broker.ask("POST", f"/api/exchanges/{VHOST}/amq.default/publish", message)
        assert (status, answer) == (200, {"routed": True})


def awaited(broker: Broker, queue: str, is_due: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The queue as the API shows it when it `is_due`; the last answer if that does not come."""
    deadline = time.monotonic() + STATISTICS_S
    while True:
        _, found = broker.ask("GET", f"{QUEUES}/{queue}")
        if is_due(found) or time.monotonic() > deadline:
            return dict(found)
        time.sleep(AGAIN_S)


def unexpected(broker: Broker, found: dict[str, Any], **more: Any) -> dict[str, tuple[Any, Any]]:
    """The fields of the queue `q` that are neither RabbitMQ's nor a known difference."""
    node = broker.ask("GET", "/api/overview")[1]["node"]
    expected = {**QUEUE, "vhost": VHOST, **more}
    if broker.is_rabbitmq_4:
        expected |= FIELDS_OF_RABBITMQ_4
    if broker.name == "warren":
        differences = differing(expected, found, node)
        assert differences.keys() == FIELDS.keys()
        expected |= {key: value for key, (_, value) in FIELDS.items()}
    return differing(expected, found, node)


def differing(expected: dict[str, Any], found: dict[str, Any], node: str) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, with both values; one that is missing is `...`."""
    filled = {**expected, "open_files": {node: 0}}
    for key, value in filled.items():
        filled[key] = node if value == NODE else [node] if value == [NODE] else value
    pairs = {key: (filled.get(key, ...), found.get(key, ...)) for key in filled | found}
    return {
        key: (due, value)
        for key, (due, value) in pairs.items()
        if not (isinstance(value, due) if isinstance(due, type) else value == due)
    }


def test_the_api_shows_every_field_of_a_quorum_queue(broker: Broker, peer: Peer) -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 3}
    broker.ask("PUT", f"{QUEUES}/q", {"durable": True, "arguments": arguments})
    publish(broker, "q", "aa", "bbb", "c")
    peer.send_method(1, "basic.get", queue="q")
    peer.expect_method(1, "basic.get-ok")
    consumers = CONSUMERS_OF_ONE_GET[broker.name]
    found = awaited(
        broker,
        "q",
        lambda queue: queue.get("messages_unacknowledged") == 1 and queue.get("consumers") == consumers
        and "get" in queue.get("message_stats", {}),
    )  # fmt: skip
    details = DETAILS | (FIELDS_OF_ONE if broker.name == "warren" else {})
    assert unexpected(broker, found, **details) == {}
    (listed,) = broker.ask("GET", QUEUES)[1]
    assert unexpected(broker, listed, **NOT_LISTED_BY_RABBITMQ_4 if broker.is_rabbitmq_4 else {}) == {}


def test_the_api_names_the_single_active_consumer(broker: Broker, peer: Peer) -> None:
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    broker.ask("PUT", f"{QUEUES}/s", {"durable": True, "arguments": arguments})
    for tag in ("first", "second"):
        peer.send_method(1, "basic.consume", queue="s", consumer_tag=tag)
        peer.expect_method(1, "basic.consume-ok")
    fields = SINGLE_ACTIVE_TAGS[broker.answers]
    found = awaited(broker, "s", lambda queue: bool(queue.get(fields[0])) and _active(queue) != {})
    assert [found[field] for field in fields] == ["first"] * len(fields)
    assert _active(found) == {"first": (True, "single_active"), "second": (False, "waiting")}


def _active(queue: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        consumer["consumer_tag"]: (consumer["active"], consumer["activity_status"])
        for consumer in queue["consumer_details"]
    }


def test_dead_letters_that_wait_are_counted_apart(broker: Broker, peer: Peer) -> None:
    arguments = {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-dead-letter-strategy": "at-least-once",
        "x-dead-letter-exchange": "nowhere",
    }
    broker.ask("PUT", f"{QUEUES}/d", {"durable": True, "arguments": arguments})
    publish(broker, "d", "four")
    peer.send_method(1, "basic.get", queue="d")
    tag = peer.expect_method(1, "basic.get-ok")["delivery_tag"]
    peer.send_method(1, "basic.reject", delivery_tag=tag)
    found = awaited(broker, "d", lambda queue: queue.get("messages_dlx") == 1)
    counts = ("messages", "messages_ready", "messages_unacknowledged", "messages_dlx", "message_bytes_dlx")
    assert {key: found[key] for key in counts} == {
        "messages": 1,
        "messages_ready": 0,
        "messages_unacknowledged": 0,
        "messages_dlx": 1,
        "message_bytes_dlx": DEAD_LETTER_BYTES[broker.answers],
    }


def test_messages_are_got_requeued_and_purged(broker: Broker) -> None:
    broker.ask("PUT", f"{QUEUES}/q", QUORUM)
    publish(broker, "q", "a", "b")

    def got(count: int, mode: str) -> list[tuple[str, bool, int, int | None]]:
        body = {"count": count, "ackmode": mode, "encoding": "auto"}
        status, messages = broker.ask("POST", f"{QUEUES}/q/get", body)
        assert status == 200
        return [
            (
                message["payload"],
                message["redelivered"],
                message["message_count"],
                # No properties are an empty list.
                dict(message["properties"]).get("headers", {}).get("x-delivery-count"),
            )
            for message in messages
        ]

    first, both, last = GOT[broker.answers]
    assert got(1, "reject_requeue_true") == first
    _await_ready(broker, 2)
    assert got(2, "ack_requeue_true") == both
    _await_ready(broker, 2)
    assert got(1, "ack_requeue_false") == last
    assert broker.ask("DELETE", f"{QUEUES}/q/contents") == (204, None)
    assert got(1, "ack_requeue_false") == []


def _await_ready(broker: Broker, count: int) -> None:
    """Wait until the requeued messages are ready, by the counts of a passive declaration."""
    peer = Peer("127.0.0.1", broker.port)
    peer.handshake(USER, PASSWORD, VHOST)
    peer.send_method(1, "channel.open")
    peer.expect_method(1, "channel.open-ok")
    deadline = time.monotonic() + STATISTICS_S
    while True:
        peer.send_method(1, "queue.declare", queue="q", passive=True)
        if peer.expect_method(1, "queue.declare-ok")["message_count"] == count:
            break
        assert time.monotonic() < deadline
        time.sleep(AGAIN_S / 10)
    peer.disconnect()


def test_what_quorum_queues_do_not_support_is_refused(broker: Broker) -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 3}
    assert broker.ask("PUT", f"{QUEUES}/q", {"durable": True, "arguments": arguments}) == (201, None)
    assert broker.ask("PUT", f"{QUEUES}/q", {"durable": True, "arguments": arguments}) == (204, None)
    names = {name: f"queue '{name}' in vhost '{VHOST}'" for name in "qn"}
    for method, path, body, status, reason in REFUSALS:
        if broker.name == "warren" and path in OBEYED:
            continue
        found_status, answer = broker.ask(method, f"{QUEUES}/{path}", body)
        assert (path, found_status, answer["error"]) == (path, status, "bad_request")
        assert answer["reason"].removesuffix(" set are not supported by quorum queues") == reason.format(
            **names
        )


def test_a_queue_is_deleted_conditionally_where_that_is_supported(broker: Broker) -> None:
    broker.ask("PUT", f"{QUEUES}/q", QUORUM)
    for path, status in OBEYED.items():
        assert broker.ask("DELETE", f"{QUEUES}/{path}")[0] == (status if broker.name == "warren" else 400)


def test_the_routes_of_later_versions_exist_only_where_they_are_supported(broker: Broker) -> None:
    broker.ask("PUT", f"{QUEUES}/q", QUORUM)
    # A list of the queues of the vhost `quorum`, which does not exist.
    assert broker.ask("GET", "/api/queues/quorum")[0] == 404
    assert broker.ask("GET", f"/api/queues/quorum/{VHOST}/q/status")[0] == LATER_ROUTES[broker.answers]
    status, answer = broker.ask("GET", "/api/health/checks/node-is-quorum-critical")
    assert (status, answer) == (200, {"status": "ok", "reason": "single node cluster"})


def test_a_policy_applies_if_every_key_is_for_quorum_queues(broker: Broker) -> None:
    cases = [("policies", *case) for case in APPLICABLE]
    cases += [("operator-policies", definition, True) for definition in OPERATOR]
    for number, (kind, definition, _) in enumerate(cases):
        body = {"pattern": f"^p{number}-", "apply-to": "queues", "definition": definition, "priority": 5}
        status, answer = broker.ask("PUT", f"/api/{kind}/{VHOST}/p{number}", body)
        errors = [error for key, error in REFUSED_BY_RABBITMQ_4.items() if key in definition]
        if broker.is_rabbitmq_4 and errors:
            assert (status, html.unescape(answer["reason"])) == (400, f"Validation failed\n\n{errors[0]}\n")
        else:
            assert (status, answer) == (201, None)
        broker.ask("PUT", f"{QUEUES}/p{number}-", QUORUM)
    below = {"pattern": "^p", "apply-to": "queues", "definition": {"max-length": 9}, "priority": 0}
    broker.ask("PUT", f"/api/policies/{VHOST}/below", below)
    try:
        for number, (kind, definition, applies) in enumerate(cases):
            found = awaited(
                broker, f"p{number}-", lambda queue: bool(queue.get("effective_policy_definition"))
            )
            shown = found["policy"], found["operator_policy"], found["effective_policy_definition"]
            if kind == "operator-policies":
                limit = min(9, definition.get("max-length", 9))
                assert shown == (
                    "below",
                    f"p{number}",
                    {"max-length": 9} | definition | {"max-length": limit},
                )
            elif applies:
                assert (definition, *shown) == (definition, f"p{number}", None, definition)
            else:
                # The policy of the next lower priority applies instead.
                assert (definition, *shown) == (definition, "below", None, {"max-length": 9})
    finally:
        broker.ask("DELETE", f"/api/policies/{VHOST}/below")
        for number, (kind, _, _) in enumerate(cases):
            broker.ask("DELETE", f"/api/{kind}/{VHOST}/p{number}")


def test_invalid_settings_of_policies_are_refused(broker: Broker) -> None:
    for kind, definition, error in INVALID:
        body = {"pattern": "^nothing$", "apply-to": "queues", "definition": definition}
        status, answer = broker.ask("PUT", f"/api/{kind}/{VHOST}/invalid", body)
        if broker.answers != "rabbitmq" and definition in VALID_POLICIES:
            assert (status, answer) == (201, None)
            broker.ask("DELETE", f"/api/{kind}/{VHOST}/invalid")
            continue
        assert (status, html.unescape(answer["reason"])) == (400, f"Validation failed\n\n{error}\n")
    for kind in VALID_APPLY_TO:
        body = {"pattern": "^nothing$", "apply-to": kind, "definition": {"max-length": 3}}
        status, answer = broker.ask("PUT", f"/api/policies/{VHOST}/invalid", body)
        if broker.answers != "rabbitmq":
            assert (status, answer) == (201, None)
            broker.ask("DELETE", f"/api/policies/{VHOST}/invalid")
            continue
        assert status == 400
        assert f"apply-to '{kind}' unrecognised; should be 'queues', 'exchanges' or 'all'" in answer["reason"]


def test_the_default_type_of_a_vhost_is_for_queues_that_can_have_it(broker: Broker) -> None:
    body = {"defaultqueuetype": "quorum"}
    assert broker.ask("PUT", "/api/vhosts/of-quorum-queues", body) == (201, None)
    try:
        vhost = broker.ask("GET", "/api/vhosts/of-quorum-queues")[1]
        assert (vhost["default_queue_type"], vhost["metadata"]["default_queue_type"]) == ("quorum", "quorum")
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        broker.ask("PUT", f"/api/permissions/of-quorum-queues/{USER}", everything)
        for declared, kind, arguments in (
            ({"durable": True}, "quorum", {"x-queue-type": "quorum"}),
            (
                {"durable": True, "arguments": {"x-queue-type": "classic"}},
                "classic",
                {"x-queue-type": "classic"},
            ),
            ({"durable": False}, "classic", OTHER_TYPE[broker.answers]),
            ({"durable": True, "auto_delete": True}, "classic", OTHER_TYPE[broker.answers]),
        ):
            broker.ask("PUT", "/api/queues/of-quorum-queues/n", declared)
            found = broker.ask("GET", "/api/queues/of-quorum-queues/n")[1]
            assert (found["type"], found["arguments"]) == (kind, arguments)
            broker.ask("DELETE", "/api/queues/of-quorum-queues/n")
    finally:
        broker.ask("DELETE", "/api/vhosts/of-quorum-queues")
    # In RabbitMQ 3.10 the name of the field that is shown is not the one that is read.
    broker.ask("PUT", "/api/vhosts/of-quorum-queues", {"default_queue_type": "quorum"})
    vhost = broker.ask("GET", "/api/vhosts/of-quorum-queues")[1]
    broker.ask("DELETE", "/api/vhosts/of-quorum-queues")
    assert vhost["default_queue_type"] == DEFAULT_TYPE[broker.answers]


def test_definitions_contain_and_import_quorum_queues(broker: Broker) -> None:
    definition = {"name": "i", "auto_delete": False, **QUORUM}

    def imported(queue: dict[str, Any]) -> int:
        return broker.ask("POST", f"/api/definitions/{VHOST}", {"queues": [queue]})[0]

    assert imported(definition) == 204
    # It exists, and keeps its type.
    assert imported({**definition, "arguments": {"x-queue-type": "classic"}}) == 204
    impossible = {**definition, "name": "j", "durable": False}
    assert imported(impossible) == IMPOSSIBLE_ENTRY[broker.name]
    assert broker.ask("GET", f"/api/definitions/{VHOST}")[1]["queues"] == [
        definition | ALSO_EXPORTED[broker.answers]
    ]
    assert broker.ask("GET", f"{QUEUES}/i")[1]["type"] == "quorum"


def test_a_policy_that_is_set_later_drops_at_once_but_expires_only_what_comes_later(broker: Broker) -> None:
    policy = f"/api/policies/{VHOST}/later"
    broker.ask("PUT", f"{QUEUES}/q", QUORUM)
    publish(broker, "q", "a", "b", "c")
    _await_ready(broker, 3)
    try:
        broker.ask("PUT", policy, {"pattern": "^q$", "definition": {"max-length": 2}})
        _await_ready(broker, 2)
        broker.ask("PUT", policy, {"pattern": "^q$", "definition": {"message-ttl": 1}})
        awaited(broker, "q", lambda queue: queue.get("effective_policy_definition") == {"message-ttl": 1})
        _await_ready(broker, 2)
        broker.ask("DELETE", f"{QUEUES}/q/contents")
        publish(broker, "q", "d")
        _await_ready(broker, 0)
    finally:
        broker.ask("DELETE", policy)
