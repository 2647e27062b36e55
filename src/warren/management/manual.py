"""HTML pages of the API documentation and of the tool `rabbitmqadmin`."""

import asyncio
from collections.abc import Awaitable, Callable
from html import escape
from pathlib import Path
from typing import Any

from aiohttp import web

from warren.management.web_interface import PREFIX, redirect_to

_SCRIPT = Path(__file__).with_name("rabbitmqadmin.py")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid #8888; padding: .3rem .6rem; text-align: left; vertical-align: top; }
code { font-size: .9em; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } a { color: #8bf; } }
"""
_TOOL = """
<p><a href="rabbitmqadmin" download>rabbitmqadmin</a> manages this broker, or a RabbitMQ, from a shell.
It is one file, and needs Python 3.9 or newer and nothing else.</p>
<p>Save it, make it executable, and begin with <code>rabbitmqadmin --help</code> or
<code>rabbitmqadmin help subcommands</code>. It is Warren's own, with the commands and options of
RabbitMQ's. The <code>warren</code> command can do more.</p>
"""
# The paths at which RabbitMQ serves these pages.
_MOVED = {
    "/api": "/api/index.html",
    "/api/": "/api/index.html",
    "/doc/stats.html": "/api/index.html",
    "/cli": "/cli/index.html",
    "/cli/": "/cli/index.html",
}


def add_manual(app: web.Application, document: Callable[[], dict[str, Any]]) -> None:
    """Serve the pages; `document` returns the OpenAPI document, and is called when a page is requested."""
    get, prefix = app.router.add_get, app[PREFIX]
    get(f"{prefix}/api/index.html", _page(lambda: _of_api(document())))
    get(f"{prefix}/api/index.css", _file(lambda: _STYLE.encode(), "text/css"))
    get(f"{prefix}/cli/index.html", _page(lambda: _html("rabbitmqadmin", _TOOL)))
    get(f"{prefix}/cli/rabbitmqadmin", _file(_SCRIPT.read_bytes, "application/octet-stream"))
    for path, place in _MOVED.items():
        get(prefix + path, redirect_to(301, prefix + place))


def _of_api(document: dict[str, Any]) -> str:
    """Every path of the document, with its methods, their summaries and their parameters."""
    rows = [
        f"<tr><td><code>{method.upper()}</code><td><code>/api{escape(path)}</code>"
        f"<td>{escape(str(said.get('summary', '')))}<td>{_names(said)}"
        for path, item in document["paths"].items()
        for method, said in item.items()
        if isinstance(said, dict) and "responses" in said
    ]
    return _html(
        "HTTP API",
        "<p>Segments in braces are names, with <code>%2F</code> for a slash. The OpenAPI document "
        'with the schemas of requests and responses is <a href="warren/openapi.json">openapi.json</a>.</p>'
        "<table><thead><tr><th>Method<th>Path<th>What it does<th>Query and body<tbody>"
        + "".join(rows)
        + "</table>",
    )


def _names(said: dict[str, Any]) -> str:
    """The names of the query parameters and body fields of an operation."""
    names: list[str] = [entry["name"] for entry in said.get("parameters", ()) if entry.get("in") == "query"]
    body = said.get("requestBody")
    return ", ".join(f"<code>{escape(name)}</code>" for name in names) + _body(body, has_names=bool(names))


def _body(body: object, *, has_names: bool) -> str:
    return ("; a body" if has_names else "a body") if body else ""


def _html(title: str, content: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: Warren</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="../api/index.css">'
        f"<h1>{title}</h1>{content}</html>"
    )


Responder = Callable[[web.Request], Awaitable[web.Response]]


def _page(made: Callable[[], str]) -> Responder:
    return _file(lambda: made().encode(), "text/html")


def _file(made: Callable[[], bytes], kind: str) -> Responder:
    charset = "utf-8" if kind.startswith("text/") else None
    kept: list[bytes] = []

    async def answer(request: web.Request) -> web.Response:
        if not kept:
            kept.append(await asyncio.to_thread(made))
        return web.Response(body=kept[0], content_type=kind, charset=charset, headers=_HEADERS)

    return answer
