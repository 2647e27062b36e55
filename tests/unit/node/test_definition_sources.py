"""Definitions that are imported at a start, from an HTTPS address."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from warren.limits_http import HTTP_BODY_SIZE_MAX, JSON_DEPTH_MAX
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.node.definition_sources import definition_sources
from warren.node.errors import BootRefused

DOCUMENT = {"vhosts": [{"name": "v"}]}


class Site:
    """A web server of an authority that only a file names, and the files of its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(folder / "ca.pem")
        client = self.authority.issue_cert("client")
        client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
        self.body = json.dumps(DOCUMENT).encode()
        self.status = 200
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        return web.Response(body=self.body, status=self.status, headers={"location": "/elsewhere"})

    @asynccontextmanager
    async def serving(self, *, is_client_known: bool = False) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_get("/definitions.json", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        if is_client_known:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}/definitions.json"
        try:
            yield
        finally:
            await runner.cleanup()

    def imported(self, *, is_client_known: bool = False, **entries: str) -> object:
        """The document that a node with the settings `entries` imports."""

        async def work() -> object:
            async with self.serving(is_client_known=is_client_known):
                found = {
                    "import_backend": "https",
                    "https.url": self.url,
                    "tls.cacertfile": self.file("ca.pem"),
                }
                keys = {**found, **{key.replace("__", "."): value for key, value in entries.items()}}
                config = Config([ConfigEntry(f"definitions.{key}", keys[key], "here") for key in keys])
                sources = definition_sources(config)
                assert sources is not None
                return await sources[-1].document()

        return asyncio.run(work())

    def file(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_definitions_are_read_from_an_https_address(site: Site) -> None:
    assert site.imported() == DOCUMENT


def test_a_server_of_an_unknown_authority_is_refused_unless_it_need_not_be_verified(site: Site) -> None:
    with pytest.raises(BootRefused, match=r"definitions cannot be fetched: .*certificate verify failed"):
        site.imported(tls__cacertfile="")
    assert site.imported(tls__cacertfile="", tls__verify="verify_none") == DOCUMENT


def test_a_client_certificate_is_sent(site: Site) -> None:
    with pytest.raises(BootRefused, match="definitions cannot be fetched"):
        site.imported(is_client_known=True)
    pem = site.file("client.pem")
    assert site.imported(is_client_known=True, tls__certfile=pem, tls__keyfile=pem) == DOCUMENT
    with pytest.raises(BootRefused, match=r"definitions\.tls: "):
        site.imported(tls__certfile=site.file("none.pem"))


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (404, b"{}", "answered with status 404"),
        (302, b"{}", "answered with status 302"),
        (200, b" " * (HTTP_BODY_SIZE_MAX + 1), "answered with more than"),
        (200, b"<html>", "is not JSON"),
        (200, b"[" * (JSON_DEPTH_MAX + 2) + b"]" * (JSON_DEPTH_MAX + 2), "nested more than"),
    ],
)
def test_an_unusable_answer_refuses_the_start(site: Site, status: int, body: bytes, text: str) -> None:
    site.status, site.body = status, body
    with pytest.raises(BootRefused, match=text):
        site.imported()


def test_a_server_elsewhere_needs_tls(site: Site) -> None:
    with pytest.raises(BootRefused, match=r"definitions\.https\.url must be an https address"):
        site.imported(https__url="http://config.example.org/definitions.json")


def test_the_address_is_used_only_with_its_backend(caplog: pytest.LogCaptureFixture) -> None:
    url = ConfigEntry("definitions.https.url", "https://config.example.org/", "here")
    assert definition_sources(Config([url])) is None
    assert "is not used without definitions.import_backend = https" in caplog.text
    with pytest.raises(BootRefused, match=r"definitions\.https\.url is not set"):
        definition_sources(Config([ConfigEntry("definitions.import_backend", "https", "here")]))


def test_files_are_imported_before_the_address(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "a.json").write_text("{}")
    entries = {
        "load_definitions": str(tmp_path),
        "definitions.import_backend": "https",
        "definitions.https.url": "https://config.example.org/",
    }
    sources = definition_sources(Config([ConfigEntry(key, value, "here") for key, value in entries.items()]))
    assert sources is not None
    assert [source.name for source in sources] == [
        f"definitions file '{tmp_path}/a.json'",
        f"definitions file '{tmp_path}/b.json'",
        "definitions at https://config.example.org/",
    ]
