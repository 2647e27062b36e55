"""A running broker, and a browser tab that is signed in to it."""

import base64
import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage, Page, expect

from warren.management import web_interface

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
IS_BUILT = (Path(web_interface.__file__).parent / "static" / "index.html").exists()
TIMEOUT_MS = 15_000
# The sign-in page first asks for the present session, which does not exist.
_EXPECTED = "401 (Unauthorized)"
# Other suites may use the processor meanwhile.
expect.set_options(timeout=TIMEOUT_MS)


class Served(Protocol):
    """A running broker: one of its own, or a node of a cluster."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Its ports by protocol; http is that of the web interface."""


def api(node: Served, line: str, body: object = None) -> object:
    """The response to a request of guest; `line` is a method and a path below /api."""
    method, path = line.split(" ", 1)
    headers = {"authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
    with closing(http.client.HTTPConnection("127.0.0.1", node.ports["http"], timeout=30)) as connection:
        text = None if body is None else json.dumps(body)
        connection.request(method, f"/api{path}", text, headers)
        response = connection.getresponse()
        data = response.read()
        assert response.status < 300, (line, response.status, data)
        return json.loads(data) if data else None


def segment(name: str) -> str:
    """`name` encoded as one segment of an address."""
    return quote(name, safe="")


class Visit:
    """A tab of a signed-in user; errors of the page are recorded in `complaints`."""

    def __init__(self, node: Served, page: Page, prefix: str = "") -> None:
        """`prefix` is the path prefix of the broker."""
        self.page = page
        self.complaints: list[str] = []
        self._base = f"http://127.0.0.1:{node.ports['http']}{prefix}/"
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))

    def sign_in(self, name: str = "guest", password: str = "guest") -> None:
        self.page.goto(self._base)
        self.page.get_by_label("User").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()

    def open(self, address: str) -> None:
        """Open a page, and wait until it shows its subject."""
        self.page.goto(f"{self._base}#/{address}")
        self.page.get_by_role("heading", level=1).wait_for()
        expect(self.page.get_by_text("Loading …")).to_have_count(0)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and _EXPECTED not in message.text:
            self.complaints.append(message.text)


@contextmanager
def visit(node: Served, chromium: Chromium, *, palette: str = "light", width: int = 1280) -> Iterator[Visit]:
    """A separate tab, signed in as guest."""
    scheme = "dark" if palette == "dark" else "light"
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 850})  # type: ignore[arg-type]
    visited = Visit(node, context.new_page())
    visited.sign_in()
    visited.page.locator("#main").wait_for()
    try:
        yield visited
    finally:
        context.close()
