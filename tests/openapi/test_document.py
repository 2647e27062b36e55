"""Every request that the OpenAPI document allows is answered as the document says.

schemathesis makes the requests, equal ones in every run. Half of them name existing objects, the others do
not.
"""

import base64
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.warren_process import free_port, running_warren, wait_until_listening

from warren.management.openapi import document
from warren.management.routes import ROUTES

schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

AUTHORIZATION = {"authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
# Existing objects, by the names of path parameters.
THERE = {
    "vhost": "v", "queue": "q", "exchange": "x", "user": "u", "source": "x", "kind": "q", "destination": "q",
    "properties": "k", "component": "c", "name": "n", "protocol": "amqp", "unit": "days", "within": "1",
}  # fmt: skip
# With its query this request has an existing node, which is asked here, start again without what it has.
RESET = "/warren/nodes/{node}/reset"
# These answers continue until the client disconnects.
ENDLESS = r"^/warren/live$"
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]

# Requests to each operation.
EXAMPLES = 12
OPERATIONS = [
    found.ok()
    for found in schemathesis.openapi.from_dict(document(ROUTES))
    .exclude(path_regex=ENDLESS)
    .get_all_operations()
]


@schemathesis.serializer("application/vnd.apache.arrow.stream")
def as_it_is(_: Any, value: Any) -> bytes:
    """Random bytes, which are hardly ever a valid Arrow stream."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The HTTP port of a broker that logs to a file, because no test reads its standard error."""
    port = free_port()
    folder = tmp_path_factory.mktemp("broker")
    arguments = ("--management-port", str(port), "--data-dir", str(folder / "data"))
    with running_warren(folder, arguments=arguments) as broker:
        wait_until_listening(broker.process, port, broker.log)
        yield port
        assert b"unexpected exception" not in broker.log.read_bytes()


def make(port: int) -> None:
    """Create the objects that paths name; an earlier request may have deleted them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for line, body in (
        ("PUT /vhosts/v", {}),
        ("PUT /permissions/v/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
        ("PUT /users/u", {"password": "p", "tags": "management"}),
        ("PUT /permissions/v/u", {"configure": ".*", "write": ".*", "read": ".*"}),
        ("PUT /topic-permissions/v/u", {"exchange": "x", "write": ".*", "read": ".*"}),
        ("PUT /queues/v/q", {}),
        ("PUT /exchanges/v/x", {"type": "topic"}),
        ("POST /bindings/v/e/x/q/q", {"routing_key": "k"}),
        ("PUT /policies/v/n", {"pattern": "^none$", "definition": {"max-length": 5}}),
        ("PUT /operator-policies/v/n", {"pattern": "^none$", "definition": {"max-length": 5}}),
        ("PUT /parameters/c/v/n", {"value": 1}),
        ("PUT /global-parameters/n", {"value": 1}),
        ("PUT /vhost-limits/v/max-queues", {"value": 1_000}),
        (
            "POST /exchanges/v/amq.default/publish",
            {"routing_key": "q", "properties": {}, "payload": "{}", "payload_encoding": "string"},
        ),
    ):
        method, path = line.split()
        connection.request(method, f"/api{path}", json.dumps(body), AUTHORIZATION)
        connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_operation_is_answered_as_the_document_says(operation: Any, port: int) -> None:
    there = {**THERE, "node": node_name(port)}

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy())
    def ask(case: Any) -> None:
        if is_known(case):
            case.path_parameters = {
                name: there.get(name, value) for name, value in case.path_parameters.items()
            }
            if operation.path == RESET:
                case.query = {}
        response = case.call(base_url=f"http://127.0.0.1:{port}/api", headers=AUTHORIZATION)
        assert response.status_code < 500 or is_unwell(case, response.status_code), response.text
        case.validate_response(response, checks=CHECKS)

    make(port)
    ask()


def test_an_answer_without_columns_has_all_fields_that_the_document_requires(port: int) -> None:
    make(port)
    components = document(ROUTES)["components"]["schemas"]
    checked = set()
    for path, schema in shortened_answers(components):
        for item in asked(port, path):
            missing = set(components[schema]["x-required-without-columns"]) - set(item)
            assert not missing, (path, schema)
            checked.add(schema)
    assert {"QueueShape", "ExchangeShape", "BindingShape", "UserShape", "PermissionShape"} <= checked


def shortened_answers(components: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Paths with the schema of an answer that `columns` can shorten, or of each object in one."""
    for path, methods in document(ROUTES)["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        for part in (schema, *schema.get("anyOf", ())):
            name = part.get("items", part).get("$ref", "").rpartition("/")[2]
            if "x-required-without-columns" in components.get(name, ()):
                yield path, name


def asked(port: int, path: str) -> list[Any]:
    """The objects in the answer of `path`, if all its parameters name existing objects; none otherwise."""
    parts = re.findall("{([a-z_]+)}", path)
    if not THERE.keys() >= set(parts):
        return []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", f"/api{path.format(**THERE)}", headers=AUTHORIZATION)
        response = connection.getresponse()
        body = json.loads(response.read())
    if response.status != 200:
        return []
    return body if isinstance(body, list) else [body]


def is_known(case: Any) -> bool:
    """Whether the request shall name existing objects: half of them do."""
    return sum(len(str(value)) for value in case.path_parameters.values()) % 2 == 0


def is_unwell(case: Any, status: int) -> bool:
    """Whether a health check has failed."""
    return status == 503 and case.operation.path.startswith("/health/")


def node_name(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/overview?columns=node", headers=AUTHORIZATION)
    name: str = json.loads(connection.getresponse().read())["node"]
    connection.close()
    return name
