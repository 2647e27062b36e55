"""The columns of lists: the fields in the OpenAPI description of the HTTP API."""

from importlib import import_module
from typing import Any


def columns_of(path: str) -> set[str]:
    """Return the columns of the list at `path`; none if it is not described.

    The description loads slowly, and is used only for error messages.
    """
    routes: Any = import_module("warren.management.routes").ROUTES
    document: dict[str, Any] = import_module("warren.management.openapi").document(routes)
    shapes: dict[str, Any] = document["components"]["schemas"]
    described = document["paths"].get(f"/api{path}") or document["paths"].get(path)
    if described is None:
        return set()
    schema = described["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    for choice in schema.get("anyOf", [schema]):
        if choice.get("type") == "array":
            name = choice["items"].get("$ref", "").rpartition("/")[2]
            return set(shapes.get(name, {}).get("properties", ()))
    return set()
