"""Lists of revoked certificates that servers have."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.unit.node.authority import DAY, NOW, Authority, Certified, point
from tests.unit.transport.handshake import is_accepted

from warren.limits_access import (
    REVOCATION_ADDRESSES_MAX,
    REVOCATION_FETCH_SIZE_MAX,
    REVOCATION_INTERVAL_MS_MAX,
    REVOCATION_INTERVAL_MS_MIN,
)
from warren.node.revocation_config import ListServer
from warren.node.revocation_lists import ListFiles, RevocationLists
from warren.transport.revocation import RevocationCheck
from warren.transport.tls import Tls, TlsError, TlsSettings

NOW_MS = int(NOW.timestamp() * 1000)


class HandClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = NOW_MS

    def now(self) -> int:
        return self.at


class Served:
    """A server with a list, and a listener of TLS whose clients it is about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = HandClock()
        self.authority = Authority("authority")
        self.body: bytes | None = b""
        self.asked: list[str] = []

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/{name}", self._answer)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        self.own = self.authority.issue("localhost", point(f"{self.url}/list"))
        self.one, self.other = self.authority.issue("one"), self.authority.issue("other")
        self.write()

    def write(self) -> None:
        """Write the files of the listener."""
        (self.folder / "ca.pem").write_bytes(self.authority.pem)
        (self.folder / "server.pem").write_bytes(self.own.pem_with_key)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.Response(status=404) if self.body is None else web.Response(body=self.body)

    def serve(self, found: x509.CertificateRevocationList) -> None:
        self.body = found.public_bytes(Encoding.DER)

    def lists(self, *servers: ListServer) -> RevocationLists:
        """What fetches the lists for a new listener."""
        authorities, own = str(self.folder / "ca.pem"), str(self.folder / "server.pem")
        self.tls = Tls(
            TlsSettings(
                certificate_file=own, key_file=own, authority_file=authorities,
                is_peer_verified=True, is_certificate_required=True,
                revocation_check=RevocationCheck.PEER, are_lists_fetched=True,
            )
        )  # fmt: skip
        return RevocationLists(servers or (ListServer(),), ListFiles(authorities, own), self.tls, self.clock)

    def accepts(self, client: Certified) -> bool:
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        file = self.folder / "client.pem"
        file.write_bytes(client.pem_with_key)
        context.load_cert_chain(file)
        return is_accepted(self.tls.context, context)


def run(folder: Path, work: Callable[[Served], Awaitable[None]]) -> None:
    """Do `work` with a server."""

    async def started() -> None:
        served = Served(folder)
        await served.start()
        try:
            await work(served)
        finally:
            await served.runner.cleanup()

    asyncio.run(started())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as a warning since the last call."""
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


def test_the_list_at_the_address_in_the_certificate_of_the_listener_is_used(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.serve(served.authority.revoked(served.one))
        lists = served.lists()
        assert not served.accepts(served.other)
        await lists.start()
        assert not served.accepts(served.one)
        assert served.accepts(served.other)
        assert served.asked == ["/list"]
        await lists.stop()

    run(tmp_path, work)


def test_the_list_at_the_address_in_the_settings_is_used(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.own = served.authority.issue("localhost")
        served.write()
        served.serve(served.authority.revoked(served.one))
        await served.lists(ListServer(url=f"{served.url}/mine")).refresh()
        assert not served.accepts(served.one)
        assert served.accepts(served.other)
        assert served.asked == ["/mine"]

    run(tmp_path, work)


def test_without_an_address_the_listener_is_refused(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.own = served.authority.issue("localhost")
        served.write()
        with pytest.raises(
            TlsError, match=r"has the address of a list: set ssl_options\.crl_sources\.1\.url"
        ):
            await served.lists().start()

    run(tmp_path, work)


def test_too_many_addresses_refuse_the_listener(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        points = [point(f"{served.url}/{number}") for number in range(REVOCATION_ADDRESSES_MAX + 1)]
        served.own = served.authority.issue("localhost", *points)
        served.write()
        with pytest.raises(TlsError, match="more than 16 addresses"):
            await served.lists().start()
        assert served.asked == []

    run(tmp_path, work)


def test_the_second_address_of_a_list_is_asked_if_the_first_has_none(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.own = served.authority.issue("localhost", point("http://127.0.0.1:1/list", f"{served.url}/b"))
        served.write()
        served.serve(served.authority.revoked())
        await served.lists().refresh()
        assert served.accepts(served.one)

    run(tmp_path, work)


def test_a_list_is_fetched_again_after_half_of_its_time_and_after_an_hour_at_most(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.serve(served.authority.revoked(ends=NOW + timedelta(minutes=10)))
        lists = served.lists()
        await lists.refresh()
        served.clock.at += 5 * 60_000 - 1
        await lists.refresh()
        assert len(served.asked) == 1
        served.serve(served.authority.revoked(served.one, ends=NOW + DAY))
        served.clock.at += 1
        await lists.refresh()
        assert len(served.asked) == 2
        assert not served.accepts(served.one)
        served.clock.at += REVOCATION_INTERVAL_MS_MAX - 1
        await lists.refresh()
        assert len(served.asked) == 2
        served.clock.at += 1
        await lists.refresh()
        assert len(served.asked) == 3

    run(tmp_path, work)


@pytest.mark.parametrize("body", [None, b"", b"<html>", b"0" * (REVOCATION_FETCH_SIZE_MAX + 1)])
def test_a_list_that_cannot_be_fetched_again_is_used_until_it_ends(
    tmp_path: Path, body: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(served: Served) -> None:
        served.serve(served.authority.revoked(served.one))
        lists = served.lists()
        await lists.refresh()
        assert warnings(caplog) == []
        served.body = body
        served.clock.at += REVOCATION_INTERVAL_MS_MAX
        await lists.refresh()
        assert not served.accepts(served.one)
        assert served.accepts(served.other)
        [text] = warnings(caplog)
        assert text.startswith(f"cannot fetch a list of revoked certificates: {served.url}/list")
        assert f"the last one is used until it ends, at {NOW + DAY:%Y-%m-%d %H:%M} UTC" in text
        served.clock.at += REVOCATION_INTERVAL_MS_MIN
        await lists.refresh()
        assert warnings(caplog) == []
        assert len(served.asked) == 3

    run(tmp_path, work)


def test_without_a_list_certificates_are_refused_until_there_is_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(served: Served) -> None:
        served.body = None
        lists = served.lists()
        await lists.start()
        assert not served.accepts(served.other)
        [text] = warnings(caplog)
        assert "without a current list, all certificates of its authority are refused" in text
        served.serve(served.authority.revoked(served.one))
        served.clock.at += REVOCATION_INTERVAL_MS_MIN
        await lists.refresh()
        assert served.accepts(served.other)
        assert not served.accepts(served.one)
        await lists.stop()

    run(tmp_path, work)


def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(served: Served) -> None:
        silent = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/list"
        await served.lists(ListServer(timeout_ms=1, url=url)).refresh()
        [text] = warnings(caplog)
        assert f"{url}: " in text
        assert "Timeout" in text
        silent.close()

    run(tmp_path, work)


def test_a_list_of_an_authority_that_is_not_known_any_more_is_not_used(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        served.serve(served.authority.revoked())
        lists = served.lists()
        await lists.refresh()
        assert served.accepts(served.one)
        served.own = served.authority.issue("localhost", point(f"{served.url}/new"))
        served.write()
        served.body = None
        await lists.refresh()
        assert served.asked == ["/list", "/new"]
        assert not served.accepts(served.one)

    run(tmp_path, work)
