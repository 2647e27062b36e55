"""The web interface: static files, built from `ui/` into `static/` beside this file.

If it was not built, a page says how to build it; the API works without it.
"""

import asyncio
import gzip
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from warren.management.negotiation import is_compressible, takes_gzip

# The prefix of all paths: RabbitMQ's `management.path_prefix`.
PREFIX: web.AppKey[str] = web.AppKey("prefix", str)

_BUILT = Path(__file__).parent / "static"
_PAGE = "index.html"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
# Names of files in this directory contain a digest of their content, so they may be cached for ever.
_ASSETS = "assets"
_FOR_EVER = "public, max-age=31536000, immutable"
_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Warren</title>
<h1>The web interface was not built</h1>
<p>In the checkout, <code>make ui</code> builds it (it needs Node 20.19 or newer, and npm);
then start the broker again.</p>
<p>The HTTP API is at <a href="api/overview">api/</a>, and the <code>warren</code> command uses it.</p>
"""


def add_web_interface(app: web.Application, folder: Path = _BUILT) -> None:
    """Serve the files in `folder`, which are all read now; later changes on disk have no effect."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    if _PAGE not in files:
        files = {_PAGE: _MISSING.encode()}
    prefix = app[PREFIX]
    for name, content in files.items():
        app.router.add_get(f"{prefix}/" if name == _PAGE else f"{prefix}/{name}", _file(name, content))
    for path in ("/mgmt", "/mgmt/"):
        app.router.add_get(prefix + path, redirect_to(302, f"{prefix}/"))
    if prefix:
        # The page uses relative URLs, so it is served at one path only, with a trailing slash.
        for path in ("/", prefix):
            app.router.add_get(path, redirect_to(301, f"{prefix}/"))


def _file(name: str, content: bytes) -> Callable[[web.Request], Awaitable[web.Response]]:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    cached = _FOR_EVER if name.startswith(f"{_ASSETS}/") else "no-cache"
    charset = "utf-8" if kind.startswith("text/") else None
    is_large = is_compressible(kind, len(content))
    headers = _HEADERS | {"cache-control": cached} | ({"vary": "accept-encoding"} if is_large else {})
    # Holds the compressed content after the first request for it.
    kept: list[bytes] = []

    async def answer(request: web.Request) -> web.Response:
        if not is_large or not takes_gzip(request):
            return web.Response(body=content, content_type=kind, charset=charset, headers=headers)
        if not kept:
            kept.append(await asyncio.to_thread(gzip.compress, content, mtime=0))
        encoded = headers | {"content-encoding": "gzip"}
        return web.Response(body=kept[0], content_type=kind, charset=charset, headers=encoded)

    return answer


def redirect_to(status: int, place: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A handler that redirects to `place`."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"location": place})

    return answer
