"""Policies, operator policies and parameters over HTTP, with RabbitMQ's texts of refusals."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect

KINDS = ["policies", "operator-policies"]
ONE = {"pattern": "^q", "definition": {"max-length": 1}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_is_created_changed_and_deleted(client: HttpClient, kind: str) -> None:
    assert client.status(f"PUT /{kind}/%2f/p", ONE) == 201
    assert client.status(f"PUT /{kind}/%2f/p", ONE | {"priority": 2, "apply-to": "queues"}) == 204
    shown = {
        "vhost": "/", "name": "p", "pattern": "^q", "definition": {"max-length": 1}, "priority": 2,
        "apply-to": "queues",
    }  # fmt: skip
    assert client.get(f"/{kind}/%2f/p") == shown
    assert client.get(f"/{kind}/%2f") == client.get(f"/{kind}") == [shown]
    assert client.status(f"DELETE /{kind}/%2f/p") == 204
    assert client.status(f"DELETE /{kind}/%2f/p") == 404
    assert client.get(f"/{kind}") == []
    assert client.status(f"GET /{kind}/nosuch") == 404
    assert client.refusal(f"PUT /{kind}/nosuch/p", ONE) == (404, "vhost_not_found")


def test_a_policy_applies_at_once(node: BrokerProcess, client: HttpClient) -> None:
    connection = connect(node.port)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q1")
    client.ask("PUT /policies/%2f/one", ONE)
    for body in (b"1", b"2"):
        channel.basic_publish("", "q1", body)
    assert channel.basic_get("q1", auto_ack=True)[2] == b"2"
    assert channel.basic_get("q1", auto_ack=True)[0] is None
    client.ask("DELETE /policies/%2f/one")
    for body in (b"1", b"2"):
        channel.basic_publish("", "q1", body)
    assert channel.basic_get("q1", auto_ack=True)[2] == b"1"
    connection.close()


@pytest.mark.parametrize(
    ("line", "body", "reason"),
    [
        ("PUT /policies/%2f/bad", {}, "[{key_missing,pattern},{key_missing,definition}]"),
        (
            "PUT /policies/%2f/bad", ONE | {"pattern": "("},
            "Validation failed\n\npattern should be regular expression but is invalid: "
            '{"missing )",1}\n',
        ),
        (
            "PUT /policies/%2f/bad", ONE | {"definition": {"nope": 1}},
            'Validation failed\n\n[{&lt;&lt;"nope"&gt;&gt;,1}] are not recognised policy settings\n',
        ),
        (
            "PUT /operator-policies/%2f/bad", ONE | {"definition": {"dead-letter-exchange": "a"}},
            'Validation failed\n\n[{<<"dead-letter-exchange">>,<<"a">>}] are not recognised policy '
            "settings\n",
        ),
        (
            "PUT /policies/%2f/bad", ONE | {"definition": {"max-length": -1}},
            "Validation failed\n\n-1 is not a valid maximum length\n",
        ),
        ("PUT /policies/%2f/bad", ONE | {"definition": {}}, "Validation failed\n\nno policy provided\n"),
        (
            "PUT /policies/%2f/bad", ONE | {"priority": "3"},
            'Validation failed\n\npriority should be a number, actually was &lt;&lt;"3"&gt;&gt;\n',
        ),
        (
            "PUT /parameters/nonsense/%2f/a", {"value": 1},
            "Validation failed\n\ncomponent nonsense not found\n",
        ),
        ("PUT /parameters/policy/%2f/a", {"value": ONE}, "policies may not be set using this method"),
        ("PUT /parameters/shovel/%2f/a", {}, "[{key_missing,value}]"),
        (
            "PUT /parameters/federation-upstream/%2f/a", {"value": {"uri": None}},
            "Validation failed\n\nuri should be list, actually was null\n",
        ),
    ],
)  # fmt: skip
def test_invalid_policies_are_refused(client: HttpClient, line: str, body: object, reason: str) -> None:
    assert client.refusal(line, body) == (400, reason)


def test_parameters_are_stored_by_component_and_name(client: HttpClient) -> None:
    value = {"max-queues": 500}
    path = "/parameters/vhost-limits/%2f/limits"
    assert client.status(f"PUT {path}", {"value": value}) == 201
    assert client.status(f"PUT {path}", {"value": value | {"max-connections": 500}}) == 204
    shown = {
        "value": value | {"max-connections": 500}, "vhost": "/", "component": "vhost-limits",
        "name": "limits",
    }  # fmt: skip
    assert client.get(path) == shown
    assert client.get("/parameters") == client.get("/parameters/vhost-limits/%2f") == [shown]
    assert client.get("/parameters/nothing") == []
    client.ask("PUT /policies/%2f/p", ONE)
    assert [entry["name"] for entry in client.get("/parameters/policy/%2f")] == ["p"]
    assert client.status(f"DELETE {path}") == 204
    assert client.status(f"DELETE {path}") == 404
    client.ask("DELETE /policies/%2f/p")


def test_global_parameters_are_stored(client: HttpClient) -> None:
    assert client.status("PUT /global-parameters/g", {"value": {"a": None}}) == 201
    assert client.status("PUT /global-parameters/g", {"value": [1]}) == 204
    assert client.get("/global-parameters/g") == {"name": "g", "value": [1]}
    assert {"name": "g", "value": [1]} in client.get("/global-parameters")
    assert client.refusal("PUT /global-parameters/g", {}) == (400, "[{key_missing,value}]")
    assert client.status("DELETE /global-parameters/g") == 204
    assert client.status("GET /global-parameters/g") == 404


def test_the_cluster_id_survives_a_restart(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with broker("--data-dir", str(tmp_path)) as started:
            found.append(HttpClient(started).get("/global-parameters/internal_cluster_id")["value"])
            metrics = get(started, "/metrics", "http/prometheus")[1].decode()
            assert f'rabbitmq_cluster_permanent_id="{found[-1]}"' in metrics
            started.stop()
    assert found[0] == found[1]
    assert re.fullmatch("rabbitmq-cluster-id-[A-Za-z0-9_-]{22}", found[0])
    with broker() as other:
        assert HttpClient(other).get("/global-parameters/internal_cluster_id")["value"] != found[0]


def test_a_pattern_of_exponential_cost_is_refused_wherever_a_pattern_is_accepted(client: HttpClient) -> None:
    pattern = "((((a{100}){100}){100}){100})"
    text = (
        "Validation failed\n\npattern should be regular expression but is invalid: "
        '{"regular expression is too large",0}\n'
    )
    assert client.refusal("PUT /policies/%2f/grown", ONE | {"pattern": pattern}) == (400, text)
    everything = {"configure": pattern, "write": ".*", "read": ".*"}
    assert client.status("PUT /permissions/%2f/guest", everything) == 400
    topics = {"exchange": "amq.topic", "write": pattern, "read": ".*"}
    assert client.status("PUT /topic-permissions/%2f/guest", topics) == 400
    policy = {"vhost": "/", "name": "grown", **ONE, "pattern": pattern, "priority": 0, "apply-to": "all"}
    assert client.status("POST /definitions", {"policies": [policy]}) == 400
    assert client.status(f"GET /queues?page=1&use_regex=true&name={quote(pattern)}") == 400
    assert client.get("/policies") == []


def test_a_policy_whose_pattern_takes_too_long_is_named(client: HttpClient, node: BrokerProcess) -> None:
    client.ask("PUT /vhosts/slow")
    for number in range(60):
        client.ask(f"PUT /queues/slow/{'a' * 200}{number}", {})
    hostile = ONE | {"pattern": "^(a|aa)+$"}
    client.ask("PUT /policies/slow/hostile", hostile)
    while "suspended" not in client.get("/policies/slow/hostile"):
        # Each request asks for the policy of every queue, in case that setting it was not enough.
        client.get("/queues/slow")
    node.wait_for("'^(a|aa)+$'")
    client.ask("DELETE /vhosts/slow")


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_is_null_or_not_a_string_is_refused_as_by_rabbitmq(
    client: HttpClient, kind: str
) -> None:
    kinds = "unrecognised; should be 'queues', 'exchanges' or 'all'"
    for wrong, said in (
        ({"priority": None}, "priority should be a number, actually was null"),
        ({"apply-to": None}, f"apply-to 'null' {kinds}"),
        ({"apply-to": True}, f"apply-to 'true' {kinds}"),
    ):
        refused = client.refusal(f"PUT /{kind}/%2f/null", ONE | wrong)
        assert refused == (400, f"Validation failed\n\n{said}\n")
    assert client.status(f"GET /{kind}/%2f/null") == 404


def test_json_that_is_nested_too_deep_is_refused_and_the_node_can_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with broker("--data-dir", str(tmp_path)) as started:
            value: object = 1
            for _ in range(450):
                value = {"a": value}
            client = HttpClient(started)
            for path, body in {
                "/policies/%2f/p": ONE | {"definition": value},
                "/operator-policies/%2f/p": ONE | {"definition": value},
                "/global-parameters/p": {"value": value},
                "/queues/%2f/p": {"arguments": value},
            }.items():
                assert client.refusal(f"PUT {path}", body) == (400, "not_json")
            assert client.get("/policies") == []
            started.stop()
