"""The page about missing API fields lists no field that exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "http-api-fields.md"
LINE = re.compile(r"^\| `(/[^`]+)` \| (?:`([^`]+)`|(\d+)) \| .+ \|$", re.MULTILINE)
LINES = [found.groups() for found in LINE.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module", autouse=True)
def objects(node: BrokerProcess) -> Iterator[None]:
    """A queue and an exchange of each kind that could have such fields."""
    client = HttpClient(node)
    for name, arguments in (
        ("classic", {"x-single-active-consumer": True}),
        ("quorum", {"x-queue-type": "quorum", "x-single-active-consumer": True}),
        ("stream", {"x-queue-type": "stream"}),
    ):
        body = {"durable": True, "arguments": arguments}
        assert client.status(f"PUT /queues/%2F/{name}", body) == 201
    assert client.status("PUT /exchanges/%2F/named", {"type": "topic", "durable": True}) == 201
    yield
    for path in ("queues/%2F/classic", "queues/%2F/quorum", "queues/%2F/stream", "exchanges/%2F/named"):
        assert client.status(f"DELETE /{path}") == 204


def values(value: Any, path: list[str]) -> list[Any]:
    """The values at `path` of `value`, for every entry of a list."""
    if isinstance(value, list):
        return [found for item in value for found in values(item, path)]
    if not path:
        return [value]
    if not isinstance(value, dict) or path[0] not in value:
        return []
    return values(value[path[0]], path[1:])


def test_the_page_has_lines_of_each_kind() -> None:
    assert len(LINES) >= 7
    assert any(status for _, _, status in LINES)
    assert any(asked.startswith("/metrics") for asked, _, _ in LINES)


@pytest.mark.parametrize(("asked", "field", "status"), LINES)
def test_fields_listed_as_missing_are_missing(
    node: BrokerProcess, asked: str, field: str | None, status: str | None
) -> None:
    if asked.startswith("/metrics"):
        code, body = get(node, asked, "http/prometheus")
        assert code == 200
        assert f"# TYPE {field} " not in body.decode()
        return
    client = HttpClient(node)
    path = asked.replace("{node}", quote(client.get("/overview")["node"], safe=""))
    if status is not None:
        assert client.status(f"GET {path}") == int(status)
        return
    assert field is not None
    answer = client.get(path)
    assert answer
    assert values(answer, field.split(".")) == []


def test_a_stream_shows_its_offsets_and_consumers(node: BrokerProcess) -> None:
    client = HttpClient(node)
    here = client.get("/overview")["node"]
    stream = client.get("/queues/%2F/stream")
    assert (stream["leader"], stream["members"], stream["online"]) == (here, [here], [here])
    assert stream["readers"] == {here: 0}
    assert "leader" not in client.get("/queues/%2F/classic")
