"""Import plans over HTTP: their contents, and that applying one does exactly that, or nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.own_vhost import channel_in_vhost

PLAN, APPLY = "/warren/definitions/plan", "/warren/definitions/apply"
QUEUES = 3_000


@pytest.fixture
def channel(node: BrokerProcess, client: HttpClient) -> Iterator[Any]:
    with channel_in_vhost(node, client, "plan") as channel:
        yield channel


def planned(client: HttpClient, document: object, query: str = "", *, vhost: str = "plan") -> Any:
    answer = client.ask(f"POST /warren/definitions/{vhost}/plan{query}", document)
    assert answer.status == 200, answer
    return answer.value


def queue(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "durable": True, "auto_delete": False, "arguments": {}, **more}


def test_an_export_is_an_empty_plan(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("q", durable=True, arguments={"x-max-length": 5})
    channel.exchange_declare("x", "headers", durable=True)
    channel.queue_bind("q", "x", "k", {"a": 1, "b": [True, "c"]})
    client.ask("PUT /policies/plan/p", {"pattern": "^q", "definition": {"max-length": 3}})
    for path, vhost in (("/definitions", ""), ("/definitions/plan", "plan")):
        document = client.get(path)
        where = f"/warren/definitions/{vhost}/plan" if vhost else PLAN
        answer = client.ask(f"POST {where}?prune=true", document).value
        assert answer["items"] == []
        assert answer["totals"]["keep"] >= 4
        assert "password_hash" not in json.dumps(answer)


def test_a_plan_is_applied_as_it_was_shown(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("stays", durable=True)
    channel.queue_declare("goes", durable=True)
    channel.queue_declare("differs", durable=True, arguments={"x-max-length": 1})
    channel.queue_bind("goes", "amq.topic", "k")
    channel.confirm_delivery()
    channel.basic_publish("", "goes", b"x")
    channel.basic_consume("goes", lambda *_: None)
    client.ask("PUT /policies/plan/p", {"pattern": "^q", "definition": {"max-length": 3}})
    document = {
        "queues": [queue("stays"), queue("new"), queue("differs", arguments={"x-max-length": 2})],
        "policies": [{"name": "p", "pattern": "^q", "definition": {"max-length": 4}, "vhost": "plan"}],
        "bindings": [
            {
                "source": "amq.topic", "destination": "new", "destination_type": "queue", "routing_key": "n",
                "arguments": {},
            }
        ],
    }  # fmt: skip
    reported = planned(client, document, "?prune=true")
    by_name = {(item["kind"], item["name"]): item for item in reported["items"]}
    assert by_name["queue", "new"]["action"] == "create"
    assert by_name["queue", "differs"]["action"] == "blocked"
    assert by_name["policy", "p"]["before"]["definition"] == {"max-length": 3}
    assert by_name["policy", "p"]["after"]["definition"] == {"max-length": 4}
    losses = by_name["queue", "goes"]["losses"]
    assert (losses["bindings"], losses["consumers"]) == (1, 1)
    assert losses.get("messages_ready", 0) + losses.get("messages_unacknowledged", 0) == 1
    assert reported["totals"] == {"create": 2, "change": 1, "delete": 1, "blocked": 1, "keep": 1}
    assert "stays" in {one["name"] for one in client.get("/queues/plan")}
    where = f"POST /warren/definitions/plan/apply?prune=true&fingerprint={reported['fingerprint']}"
    done = client.ask(where, document).value
    assert (done["applied"], done["failed"]) == (4, 0)
    assert {item["outcome"] for item in done["items"]} == {"done"}
    assert {one["name"] for one in client.get("/queues/plan")} == {"stays", "new", "differs"}
    assert client.ask(where, document).status == 409
    again = planned(client, document, "?prune=true")
    assert again["totals"] == {"create": 0, "change": 0, "delete": 0, "blocked": 1, "keep": 4}


def test_a_plan_is_refused_if_the_broker_has_changed_since(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("goes", durable=True)
    document = {"queues": [queue("new")]}
    reported = planned(client, document, "?prune=true")
    where = f"POST /warren/definitions/plan/apply?prune=true&fingerprint={reported['fingerprint']}"
    channel.confirm_delivery()
    # It was empty when the plan was made.
    channel.basic_publish("", "goes", b"x")
    answer = client.ask(where, document)
    assert (answer.status, answer.value["error"]) == (409, "conflict")
    channel.queue_purge("goes")
    channel.queue_declare("another", durable=True)
    assert client.ask(where, document).status == 409
    assert client.ask(where.replace("prune=true&", ""), document).status == 409
    assert client.ask(where, {"queues": [queue("other")]}).status == 409
    channel.queue_delete("another")
    assert client.ask(where, document).status == 200


def test_a_section_missing_from_the_document_is_left_unchanged(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    assert planned(client, {"exchanges": []}, "?prune=true")["items"] == []
    answer = client.ask(f"POST {PLAN}?prune=true", {"users": []}).value
    assert not any(item["name"] == "guest" for item in answer["items"])


def test_a_known_password_is_no_change_and_in_no_answer(client: HttpClient) -> None:
    document = {"users": [{"name": "planner", "password": "s3cret", "tags": "monitoring"}]}
    reported = client.ask(f"POST {PLAN}", document).value
    client.ask(f"POST {APPLY}?fingerprint={reported['fingerprint']}", document)
    assert client.ask(f"POST {PLAN}", document).value["items"] == []
    document["users"][0]["password"] = "another"
    (item,) = client.ask(f"POST {PLAN}", document).value["items"]
    assert (item["action"], item["after"]["password"]) == ("change", "another")
    document["users"][0]["password"] = "s3cret3"
    assert "s3cret3" not in json.dumps(client.ask(f"POST {PLAN}", document).value)
    client.ask("DELETE /users/planner")


def test_deleting_a_vhost_is_planned_with_the_number_of_its_objects(client: HttpClient, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    vhosts = [entry for entry in client.get("/definitions")["vhosts"] if entry["name"] != "plan"]
    (item,) = client.ask(f"POST {PLAN}?prune=true", {"vhosts": vhosts}).value["items"]
    assert (item["kind"], item["name"], item["action"]) == ("vhost", "plan", "delete")
    assert item["losses"] == {"queues": 1, "permissions": 1, "connections": 1}


def test_a_long_plan_is_listed_in_part(client: HttpClient, channel: Any) -> None:
    document = {"queues": [queue(f"q{number}") for number in range(QUEUES)]}
    reported = planned(client, document, "?count=10")
    assert (len(reported["items"]), reported["items_total"], reported["totals"]["create"]) == (
        10,
        QUEUES,
        QUEUES,
    )
    where = f"POST /warren/definitions/plan/apply?count=10&fingerprint={reported['fingerprint']}"
    done = client.ask(where, document).value
    assert (done["applied"], len(done["items"])) == (QUEUES, 10)
    assert planned(client, document)["totals"]["keep"] == QUEUES


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PLAN, b"no json"),
        (PLAN, b"[]"),
        (PLAN, b'{"queues": 1}'),
        (PLAN + "?count=1001", b"{}"),
        ("/warren/definitions/none/plan", b"{}"),
    ],
)
def test_invalid_requests_are_refused(client: HttpClient, path: str, body: bytes) -> None:
    assert client.ask(f"POST {path}", body).status in (400, 404)
