"""The OpenAPI 3.1 document of the API, generated from the route table and the declared operations."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias, get_type_hints

import msgspec

from warren import __version__
from warren.management.auth import Right
from warren.management.operation import ErrorShape, Operation, Shape, operation_of
from warren.management.routes import HttpRoute
from warren.management.web_sessions import COOKIE

Json: TypeAlias = dict[str, Any]

_TEMPLATE = "#/components/schemas/{name}"
_JSON = "application/json"
# The required fields of a schema that `columns` can shorten, whose `required` is therefore left out.
_WITHOUT_COLUMNS = "x-required-without-columns"
_PART = re.compile(r"\{([a-z_]+)\}")
_OWN = "warren"
_ABOUT = (
    "The management API of RabbitMQ 3.10.8, with Warren's own endpoints below `/warren`. "
    "Every path that supports GET supports HEAD; every path supports OPTIONS."
)
# Which users may make the request, in a sentence.
_WHO: Mapping[Right, str] = {
    Right.ANYBODY: "No authentication is required.",
    Right.USER: "Requires one of the user tags management, policymaker, monitoring and administrator.",
    Right.MONITOR: "Requires the user tag monitoring or administrator.",
    Right.ADMINISTRATOR: "Requires the user tag administrator.",
    Right.VHOST: "Requires permissions in the virtual host, or the user tag administrator.",
    Right.VISIBLE_VHOST: "Requires permissions in the virtual host, or the tag monitoring or administrator.",
    Right.POLICIES: "Requires the tag administrator, or policymaker and permissions in the virtual host.",
    Right.GLOBAL_PARAMETERS: "Requires the user tag policymaker or administrator.",
}
# The placeholders of paths, with a description for each; all values are percent-encoded.
_PARTS = {
    "channel": "Name of the channel, as `name` in the list of channels.",
    "component": "Component of the parameter, such as `federation-upstream`.",
    "connection": "Name of the connection, as `name` in the list of connections.",
    "destination": "Name of the bound queue or exchange.",
    "exchange": "Name of the exchange; `amq.default` for the default exchange.",
    "filter": "Name of a group of tables.",
    "item": "Id of the quarantined item, as `id` in the list.",
    "job": "Id of the job.",
    "kind": "Kind of the destination: `q` for a queue, `e` for an exchange.",
    "lease": "Id of the lease.",
    "link": "Id of the federation link, as `id` in the list.",
    "name": "Name of the object.",
    "node": "Name of the node.",
    "password": "The password to hash.",
    "pattern": "Regular expression for the names of queues.",
    "port": "Number of the port.",
    "properties": "The `properties_key` of the binding.",
    "protocol": "Name of the protocol, such as `amqp`.",
    "queue": "Name of the queue or stream.",
    "resource": "The resource: `memory` or `disk`.",
    "source": "Name of the exchange that messages are routed from.",
    "unit": "Unit of time: `days`, `weeks`, `months` or `years`.",
    "user": "Name of the user.",
    "vhost": "Name of the virtual host, percent-encoded: `%2F` for `/`.",
    "within": "Number of units of time.",
}
# Status codes of a successful request by method, unless the operation declares others.
_DONE: Mapping[str, tuple[int, ...]] = {"GET": (200,), "PUT": (201, 204), "POST": (204,), "DELETE": (204,)}
_MEANING = {
    200: "The request succeeded.",
    201: "Created.",
    204: "The request succeeded; the response has no body.",
    303: "The request succeeded; the browser is redirected.",
    400: "The request is invalid; `reason` says why.",
    401: "Authentication is required, or the user lacks the required tag or permission.",
    403: "The request is forbidden: the user or client may not make it; `reason` says why.",
    404: "The object does not exist.",
    405: "The path does not support this method.",
    410: "The object existed and is gone; `reason` says why.",
    413: "The request or the response is too large.",
    503: "The virtual host or the broker cannot serve the request now, or a health check failed.",
}


def document(routes: Iterable[HttpRoute]) -> Json:
    """The OpenAPI document of `routes`."""
    routes = list(routes)
    shapes = _Shapes(shape for route in routes for shape in _shapes(route))
    paths = {
        route.path: {
            method.lower(): _operation(route, method, handler, shapes)
            for method, handler in route.handlers.items()
        }
        for route in routes
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Warren",
            "version": __version__,
            "description": _ABOUT,
        },
        "servers": [{"url": "/api"}],
        "paths": paths,
        "components": {
            "schemas": shapes.components,
            "responses": {
                str(status): _response(status, _JSON, shapes.of(ErrorShape))
                for status in (400, 404, 413, 503)
            }
            # A request without credentials gets a challenge without a body.
            | {"401": {"description": _MEANING[401]}},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


class _Shapes:
    """The schemas of types, and the components that they share."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        known: list[Shape] = [ErrorShape]
        known += [shape for shape in shapes if shape not in known]
        schemas, self.components = msgspec.json.schema_components(known, ref_template=_TEMPLATE)
        self._known = known
        self._schemas = schemas

    def of(self, shape: Shape) -> Json:
        """The JSON schema of the type `shape`."""
        return self._schemas[self._known.index(shape)]

    def loosen(self, schema: Json) -> None:
        """Make all fields of `schema` optional, because a client may request some columns only."""
        for part in (schema, *schema.get("anyOf", ())):
            name = part.get("items", part).get("$ref", "").rpartition("/")[2]
            component = self.components.get(name, {})
            if "page_count" in component.get("properties", ()):
                self.loosen(component["properties"]["items"])
            else:
                component.setdefault(_WITHOUT_COLUMNS, component.pop("required", []))


def _shapes(route: HttpRoute) -> Iterable[Shape]:
    for method, handler in route.handlers.items():
        said = operation_of(handler)
        yield from _parameters_of(said).values()
        yield from (shape for shape in (said.body, *_responses(said, method).values()) if shape is not None)


def _parameters_of(said: Operation) -> dict[str, Shape]:
    return {} if said.query is None else get_type_hints(said.query, include_extras=True)


def _responses(said: Operation, method: str) -> Mapping[int, Shape]:
    if said.responses is not None:
        return said.responses
    # A GET without a declared response returns some JSON.
    return dict.fromkeys(_DONE[method], Any if method == "GET" else None)


def _operation(route: HttpRoute, method: str, handler: Callable[..., object], shapes: _Shapes) -> Json:
    said = operation_of(handler)
    right = route.right_of(method)
    summary, _, rest = (inspect.getdoc(handler) or "").partition("\n")
    parts = _PART.findall(route.path)
    operation: Json = {
        "operationId": "_".join([method.lower(), *re.findall("[a-z]+", route.path)]),
        "summary": summary,
        "description": "\n\n".join(filter(None, (rest.strip(), _WHO[right]))),
        "tags": [_tag(route.path)],
        "x-right": right.value,
        "security": [] if right is Right.ANYBODY else [{"basic": []}, {"session": []}],
        "parameters": [_part(name) for name in parts]
        + [_parameter(name, said, shapes.of(shape)) for name, shape in _parameters_of(said).items()],
    }
    if route.is_deprecated:
        operation["deprecated"] = True
    if said.body is not None:
        schema = shapes.of(said.body)
        operation["requestBody"] = {"required": True, "content": {said.body_type: {"schema": schema}}}
    responses = {
        str(status): _response(
            status,
            said.response_type if status < HTTPStatus.BAD_REQUEST else _JSON,
            None if shape is None else shapes.of(shape),
        )
        for status, shape in _responses(said, method).items()
    }
    if "columns" in _parameters_of(said):
        for shape in filter(None, _responses(said, method).values()):
            shapes.loosen(shapes.of(shape))
    for status in _refusals(route, said, right):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    operation["responses"] = responses
    return operation


def _refusals(route: HttpRoute, said: Operation, right: Right) -> list[int]:
    """The error status codes that the route can return before its handler runs."""
    takes = said.body is not None or said.query is not None
    parts = _PART.findall(route.path)
    found = {
        400: takes or bool(parts),
        401: right is not Right.ANYBODY,
        404: bool(parts),
        503: "vhost" in parts,
    }
    return [status for status, is_so in found.items() if is_so]


def _tag(path: str) -> str:
    segments = path.split("/")[1:]
    return "/".join(segments[:2]) if segments[0] == _OWN else segments[0]


def _part(name: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "description": _PARTS[name],
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }


def _parameter(name: str, said: Operation, schema: Json) -> Json:
    schema = dict(schema)
    parameter: Json = {"name": name, "in": "query", "required": name in said.query.__required_keys__}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    if schema.pop("deprecated", False):
        parameter["deprecated"] = True
    return parameter | {"schema": schema}


def _response(status: int, content_type: str, schema: Json | None) -> Json:
    response: Json = {"description": _MEANING.get(status, HTTPStatus(status).phrase)}
    if schema is not None:
        response["content"] = {content_type: {"schema": schema}}
    return response
