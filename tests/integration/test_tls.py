"""TLS: certificates replaced at run time, client certificates, and incomplete handshakes."""

import asyncio
import os
import ssl
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop
from msgspec.structs import replace
from tests.integration.echo import serving, was_dropped
from tests.patience import patient

from warren.transport.certificates import LoginFrom
from warren.transport.listener import ConnectionSlots
from warren.transport.tls import Tls, TlsError, TlsSettings

TIMEOUT_S = patient(20)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await work

    uvloop.run(limited())


def write(folder: Path, authority: trustme.CA, trusted: trustme.CA | None = None) -> TlsSettings:
    """Write the files of a server certificate by `authority`, and of the authority for clients."""
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    (folder / "server.pem").write_bytes(chain)
    (folder / "server.key").write_bytes(certificate.private_key_pem.bytes())
    (folder / "ca.pem").write_bytes((trusted or authority).cert_pem.bytes())
    return TlsSettings(
        certificate_file=str(folder / "server.pem"),
        key_file=str(folder / "server.key"),
        authority_file=str(folder / "ca.pem"),
    )


def client_context(authority: trustme.CA, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return context


async def exchange(port: int, context: ssl.SSLContext, line: bytes = b"hello") -> bytes:
    """Connect and send `line`; returns the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(line + b"\n")
        return (await reader.readline()).rstrip(b"\n")
    finally:
        writer.close()


async def is_refused(port: int, context: ssl.SSLContext) -> bool:
    """With TLS 1.3 a client learns only after its handshake that its certificate is refused."""
    try:
        return await exchange(port, context) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_a_client_that_trusts_the_authority_can_connect(tmp_path: Path) -> None:
    authority = trustme.CA()
    settings = write(tmp_path, authority)

    async def work() -> None:
        async with serving(Tls(settings)) as server:
            assert await exchange(server.port, client_context(authority)) == b"hello"
            assert server.clients[0].peer.is_tls
            assert server.clients[0].peer.tls_protocol == "TLSv1.3"
            assert server.clients[0].peer.tls_cipher
            with pytest.raises(ssl.SSLCertVerificationError):
                await exchange(server.port, client_context(trustme.CA()))

    run(work())


def test_a_server_name_that_is_not_ascii_is_no_error_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", traces.append)
    hello, answer = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="warren")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    received = ssl.MemoryBIO()
    received.write(hello.read().replace(b"warren", b"\xff\xfe\xff\xfe\xff\xfe"))
    server = Tls(write(tmp_path, trustme.CA())).context.wrap_bio(received, answer, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    # A record of the handshake, and not an alert (RFC 8446 §5.1).
    assert answer.read()[0] == 22
    assert not traces


def test_new_certificates_are_used_without_a_restart_and_connections_stay_open(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    tls = Tls(write(tmp_path, old))

    async def work() -> None:
        async with serving(tls) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_context(old))
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            tls.reload_if_changed()
            assert await exchange(server.port, client_context(old)) == b"hello"
            write(tmp_path, new)
            tls.reload_if_changed()
            assert await exchange(server.port, client_context(new)) == b"hello"
            with pytest.raises(ssl.SSLCertVerificationError):
                await exchange(server.port, client_context(old))
            writer.write(b"still\n")
            assert await reader.readline() == b"still\n"
            writer.close()

    run(work())


def test_unusable_new_files_are_reported_and_the_old_certificate_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    tls = Tls(write(tmp_path, authority))

    async def work() -> None:
        async with serving(tls) as server:
            (tmp_path / "server.pem").write_text("not a certificate")
            assert not tls.reload()
            os.unlink(tmp_path / "server.key")
            tls.reload_if_changed()
            assert await exchange(server.port, client_context(authority)) == b"hello"

    run(work())
    assert "cannot reload certificates" in caplog.text
    assert "server.key' does not exist" in caplog.text


def test_a_verified_certificate_names_its_user(tmp_path: Path) -> None:
    authority = trustme.CA(organization_name="Ex")
    settings = write(tmp_path, authority)
    certificate = authority.issue_cert("client.example", common_name="alice")
    cases = {
        LoginFrom.COMMON_NAME: b"alice",
        LoginFrom.SUBJECT_ALTERNATIVE_NAME: b"client.example",
    }

    async def work(source: LoginFrom, name: bytes) -> None:
        tls = Tls(replace(settings, is_peer_verified=True, is_certificate_required=True, login_from=source))
        async with serving(tls) as server:
            answer = await exchange(server.port, client_context(authority, certificate), b"whoami")
            assert answer.endswith(b" " + name)

    for source, name in cases.items():
        run(work(source, name))


def test_a_missing_or_untrusted_certificate_is_refused_where_one_is_required(tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    settings = replace(write(tmp_path, authority), is_peer_verified=True, is_certificate_required=True)

    async def work() -> None:
        async with serving(Tls(settings)) as server:
            for certificate in (None, stranger.issue_cert("client")):
                assert await is_refused(server.port, client_context(authority, certificate))
            assert server.clients == []

    run(work())


def test_an_optional_certificate_may_be_missing_but_not_untrusted(tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    settings = replace(write(tmp_path, authority), is_peer_verified=True)

    async def work() -> None:
        async with serving(Tls(settings)) as server:
            answer = await exchange(server.port, client_context(authority), b"whoami")
            assert answer.endswith(b" None")
            assert await is_refused(server.port, client_context(authority, stranger.issue_cert("x")))

    run(work())


def test_a_replaced_authority_is_not_trusted_any_more(tmp_path: Path) -> None:
    authority, first, second = trustme.CA(), trustme.CA(), trustme.CA()
    settings = replace(write(tmp_path, authority, first), is_peer_verified=True, is_certificate_required=True)
    tls = Tls(settings)

    async def work() -> None:
        async with serving(tls) as server:
            assert await exchange(server.port, client_context(authority, first.issue_cert("c"))) == b"hello"
            (tmp_path / "ca.pem").write_bytes(second.cert_pem.bytes())
            assert tls.reload()
            assert await exchange(server.port, client_context(authority, second.issue_cert("c"))) == b"hello"
            assert await is_refused(server.port, client_context(authority, first.issue_cert("c")))

    run(work())


@pytest.mark.parametrize(
    ("versions", "is_allowed"), [(("tlsv1.2",), True), (("tlsv1.3",), False), (("tlsv1.2", "tlsv1.3"), True)]
)
def test_only_the_configured_versions_are_accepted(
    tmp_path: Path, versions: tuple[str, ...], is_allowed: bool
) -> None:
    authority = trustme.CA()
    settings = replace(write(tmp_path, authority), versions=versions)
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    async def work() -> None:
        async with serving(Tls(settings)) as server:
            if is_allowed:
                assert await exchange(server.port, context) == b"hello"
            else:
                assert await is_refused(server.port, context)

    run(work())


@pytest.mark.parametrize("start", [b"", b"AMQP\x00\x00\x09\x01", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_an_incomplete_tls_handshake_is_dropped(tmp_path: Path, start: bytes) -> None:
    authority = trustme.CA()
    tls = Tls(write(tmp_path, authority))

    def change(settings: Any) -> Any:
        return replace(settings, tls_handshake_ms=150)

    async def work() -> None:
        async with serving(tls, change) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(start)
            try:
                await reader.read()  # an alert, perhaps
            except ConnectionError:
                pass
            else:
                assert await was_dropped(reader)
            assert server.clients == []
            writer.close()
            assert await exchange(server.port, client_context(authority)) == b"hello"

    run(work())


def test_a_proxy_header_precedes_the_tls_handshake(tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = Tls(write(tmp_path, authority))

    def change(settings: Any) -> Any:
        return replace(settings, is_proxied=True)

    async def work() -> None:
        async with serving(tls, change) as server:
            loop = asyncio.get_running_loop()
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5671\r\n")
            await writer.drain()
            await writer.start_tls(client_context(authority), server_hostname="127.0.0.1")
            writer.write(b"whoami\n")
            assert (await reader.readline()).startswith(b"192.0.2.7:56324 -> 198.51.100.1:5671")
            assert loop.is_running()
            writer.close()

    run(work())


def test_missing_or_unusable_files_are_named(tmp_path: Path) -> None:
    settings = write(tmp_path, trustme.CA())
    with pytest.raises(TlsError, match=r"nowhere\.pem' does not exist"):
        Tls(replace(settings, certificate_file=str(tmp_path / "nowhere.pem")))
    with pytest.raises(TlsError, match="verify_peer needs"):
        Tls(replace(settings, authority_file="", is_peer_verified=True))
    with pytest.raises(TlsError, match="no cipher of NONSENSE is known"):
        Tls(replace(settings, ciphers=("NONSENSE",)))
    (tmp_path / "ca.pem").write_text("nonsense")
    with pytest.raises(TlsError, match=r"ca\.pem"):
        Tls(settings)


def test_handshakes_in_progress_are_bounded(tmp_path: Path) -> None:
    authority = trustme.CA()
    tls, connection_slots = Tls(write(tmp_path, authority)), ConnectionSlots(2)

    async def work() -> None:
        async with serving(tls, connection_slots=connection_slots) as server:
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            # One more is dropped before its handshake begins.
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await was_dropped(reader)
            writer.close()
            for _, writer in silent:
                writer.close()
            while connection_slots.taken:
                await asyncio.sleep(0)
            assert await exchange(server.port, client_context(authority)) == b"hello"

    run(work())
