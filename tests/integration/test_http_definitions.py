"""Definitions over HTTP: a document of RabbitMQ is imported unchanged, and exported as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.shovels import wait_until
from tests.integration.test_serve import connect

# As exported by RabbitMQ 3.10.8.
DOCUMENT: dict[str, Any] = {
    "rabbit_version": "3.10.8", "rabbitmq_version": "3.10.8", "product_name": "RabbitMQ",
    "product_version": "3.10.8",
    "users": [
        {"name": "alice", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
         "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["administrator"],
         "limits": {"max-connections": 10}},
    ],
    "vhosts": [{"name": "orders"}],
    "permissions": [{"user": "alice", "vhost": "orders", "configure": ".*", "write": ".*", "read": ".*"}],
    "topic_permissions": [
        {"user": "alice", "vhost": "orders", "exchange": "amq.topic", "write": "^a", "read": ".*"}
    ],
    "parameters": [
        {"value": {"max-queues": 500}, "vhost": "orders", "component": "vhost-limits", "name": "limits"},
        {"value": {"pattern": "^q", "definition": {"expires": 36000000}, "priority": 1, "apply-to": "queues"},
         "vhost": "orders", "component": "operator_policy", "name": "op"},
    ],
    "global_parameters": [{"name": "gp", "value": {"a": 1}}],
    "policies": [
        {"vhost": "orders", "name": "p", "pattern": "^q", "apply-to": "queues",
         "definition": {"max-length": 1000}, "priority": 3},
    ],
    "queues": [
        {"name": "q", "vhost": "orders", "durable": True, "auto_delete": False,
         "arguments": {"x-message-ttl": 600000, "x-dead-letter-exchange": "x"}},
        {"name": "bills", "vhost": "orders", "durable": True, "auto_delete": False,
         "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 5, "x-quorum-initial-group-size": 3}},
    ],
    "exchanges": [
        {"name": "x", "vhost": "orders", "type": "topic", "durable": True, "auto_delete": False,
         "internal": False, "arguments": {"alternate-exchange": "amq.fanout"}},
    ],
    "bindings": [
        {"source": "x", "vhost": "orders", "destination": "q", "destination_type": "queue",
         "routing_key": "a.#", "arguments": {}},
    ],
}  # fmt: skip


def test_a_document_of_rabbitmq_is_imported_and_exported(node: BrokerProcess, client: HttpClient) -> None:
    assert client.status("POST /definitions", DOCUMENT) == 204
    assert client.status("POST /definitions", DOCUMENT) == 204
    exported = client.get("/definitions")
    assert exported == client.get("/all-configuration")
    for section, entries in DOCUMENT.items():
        if section == "vhosts":
            assert "orders" in [vhost["name"] for vhost in exported["vhosts"]]
        elif isinstance(entries, list):
            assert [entry for entry in entries if entry not in exported[section]] == [], section
        else:
            assert exported[section] == entries
    assert HttpClient(node, "alice:test12").get("/whoami")["name"] == "alice"
    connection = connect(node.port, "alice", "test12", "orders")
    channel = connection.channel()
    channel.basic_publish("x", "a.b", b"hello")
    assert channel.basic_get("q", auto_ack=True)[2] == b"hello"
    connection.close()
    with broker() as other:
        assert HttpClient(other).status("POST /definitions", exported) == 204
        assert HttpClient(other).get("/definitions") == exported


def test_the_definitions_of_a_vhost_are_exported_and_imported_into_another(client: HttpClient) -> None:
    client.ask("POST /definitions", DOCUMENT)
    exported = client.get("/definitions/orders")
    assert "users" not in exported
    client.ask("PUT /vhosts/copy")
    assert client.status("POST /definitions/copy", exported) == 204
    assert client.get("/definitions/copy") == json.loads(
        json.dumps(exported).replace('"vhost": "orders"', '"vhost": "copy"')
    )
    assert client.refusal("GET /definitions/nosuch") == (400, "vhost_not_found")
    assert client.status("POST /definitions/nosuch", exported) == 404


INVALID = "nothing was imported, as the document has entries that cannot be declared: "


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{bad", "failed_to_parse_json"),
        ({"users": 5}, "users is not a list"),
        (
            {"queues": [{"name": "q", "vhost": "nosuch", "durable": True}]},
            INVALID + "queue 'q' in vhost 'nosuch': no such vhost 'nosuch'",
        ),
        (
            {"permissions": [{"user": "no", "vhost": "/", "configure": "", "write": "", "read": ""}]},
            INVALID + "permissions of user 'no' in vhost '/': no such user 'no'",
        ),
        (
            {"policies": [{"vhost": "/", "name": "p", "pattern": "(", "definition": {"max-length": 5}}]},
            INVALID + "policy 'p' in vhost '/': pattern should be regular expression but is invalid: "
            '{"missing )",1}',
        ),
        (
            {"exchanges": [{"name": "e", "vhost": "/", "type": "nope"}]},
            INVALID + "exchange 'e' in vhost '/': unknown exchange type 'nope'",
        ),
    ],
)
def test_an_invalid_document_is_refused(client: HttpClient, body: object, reason: object) -> None:
    assert client.refusal("POST /definitions", body) == (400, reason)


def test_nothing_is_imported_from_a_document_with_an_invalid_entry(client: HttpClient) -> None:
    queues = [
        {"name": "good", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}},
        {"name": "bad", "vhost": "/", "durable": True, "auto_delete": False,
         "arguments": {"x-max-length": "many"}},
    ]  # fmt: skip
    assert client.status("POST /definitions", {"queues": queues}) == 400
    assert "good" not in [queue["name"] for queue in client.get("/definitions/%2f")["queues"]]


REFUSED: dict[str, list[dict[str, Any]]] = {
    "policies": [
        {"vhost": "/", "name": "p", "pattern": "^x", "apply-to": "queues",
         "definition": {"max-length": "many"}}
    ],
    "parameters": [{"vhost": "/", "component": "shovel", "name": "bad", "value": {"src-uri": "nowhere"}}],
    "permissions": [{"user": "nobody", "vhost": "/", "configure": "", "write": "", "read": ""}],
    "queues": [
        {"name": "q", "vhost": "gone", "durable": True, "auto_delete": False, "arguments": {}}
    ],
}  # fmt: skip


@pytest.mark.parametrize("section", REFUSED)
def test_nothing_is_imported_from_a_document_with_a_refused_entry(client: HttpClient, section: str) -> None:
    document: dict[str, list[dict[str, Any]]] = {
        "users": [{"name": "half", "password": "p", "tags": "administrator"}],
        "vhosts": [{"name": "half"}],
        "permissions": [{"user": "half", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
        "parameters": [
            {"vhost": "/", "component": "shovel", "name": "half",
             "value": {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}}
        ],
    }  # fmt: skip
    document[section] = [*document.get(section, []), *REFUSED[section]]
    assert client.status("POST /definitions", document) == 400
    found = client.get("/definitions")
    for kind in ("users", "vhosts", "parameters"):
        assert "half" not in [entry["name"] for entry in found[kind]]
    assert "half" not in [entry["user"] for entry in found["permissions"]]


def test_a_shovel_in_a_virtual_host_that_an_import_creates_may_use_its_queues(client: HttpClient) -> None:
    ends = {"src-uri": "amqp:///made", "src-queue": "in", "dest-uri": "amqp:///made", "dest-queue": "out"}
    document = {
        "vhosts": [{"name": "made", "default_queue_type": "quorum"}],
        "queues": [{"name": "in", "vhost": "made"}, {"name": "out", "vhost": "made"}],
        "exchanges": [{"name": "dead", "vhost": "made", "type": "fanout"}],
        "bindings": [{"source": "dead", "vhost": "made", "destination": "in", "destination_type": "queue"}],
        "parameters": [{"component": "shovel", "vhost": "made", "name": "s", "value": ends}],
    }
    # With a byte order mark, as editors write it.
    data = b"\xef\xbb\xbf" + json.dumps(document).encode()
    assert client.status("POST /definitions", data) == 204
    (permission,) = client.get("/vhosts/made/permissions")
    assert (permission["user"], permission["configure"], permission["read"]) == ("guest", ".*", ".*")
    assert client.get("/queues/made/in")["type"] == "quorum"
    message = {"properties": {}, "routing_key": "any", "payload": "x", "payload_encoding": "string"}
    assert client.ask("POST /exchanges/made/dead/publish", message).value == {"routed": True}
    wait_until(lambda: client.get("/queues/made/out").get("messages") == 1)
    assert [shovel["state"] for shovel in client.get("/shovels/made")] == ["running"]
    assert client.status("DELETE /vhosts/made") == 204


def test_a_virtual_host_that_was_imported_as_protected_is_not_deleted(client: HttpClient) -> None:
    metadata = {"description": "ledger", "tags": [], "default_queue_type": "quorum"}
    entry = {"name": "ledger", "metadata": metadata | {"protected_from_deletion": True}}
    assert client.status("POST /definitions", {"vhosts": [entry]}) == 204
    assert entry in client.get("/definitions")["vhosts"]
    text = "Refusing to delete virtual host 'ledger' because it is protected from deletion"
    assert client.refusal("DELETE /vhosts/ledger") == (412, text)
    assert client.status("DELETE /vhosts/ledger/deletion/protection") == 204
    assert "protected_from_deletion" not in client.get("/vhosts/ledger")["metadata"]
    assert client.status("POST /vhosts/ledger/deletion/protection") == 204
    assert client.get("/vhosts/ledger")["metadata"] == entry["metadata"]
    assert client.status("PUT /vhosts/ledger", {"protected_from_deletion": False}) == 204
    assert client.status("DELETE /vhosts/ledger") == 204


# What RabbitMQ accepts and this broker refuses, and its name in the refusal.
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "policies": (
        {"vhost": "/", "name": "large", "pattern": "(a{999}){999}", "apply-to": "queues", "priority": 0,
         "definition": {"max-length": 5}},
        "policy 'large' in vhost '/': pattern should be regular expression but is invalid",
    ),
}  # fmt: skip


def test_unsupported_features_are_named_and_nothing_is_imported(client: HttpClient) -> None:
    kept = {"name": "kept", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    document = {section: [entry] for section, (entry, _) in IMPOSSIBLE.items()}
    document["queues"] = [kept]
    before = client.get("/definitions")
    for path in ("/definitions", "/definitions/%2f"):
        status, reason = client.refusal(f"POST {path}", document)
        assert status == 400
        assert [text for _, text in IMPOSSIBLE.values() if text not in str(reason)] == []
    assert client.get("/definitions") == before
    # A plan shows what is blocked, and what is not is applied.
    plan = client.ask("POST /warren/definitions/plan", document).value
    assert len(plan["skipped"]) == len(IMPOSSIBLE)
    assert [text for _, text in IMPOSSIBLE.values() if text not in " ".join(plan["skipped"])] == []
    assert plan["totals"] | {"keep": 0} == {
        "create": 1, "change": 0, "delete": 0, "blocked": len(IMPOSSIBLE), "keep": 0,
    }  # fmt: skip
    fingerprint = plan["fingerprint"]
    applied = client.ask(f"POST /warren/definitions/apply?fingerprint={fingerprint}", document).value
    assert (applied["applied"], applied["failed"]) == (1, 0)
    after = client.get("/definitions")
    assert after["policies"] == before["policies"]
    assert [queue["name"] for queue in after["queues"] if queue not in before["queues"]] == ["kept"]
    client.ask("DELETE /queues/%2f/kept")


@pytest.mark.parametrize("section", IMPOSSIBLE)
def test_a_node_does_not_start_with_unsupported_definitions(tmp_path: Path, section: str) -> None:
    entry, text = IMPOSSIBLE[section]
    (tmp_path / "definitions.json").write_text(json.dumps({"vhosts": [{"name": "/"}], section: [entry]}))
    status, errors = refusal(WARREN_LOAD_DEFINITIONS=str(tmp_path / "definitions.json"))
    assert status != 0
    assert text in errors


def test_what_cannot_be_declared_is_skipped_and_named_if_that_is_asked_for(client: HttpClient) -> None:
    document = {
        "queues": [{"name": "rest", "vhost": "/"}, {"name": "none", "vhost": "nosuch"}],
        "bindings": [
            {"source": "amq.topic", "vhost": "/", "destination": "amq.gen-1", "destination_type": "queue",
             "routing_key": "a", "arguments": {}}
        ],
        "parameters": [{"vhost": "/", "component": "mqtt", "name": "m", "value": {"a": 1}}],
    }  # fmt: skip
    answer = client.ask("POST /definitions?skip_invalid=true", document)
    assert answer.status == 200
    assert answer.value == {
        "skipped": ["queue 'none' in vhost 'nosuch': no such vhost 'nosuch'"],
        "warnings": [
            "parameter 'm' of component 'mqtt' in vhost '/': "
            "it is kept without effect, as Warren has no component 'mqtt'",
            "binding from exchange 'amq.topic' to queue 'amq.gen-1' with key 'a' in vhost '/': "
            "skipped: a queue that the server has named is not imported",
        ],
    }
    exported = client.get("/definitions")
    assert document["parameters"][0] in exported["parameters"]
    assert "rest" in [queue["name"] for queue in exported["queues"]]
    plan = client.ask("POST /warren/definitions/plan", document).value
    assert plan["warnings"] == answer.value["warnings"]
    client.ask("DELETE /parameters/mqtt/%2f/m")
    client.ask("DELETE /queues/%2f/rest")


def test_a_node_starts_with_the_rest_of_a_definitions_file_if_that_is_set(tmp_path: Path) -> None:
    entry, text = IMPOSSIBLE["policies"]
    file = tmp_path / "definitions.json"
    user = {"name": "al", "password": "p", "tags": "administrator"}
    file.write_text(
        json.dumps({"users": [user], "vhosts": [{"name": "/"}], "policies": [entry]}), "utf-8-sig"
    )
    settings = {"WARREN_LOAD_DEFINITIONS": str(file), "WARREN_DEFINITIONS_SKIP_INVALID": "true"}
    with broker(**settings) as started:
        assert HttpClient(started, "al:p").get("/policies") == []
        assert text in "".join(started.lines)


def test_many_queues_and_bindings_are_imported_from_one_document(client: HttpClient) -> None:
    client.ask("PUT /vhosts/many")
    names = [f"q{number}" for number in range(300)]
    document = {
        "queues": [{"name": name, "durable": True, "auto_delete": False, "arguments": {}} for name in names],
        "bindings": [
            {"source": "amq.direct", "destination": name, "destination_type": "queue", "routing_key": name,
             "arguments": {}}
            for name in names
        ],
    }  # fmt: skip
    assert client.status("POST /definitions/many", document) == 204
    exported = client.get("/definitions/many")
    assert [queue["name"] for queue in exported["queues"]] == names
    assert len(exported["bindings"]) == 300


def test_definitions_that_are_known_already_are_not_sent_again(client: HttpClient) -> None:
    answer = client.ask("GET /definitions")
    known = {"if-none-match": answer.headers["etag"]}
    assert client.ask("GET /definitions", headers=known).status == 304
    client.ask("PUT /queues/%2f/more", {"durable": True})
    assert client.ask("GET /definitions", headers=known).status == 200
    assert client.ask("GET /definitions/%2f", headers=known).status == 200
    client.ask("DELETE /queues/%2f/more")
    assert client.ask("GET /definitions", headers=known).status == 304


def test_a_file_can_be_uploaded_with_a_form_and_redirects_back(client: HttpClient) -> None:
    queue = {"name": "up", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    part = "--B\r\ncontent-disposition: form-data; name={}\r\n\r\n{}\r\n"
    file = part.format('"file"; filename="d.json"', json.dumps({"queues": [queue]}))
    headers = {"content-type": "multipart/form-data; boundary=B"}
    for target, status in (("../#/import-succeeded", 303), ("https://elsewhere.example/", 204)):
        body = file + part.format('"redirect"', target) + "--B--\r\n"
        answer = client.ask("POST /definitions", body.encode(), headers)
        assert answer.status == status
    assert "up" in [queue["name"] for queue in client.get("/definitions/%2f")["queues"]]
    answer = client.ask("POST /definitions", (part.format('"redirect"', "x") + "--B--\r\n").encode(), headers)
    assert (answer.status, answer.reason) == (400, "failed_to_parse_json")
