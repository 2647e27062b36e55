"""Clients whose certificate was revoked are refused by the TLS of a listener."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from tests.unit.transport.handshake import is_accepted

from warren.limits_access import REVOCATION_LIST_SIZE_MAX
from warren.transport.revocation import RevocationCheck
from warren.transport.tls import Tls, TlsError, TlsSettings

NOW = datetime.now(UTC)


class Clients:
    """Two clients of one authority, and a listener that has its lists in a folder."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.folder = folder
        self.lists = folder / "lists"
        self.lists.mkdir()
        self.authority.cert_pem.write_to_path(folder / "ca.pem")
        server = self.authority.issue_cert("localhost")
        server.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
        self.one, self.other = (self.authority.issue_cert(name) for name in ("one", "other"))

    def revoke(
        self, *revoked: trustme.LeafCert, ends: datetime = NOW + timedelta(days=1)
    ) -> x509.CertificateRevocationList:
        certificate = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        builder = x509.CertificateRevocationListBuilder(
            issuer_name=certificate.subject, last_update=NOW - timedelta(days=2), next_update=ends
        )
        for leaf in revoked:
            number = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes()).serial_number
            entry = x509.RevokedCertificateBuilder(serial_number=number, revocation_date=NOW)
            builder = builder.add_revoked_certificate(entry.build())
        key = load_pem_private_key(self.authority.private_key_pem.bytes(), None)
        return builder.sign(key, hashes.SHA256())

    def keep(self, found: x509.CertificateRevocationList, encoding: Encoding = Encoding.PEM) -> None:
        (self.lists / "list").write_bytes(found.public_bytes(encoding))

    def listener(
        self, check: RevocationCheck = RevocationCheck.PEER, *, are_lists_fetched: bool = False
    ) -> Tls:
        return Tls(
            TlsSettings(
                certificate_file=str(self.folder / "server.pem"),
                key_file=str(self.folder / "server.pem"),
                authority_file=str(self.folder / "ca.pem"),
                is_peer_verified=True,
                is_certificate_required=True,
                revocation_check=check,
                revocation_directories=(str(self.lists),),
                are_lists_fetched=are_lists_fetched,
            )
        )

    def is_accepted(self, listener: Tls, leaf: trustme.LeafCert) -> bool:
        """Whether `listener` completes a handshake with the client that has `leaf`."""
        client = ssl.create_default_context()
        self.authority.configure_trust(client)
        leaf.configure_cert(client)
        return is_accepted(listener.context, client)


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    return Clients(tmp_path)


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize("check", [RevocationCheck.PEER, RevocationCheck.CHAIN])
def test_a_revoked_certificate_is_refused_and_another_of_its_authority_accepted(
    clients: Clients, encoding: Encoding, check: RevocationCheck
) -> None:
    clients.keep(clients.revoke(clients.one), encoding)
    listener = clients.listener(check)
    assert not clients.is_accepted(listener, clients.one)
    assert clients.is_accepted(listener, clients.other)


def test_a_list_that_changes_is_read_again(clients: Clients) -> None:
    clients.keep(clients.revoke())
    listener = clients.listener()
    assert clients.is_accepted(listener, clients.one)
    clients.keep(clients.revoke(clients.one))
    listener.reload_if_changed()
    assert not clients.is_accepted(listener, clients.one)


def test_every_certificate_is_refused_if_the_list_of_its_authority_has_ended(clients: Clients) -> None:
    clients.keep(clients.revoke(ends=NOW - timedelta(days=1)))
    assert not clients.is_accepted(clients.listener(), clients.other)


def test_authorities_beside_the_lists_are_not_trusted(clients: Clients) -> None:
    clients.keep(clients.revoke())
    with (clients.lists / "list").open("ab") as file:
        file.write(trustme.CA().cert_pem.bytes())
    assert len(clients.listener().context.get_ca_certs()) == 1


def test_without_a_usable_list_the_listener_is_refused(clients: Clients) -> None:
    with pytest.raises(TlsError, match="there is no list of revoked certificates"):
        clients.listener()
    (clients.lists / "other").write_bytes(b"0nonsense")
    with pytest.raises(TlsError, match=r"ssl_options\.crl_sources: "):
        clients.listener()
    with (clients.lists / "other").open("wb") as file:
        file.truncate(REVOCATION_LIST_SIZE_MAX + 1)
    with pytest.raises(TlsError, match="has more than"):
        clients.listener()
    clients.lists.joinpath("other").unlink()
    clients.lists.rmdir()
    with pytest.raises(TlsError, match="No such file"):
        clients.listener()


def test_what_is_fetched_is_used_from_the_next_handshake_on(clients: Clients) -> None:
    listener = clients.listener(are_lists_fetched=True)
    assert not clients.is_accepted(listener, clients.other)
    pem = clients.revoke(clients.one).public_bytes(Encoding.PEM)
    asyncio.run(listener.use_lists([pem]))
    assert not clients.is_accepted(listener, clients.one)
    assert clients.is_accepted(listener, clients.other)
    listener.reload()
    assert not clients.is_accepted(listener, clients.one)
    assert clients.is_accepted(listener, clients.other)


def test_what_is_fetched_is_used_beside_a_directory(clients: Clients) -> None:
    clients.keep(clients.revoke(ends=NOW - timedelta(days=1)))
    listener = clients.listener(are_lists_fetched=True)
    assert not clients.is_accepted(listener, clients.other)
    asyncio.run(listener.use_lists([clients.revoke().public_bytes(Encoding.PEM)]))
    assert clients.is_accepted(listener, clients.other)


def test_files_that_are_replaced_while_lists_are_loaded_stay_replaced(clients: Clients) -> None:
    async def work() -> None:
        listener = clients.listener(are_lists_fetched=True)
        pem = clients.revoke(clients.one).public_bytes(Encoding.PEM)
        using = asyncio.create_task(listener.use_lists([pem]))
        await asyncio.sleep(0)
        listener.reload()
        reloaded = listener.context
        await using
        assert listener.context is reloaded
        assert clients.is_accepted(listener, clients.other)

    asyncio.run(work())


def test_lists_that_were_fetched_wait_for_files_that_are_usable(clients: Clients) -> None:
    listener = clients.listener(are_lists_fetched=True)
    certificate = clients.folder / "server.pem"
    usable = certificate.read_bytes()
    certificate.write_bytes(b"")
    with pytest.raises(TlsError, match="cannot use"):
        asyncio.run(listener.use_lists([clients.revoke().public_bytes(Encoding.PEM)]))
    certificate.write_bytes(usable)
    listener.reload_if_changed()
    assert clients.is_accepted(listener, clients.one)
