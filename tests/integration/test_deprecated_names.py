"""Deprecated names of commands and API fields work in a running broker like the new ones."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker

from warren.cli.main import main
from warren.management.deprecated_fields import DEPRECATED_FIELDS
from warren.management.routes import ROUTES


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


def ask(node: BrokerProcess, *words: str) -> Result:
    uri = f"http://127.0.0.1:{node.ports['http']}"
    return CliRunner().invoke(main, ["--uri", uri, *words], prog_name="warren")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("queues", "return", "renamed", "--all"), ("queues", "requeue", "renamed", "--all")),
        (("leases", "give-back", "renamed"), ("leases", "release", "renamed")),
        (("nodes", "attempts"), ("nodes", "auth-attempts")),
        (("nodes", "forget-attempts"), ("nodes", "reset-auth-attempts")),
        (("nodes", "rename-cluster", "renamed"), ("nodes", "set-cluster-name", "renamed")),
        (("log", "level", "info"), ("log", "set-level", "info")),
        (("streams", "delete-super", "renamed"), ("streams", "delete-super-stream", "renamed")),
        (
            ("dead-letters", "redrive", "renamed", "--died-in", "a", "--came-by=b", "--dry-run"),
            ("dead-letters", "redrive", "renamed", "--first-death-queue", "a", "--first-death-exchange=b",
             "--dry-run"),
        ),
        (
            ("exchanges", "route", "amq.direct", "k", "--misses", "1"),
            ("exchanges", "route", "amq.direct", "k", "--unmatched", "1"),
        ),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_a_renamed_command_works_under_its_old_name_with_a_warning(
    node: BrokerProcess, old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    assert ask(node, "queues", "declare", "renamed").exit_code == 0
    was, now = ask(node, *old), ask(node, *new)
    # The counter of logins has increased by one.
    assert (was.exit_code, re.sub(r" *\d+", "", was.stdout)) == (
        now.exit_code,
        re.sub(r" *\d+", "", now.stdout),
    )
    notes = [line for line in was.stderr.splitlines() if "is deprecated: use" in line]
    assert notes
    assert [line for line in was.stderr.splitlines() if line not in notes] == now.stderr.splitlines()


QUEUE = "/warren/queues/%2F/fields"


@pytest.fixture(scope="module")
def client(node: BrokerProcess) -> HttpClient:
    client = HttpClient(node)
    client.ask("PUT /queues/%2F/fields", {"durable": True})
    client.ask("PUT /queues/%2F/kept", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    for queue in ("fields", "kept"):
        message = {"routing_key": queue, "payload": "m", "payload_encoding": "string", "properties": {}}
        client.ask("POST /exchanges/%2F/amq.default/publish", message)
    return client


@pytest.mark.parametrize(
    ("request_line", "body", "inside"),
    [
        (f"GET {QUEUE}/messages", None, "messages"),
        (f"POST {QUEUE}/requeue", {"all": True}, ""),
        (f"POST {QUEUE}/return", {"all": True}, ""),
        (f"POST {QUEUE}/move", {"destination": "kept", "dry_run": True, "places": [0]}, ""),
        (f"POST {QUEUE}/leases", {"key": "k", "messages": 1, "octets": 10}, ""),
        ("GET /warren/leases", None, "*"),
        ("GET /warren/streams", None, "*"),
        ("GET /warren/streams/%2F/kept", None, ""),
        ("GET /warren/streams/%2F/kept", None, "segments"),
        ("GET /warren/streams/%2F/kept", None, "retention"),
        (f"GET {QUEUE}/dead-letters", None, ""),
        ("GET /warren/topology/%2F?kind=queue&name=fields", None, ""),
        ("GET /warren/topology/%2F?kind=queue&name=fields", None, "nodes"),
        ("POST /warren/exchanges/%2F/amq.direct/route", {"routing_key": "k", "misses": 1}, ""),
        ("GET /nodes", None, "*"),
    ],
)
def test_an_answer_contains_renamed_fields_under_both_names(
    client: HttpClient, request_line: str, body: object, inside: str
) -> None:
    answer: Any = client.ask(request_line, body)
    assert answer.status in (200, 201), answer.value
    found = answer.value if inside in ("", "*") else answer.value[inside]
    known = found[0] if isinstance(found, list) else found
    # Handlers declare them, and routes name the handlers.
    assert any(route.is_deprecated for route in ROUTES)
    pairs = (pair for names in DEPRECATED_FIELDS.values() for pair in names.items())
    renamed = {old: new for old, new in pairs if {old, new} <= set(known)}
    assert renamed
    assert {old: known[old] for old in renamed} == {old: known[new] for old, new in renamed.items()}


def test_a_request_accepts_either_name_and_refuses_different_values(client: HttpClient) -> None:
    for number, (old, new) in enumerate((("messages", "max_messages"), ("octets", "max_bytes"))):
        answer: Any = client.ask(f"POST {QUEUE}/leases", {"key": f"refused {number}", old: 1, new: 2})
        assert answer.status == 400
        assert f"{old} is a deprecated name of {new}" in answer.value["reason"]
    answer = client.ask(f"POST {QUEUE}/move", {"destination": "kept", "places": [1], "positions": [2]})
    assert answer.status == 400
    rows = "GET /warren/streams/%2F/kept/rows"
    assert client.ask(f"{rows}?octets_max=1&max_bytes=2").status == 400
    for name in ("octets_max", "max_bytes"):
        answer = client.ask(f"{rows}?{name}=x")
        assert (answer.status, "max_bytes" in answer.value["reason"]) == (400, True)
