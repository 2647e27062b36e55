"""What management clients and RabbitMQ's own tests send and decode: parameters, shovels and federation links.

The bodies are those of rabbit-hole, which Terraform and operators of Kubernetes use, rabbitmqadmin and hop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.either_broker import RABBITMQ, WARREN, Site, becomes, site
from tests.integration.link_differences import (
    FIELDS_OF_A_SHOVEL,
    HAS_PARAMETER,
    HAS_STATUS,
    MISSING_SHOVEL_DELETED,
    PROTECTED_SHOVEL_SET,
    QUEUE_OF_AN_EXCHANGE,
)
from tests.rabbitmq import is_installed

needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
pytestmark = pytest.mark.slow
NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
UPSTREAMS = "/parameters/federation-upstream/rabbit%2Fhole"
SHOVELS = "/parameters/shovel/rabbit%2Fhole"


@pytest.fixture(scope="module", params=[WARREN, pytest.param(RABBITMQ, marks=needs_rabbitmq)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(request.param, tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def hole(either: Site) -> Iterator[Site]:
    vhost = either.in_vhost("rabbit/hole")
    yield vhost
    vhost.remove()


# The fields that rabbit-hole sends when it is told only the address: its first versions send all, later
# ones two of those that are empty.
EARLY = {
    "uri": "amqp://127.0.0.1/%2f", "expires": 0, "message-ttl": 0, "max-hops": 0, "prefetch-count": 0,
    "reconnect-delay": 0, "trust-user-id": False, "exchange": "", "queue": "",
}  # fmt: skip
LATE = {"uri": ["amqp://127.0.0.1/%2f"], "reconnect-delay": 0, "trust-user-id": False}
FULL = {
    "uri": ["amqp://128.0.0.1/%2f", "amqp://128.0.0.7/%2f"], "expires": 1800000, "message-ttl": 360000,
    "max-hops": 1, "prefetch-count": 500, "reconnect-delay": 5, "ack-mode": "on-publish",
    "trust-user-id": False,
}  # fmt: skip


@pytest.mark.parametrize("value", [EARLY, LATE, FULL], ids=["early", "late", "full"])
def test_an_upstream_is_returned_as_it_was_set(hole: Site, value: dict[str, object]) -> None:
    one = f"{UPSTREAMS}/up"
    answer = hole.api.ask(f"GET {one}")
    assert (answer.status, answer.value) == (404, NOT_FOUND)
    assert hole.api.get("/parameters/federation-upstream") == []
    sent = {"name": "up", "vhost": "rabbit/hole", "component": "federation-upstream", "value": value}
    assert hole.api.status(f"PUT {one}", sent) == 201
    assert hole.api.status(f"PUT {one}", sent) == 204
    assert hole.api.get(one) == sent
    assert hole.api.get(UPSTREAMS) == [sent]
    assert hole.api.get("/parameters/federation-upstream") == [sent]
    assert hole.api.get("/parameters") == [sent]
    assert hole.api.status(f"DELETE {one}") == 204
    answer = hole.api.ask(f"DELETE {one}")
    assert (answer.status, answer.value) == (404, NOT_FOUND)
    assert hole.api.get(UPSTREAMS) == []


def test_an_upstream_without_an_address_is_refused(hole: Site) -> None:
    empty = {"uri": None, "reconnect-delay": 0, "trust-user-id": False}
    answer = hole.api.ask(f"PUT {UPSTREAMS}/error", {"value": empty})
    assert (answer.status, answer.value["error"]) == (400, "bad_request")
    assert str(answer.reason).startswith("Validation failed")


def test_parameters_of_all_components_are_listed_together(either: Site, hole: Site) -> None:
    hole.upstream("upstream1", ["amqp://server-name/%2f"])
    shovel = {
        "src-uri": ["amqp://127.0.0.1:1/%2f"], "src-queue": "mySourceQueue", "add-forward-headers": True,
        "dest-uri": ["amqp://127.0.0.1:1/%2f"], "dest-queue": "myDestQueue", "ack-mode": "on-confirm",
        "delete-after": "never",
    }  # fmt: skip
    either.set("shovel", "shovel1", shovel)
    found = {(one["component"], one["vhost"], one["name"]) for one in either.api.get("/parameters")}
    assert found == {("federation-upstream", "rabbit/hole", "upstream1"), ("shovel", "/", "shovel1")}
    either.clear("shovel", "shovel1")


ENDS = ("src-uri", "dest-uri")


def definition(site: Site, **more: object) -> dict[str, Any]:
    return {
        "src-uri": [f"amqp://guest:guest@127.0.0.1:{site.port}/rabbit%2Fhole"], "src-queue": "mySourceQueue",
        "dest-uri": [f"amqp://guest:guest@127.0.0.1:{site.port}/rabbit%2Fhole"], "dest-queue": "myDestQueue",
        "add-forward-headers": True, "ack-mode": "on-confirm", **more,
    }  # fmt: skip


@pytest.mark.parametrize("more", [
    {"delete-after": 42},
    {"delete-after": "never"},
    {
        "delete-after": "never", "reconnect-delay": 20, "src-queue-args": {"x-message-ttl": 12000},
        "src-consumer-args": {"x-priority": 2}, "src-prefetch-count": 5,
        "dest-queue-args": {"x-expires": 222000}, "dest-add-timestamp-header": True,
        "dest-publish-properties": {"delivery_mode": 1},
    },
])  # fmt: skip
def test_a_shovel_is_returned_as_it_was_set_and_has_a_status(hole: Site, more: dict[str, object]) -> None:
    one = f"{SHOVELS}/temporary"
    value = definition(hole, **more)
    assert hole.api.status(f"PUT {one}", {"value": value}) == 201
    if hole.kind == WARREN:
        # Warren shows no passwords, which RabbitMQ does to an administrator.
        value |= {end: [uri.replace("guest:guest@", "guest:***@") for uri in value[end]] for end in ENDS}
    assert hole.api.get(one) == {
        "name": "temporary", "vhost": "rabbit/hole", "component": "shovel", "value": value,
    }  # fmt: skip
    (shown,) = hole.api.get("/shovels/rabbit%2Fhole")
    assert (shown["name"], shown["vhost"], shown["type"]) == ("temporary", "rabbit/hole", "dynamic")
    assert shown["state"] in ("starting", "running")
    assert re.fullmatch(r"\d{4}-\d{1,2}-\d\d \d{1,2}:\d\d:\d\d", shown["timestamp"])
    becomes(lambda: hole.api.get("/shovels/rabbit%2Fhole")[0]["state"], "running")
    assert hole.api.status(f"DELETE {one}") == 204
    assert hole.api.get("/shovels/rabbit%2Fhole") == []
    for queue in ("mySourceQueue", "myDestQueue"):
        assert hole.api.status(f"DELETE /queues/rabbit%2Fhole/{queue}") == 204
    answer = hole.api.ask(f"GET {one}")
    assert (answer.status, answer.value) == (404, NOT_FOUND)


def test_a_shovel_is_deleted_and_restarted_by_its_own_routes(hole: Site) -> None:
    one = "/shovels/vhost/rabbit%2Fhole/temporary"
    assert hole.api.status(f"DELETE {one}") == MISSING_SHOVEL_DELETED[hole.answers]
    assert hole.api.status(f"DELETE {one}/restart") == 404
    hole.set("shovel", "temporary", definition(hole))
    becomes(lambda: [shown["state"] for shown in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    assert hole.api.status(f"DELETE {one}/restart") == 204
    becomes(lambda: [shown["state"] for shown in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    assert hole.api.status(f"DELETE {one}") == 204
    assert hole.api.get("/shovels/rabbit%2Fhole") == []
    assert hole.api.status(f"GET {SHOVELS}/temporary") == 404


def test_a_running_shovel_has_the_fields_of_both_versions(hole: Site) -> None:
    hole.set("shovel", "temporary", definition(hole))
    becomes(lambda: [one["state"] for one in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    (shown,) = hole.api.get("/shovels/rabbit%2Fhole")
    fields = FIELDS_OF_A_SHOVEL[hole.answers]
    if hole.kind == RABBITMQ:
        assert set(shown) == fields
    else:
        assert set(shown) >= fields
    hole.clear("shovel", "temporary")


def test_one_shovel_is_shown_by_its_own_route(hole: Site) -> None:
    hole.set("shovel", "temporary", definition(hole))
    becomes(lambda: [one["state"] for one in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    found = hole.api.get("/shovels/vhost/rabbit%2Fhole/temporary")
    one = found[0] if isinstance(found, list) else found
    assert (one["name"], one["vhost"]) == ("temporary", "rabbit/hole")
    if hole.answers in HAS_STATUS:
        assert one["state"] == "running"
    if hole.answers in HAS_PARAMETER:
        address = [f"amqp://127.0.0.1:{hole.port}/rabbit%2Fhole"]
        assert one["component"] == "shovel"
        assert one["value"] == definition(hole) | dict.fromkeys(ENDS, address)
    hole.clear("shovel", "temporary")


def test_a_protected_shovel_is_deleted_as_a_parameter_only(hole: Site) -> None:
    one = f"{SHOVELS}/temporary"
    owner = {"name": "mySourceQueue", "kind": "queue", "virtual_host": "rabbit/hole"}
    value = definition(hole, internal=True, internal_owner=owner)
    is_set = hole.api.status(f"PUT {one}", {"value": value})
    assert is_set == PROTECTED_SHOVEL_SET[hole.answers]
    if is_set != 201:
        return
    becomes(lambda: [one["state"] for one in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    assert hole.api.status("DELETE /shovels/vhost/rabbit%2Fhole/temporary") == 405
    assert hole.api.status(f"GET {one}") == 200
    assert hole.api.status(f"DELETE {one}") == 204
    assert hole.api.get("/shovels/rabbit%2Fhole") == []


def test_the_queue_of_a_federated_exchange_has_the_arguments_of_its_version(hole: Site) -> None:
    hole.upstream("up", hole.uri, exchange="source")
    hole.policy("p", "^amq.topic$", "exchanges", federation_upstream="up")
    becomes(lambda: [link["status"] for link in hole.links()], ["running"])
    found = [one for one in hole.api.get("/queues/rabbit%2Fhole") if one["name"].startswith("federation: ")]
    assert [one["arguments"] for one in found] == [QUEUE_OF_AN_EXCHANGE[hole.answers]]
    hole.clear_policy("p")


def test_a_policy_makes_one_link_and_its_deletion_none(either: Site, hole: Site) -> None:
    assert either.api.get("/federation-links") == []
    assert hole.links() == []
    uri = f"amqp://guest:guest@localhost:{either.port}/%2f"
    hole.upstream("myUpsteam", [uri], expires=1800000, reconnect_delay=0, trust_user_id=False)
    hole.policy("myUpsteamPolicy", "(^amq.topic$)", "exchanges", federation_upstream="myUpsteam")
    (link,) = hole.links()
    assert (link["vhost"], link["upstream"], link["type"]) == ("rabbit/hole", "myUpsteam", "exchange")
    assert (link["exchange"], link["upstream_exchange"]) == ("amq.topic", "amq.topic")
    assert link["uri"] == f"amqp://localhost:{either.port}/%2f"
    assert link["status"] in ("running", "starting")
    becomes(lambda: [one["status"] for one in hole.links()], ["running"])
    assert either.internals() != []
    hole.clear_policy("myUpsteamPolicy")
    assert hole.links() == []
    hole.clear("federation-upstream", "myUpsteam")
    becomes(either.internals, [])


def test_a_link_is_restarted_by_its_id_and_no_other_is(hole: Site) -> None:
    hole.upstream("gone", "amqp://guest:guest@127.0.0.1:1", reconnect_delay=600000)
    hole.policy("p", "^amq.fanout$", "exchanges", federation_upstream="gone")
    down = "/federation-links/rabbit%2Fhole/state/down"
    links: list[dict[str, Any]] = []

    def statuses() -> list[str]:
        links[:] = hole.api.get(down)
        return [link["status"] for link in links]

    becomes(statuses, ["error"])
    (link,) = links
    assert isinstance(link["error"], str)
    node = link["node"]
    assert hole.api.status(f"DELETE /federation-links/vhost/rabbit%2Fhole/nosuch/{node}/restart") == 404
    assert hole.api.status(f"DELETE /federation-links/vhost/rabbit%2Fhole/{link['id']}/{node}/restart") == 204
    becomes(lambda: [link["status"] for link in hole.api.get(down)], ["error"])


def test_a_document_of_definitions_starts_links_and_shovels(hole: Site) -> None:
    document = {
        "vhosts": [{"name": "rabbit/hole"}],
        "parameters": [
            {"vhost": "rabbit/hole", "component": "federation-upstream", "name": "up",
             "value": {"uri": hole.uri, "exchange": "source", "queue": "source"}},
            {"vhost": "rabbit/hole", "component": "federation-upstream-set", "name": "set",
             "value": [{"upstream": "up"}]},
            {"vhost": "rabbit/hole", "component": "shovel", "name": "temporary", "value": definition(hole)},
        ],
        "policies": [
            {"vhost": "rabbit/hole", "name": "fed", "pattern": "^fed", "apply-to": "all", "priority": 0,
             "definition": {"federation-upstream-set": "set"}},
        ],
        "exchanges": [
            {"vhost": "rabbit/hole", "name": "fed.x", "type": "topic", "durable": True, "auto_delete": False,
             "internal": False, "arguments": {}},
        ],
        "queues": [
            {"vhost": "rabbit/hole", "name": "fed.q", "durable": True, "auto_delete": False, "arguments": {}},
        ],
        "bindings": [
            {"vhost": "rabbit/hole", "source": "fed.x", "destination": "fed.q", "destination_type": "queue",
             "routing_key": "key", "arguments": {}},
        ],
    }  # fmt: skip
    json = {"content-type": "application/json"}
    assert hole.api.ask("POST /definitions", document, json).status in (201, 204)
    assert hole.linked() == [("fed.q", "up"), ("fed.x", "up")]
    becomes(lambda: [link["status"] for link in hole.links()], ["running", "running"])
    becomes(lambda: hole.keys_from("source"), ["key"])
    becomes(lambda: [one["state"] for one in hole.api.get("/shovels/rabbit%2Fhole")], ["running"])
    exported: dict[str, Any] = hole.api.get("/definitions/rabbit%2Fhole")
    assert hole.api.ask("POST /definitions/rabbit%2Fhole", exported, json).status in (201, 204)
    assert len(hole.links()) == 2
    with hole.channel() as channel:
        channel.basic_publish("source", "key", b"HELLO")
        becomes(lambda: channel.queue_declare("fed.q", passive=True).method.message_count, 1)


@pytest.mark.parametrize("value", [5, 1.5, "text", True, [1, "a", {"b": None}], {"a": {"b": []}}])
def test_a_global_parameter_has_a_value_of_any_type(either: Site, value: object) -> None:
    assert either.api.status("PUT /global-parameters/any", {"name": "any", "value": value}) == 201
    assert either.api.get("/global-parameters/any") == {"name": "any", "value": value}
    assert either.api.status("DELETE /global-parameters/any") == 204
