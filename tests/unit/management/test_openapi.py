"""The OpenAPI document describes every route, and the guide names only routes that exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from aiohttp import web

from warren.management.auth import Right
from warren.management.managed_node import ManagedNode
from warren.management.openapi import document
from warren.management.operation import PageQuery, documented, paged
from warren.management.routes import ROUTES, HttpRoute

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "http-api.md"
# A path in the guide, up to its first variable part.
WRITTEN = re.compile(r"/api/[^\s`'\"?&)…]+")


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return document(ROUTES)


def operations(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_every_route_is_in_the_document_with_its_methods_and_rights(whole: dict[str, Any]) -> None:
    assert list(whole["paths"]) == [route.path for route in ROUTES]
    for route in ROUTES:
        operations = whole["paths"][route.path]
        assert list(operations) == [method.lower() for method in route.handlers]
        for method in route.handlers:
            assert operations[method.lower()]["x-right"] == route.right_of(method).value


def test_every_operation_has_a_unique_id_and_a_summary(whole: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(whole)]
    assert len(names) == len(set(names))
    for name, operation in operations(whole):
        assert operation["summary"].endswith((".", "!", "?")), name


def test_every_reference_resolves(whole: dict[str, Any]) -> None:
    def references(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from references(item)

    found = set(references(whole))
    assert found
    for reference in found:
        place = whole
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]


class LooksQuery(TypedDict):
    """How one looks."""

    how: str


class LooksBody(TypedDict, total=False):
    """What one looks for."""

    size: int


@documented(query=LooksQuery, body=LooksBody, response=list[LooksBody])
def looks(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """Look.

    And look again.
    """
    raise AssertionError


def test_annotations_of_a_handler_are_in_the_document() -> None:
    route = HttpRoute("/warren/looks/{vhost}", {"POST": looks}, Right.MONITOR)
    whole = document([route])
    operation = whole["paths"]["/warren/looks/{vhost}"]["post"]
    schema = {"$ref": "#/components/schemas/LooksBody"}
    assert operation["summary"] == "Look."
    assert operation["description"].startswith("And look again.\n\nRequires the user tag monitoring")
    assert [(part["name"], part["in"], part["required"]) for part in operation["parameters"]] == [
        ("vhost", "path", True),
        ("how", "query", True),
    ]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == schema
    assert operation["responses"]["200"]["content"]["application/json"]["schema"] == {
        "type": "array",
        "items": schema,
    }
    assert set(operation["responses"]) == {"200", "400", "401", "404", "503"}
    assert operation["tags"] == ["warren/looks"]


class SeenShape(TypedDict):
    """What one sees."""

    size: int


@documented(query=PageQuery, response=paged(SeenShape))
def sees(request: web.Request, node: ManagedNode) -> web.StreamResponse:
    """See."""
    raise AssertionError


def test_columns_are_optional_and_the_fields_of_a_page_are_not() -> None:
    schemas = document([HttpRoute("/warren/seen", {"GET": sees}, Right.USER)])["components"]["schemas"]
    assert "required" not in schemas["SeenShape"]
    (page,) = (schema for name, schema in schemas.items() if name.startswith("Page"))
    assert "page_count" in page["required"]


def test_the_guide_names_every_route_of_warren_and_no_other() -> None:
    there, _, not_there = GUIDE.read_text().partition("## Not implemented")
    assert not_there
    written = {found.rstrip(".,") for found in WRITTEN.findall(there)}
    patterns = {
        route.path: re.compile("/api" + re.sub(r"\\{[a-z_]+\\}", "[^/]+", re.escape(route.path)))
        for route in ROUTES
        if not route.is_deprecated
    }
    for path, pattern in patterns.items():
        if path.startswith("/warren/"):
            assert any(map(pattern.fullmatch, written)), f"the guide does not mention /api{path}"
    for name in written - {"/api/warren"}:
        assert any(pattern.fullmatch(name) for pattern in patterns.values()), f"{name} does not exist"
