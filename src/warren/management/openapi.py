"""The document of the API, OpenAPI 3.1: made of the table of routes and of what stands beside handlers."""

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
    "RabbitMQ 3.10.8's management API, and what is Warren's own below `/warren`. "
    "HEAD comes with GET, OPTIONS with everything."
)
# Who may ask, in a sentence.
_WHO: Mapping[Right, str] = {
    Right.ANYBODY: "Anybody may ask.",
    Right.USER: "Every user who has a tag may ask.",
    Right.MONITOR: "Users with the tag monitoring or administrator may ask.",
    Right.ADMINISTRATOR: "Users with the tag administrator may ask.",
    Right.VHOST: "Users with permissions in the virtual host may ask, and administrators.",
    Right.VISIBLE_VHOST: "Users with permissions in the virtual host may ask, and who sees all of them.",
    Right.POLICIES: "Policymakers with permissions in the virtual host may ask, and administrators.",
    Right.GLOBAL_PARAMETERS: "Users with the tag policymaker or administrator may ask.",
}
_PARTS = {"vhost": "A virtual host; `%2F` is the one that is called `/`."}
# What a method answers when all went well, where nothing else is said.
_DONE: Mapping[str, tuple[int, ...]] = {"GET": (200,), "PUT": (201, 204), "POST": (204,), "DELETE": (204,)}
_MEANING = {
    200: "As asked.",
    201: "It is there from now on.",
    204: "It is so now.",
    303: "It is done, and the form is to go on elsewhere.",
    400: "The request is wrong, and how.",
    401: "Nobody says who asks, or that one may not.",
    403: "This is for the web interface only.",
    404: "There is no such thing.",
    405: "Another method is wanted.",
    410: "It was there, and is not any more.",
    413: "That is too large.",
    503: "Not now: a virtual host is down, or a check has found something.",
}


def document(routes: Iterable[HttpRoute]) -> Json:
    """What `routes` take and give."""
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
            # Whoever asks as nobody is challenged, without words.
            | {"401": {"description": _MEANING[401]}},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


class _Shapes:
    """The schemas of shapes."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        known: list[Shape] = [ErrorShape]
        known += [shape for shape in shapes if shape not in known]
        schemas, self.components = msgspec.json.schema_components(known, ref_template=_TEMPLATE)
        self._known = known
        self._schemas = schemas

    def of(self, shape: Shape) -> Json:
        """The schema of `shape`."""
        return self._schemas[self._known.index(shape)]

    def loosen(self, schema: Json) -> None:
        """No field has to be in what `schema` describes: clients may ask for some columns only."""
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
    # A GET of which nothing is said answers some JSON.
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
    """How the route may be refused, whatever the handler does."""
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
    part: Json = {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    if name in _PARTS:
        part["description"] = _PARTS[name]
    return part


def _parameter(name: str, said: Operation, schema: Json) -> Json:
    schema = dict(schema)
    parameter: Json = {"name": name, "in": "query", "required": name in said.query.__required_keys__}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    return parameter | {"schema": schema}


def _response(status: int, content_type: str, schema: Json | None) -> Json:
    response: Json = {"description": _MEANING.get(status, HTTPStatus(status).phrase)}
    if schema is not None:
        response["content"] = {content_type: {"schema": schema}}
    return response
