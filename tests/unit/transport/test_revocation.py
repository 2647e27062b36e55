"""Clients whose certificate was revoked are refused by the TLS of a listener."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from warren.limits_access import REVOCATION_LIST_SIZE_MAX
from warren.node.client_listeners import tls
from warren.node.config import Config
from warren.node.config_file import ConfigEntry
from warren.transport.revocation import RevocationCheck
from warren.transport.tls import Tls, TlsError, TlsSettings

NOW = datetime.now(UTC)
# OpenSSL's codes of a revoked certificate, and of a list that has ended.
_OF_LISTS = 23, 12


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

    def listener(self, check: RevocationCheck = RevocationCheck.PEER) -> Tls:
        return Tls(
            TlsSettings(
                certificate_file=str(self.folder / "server.pem"),
                key_file=str(self.folder / "server.pem"),
                authority_file=str(self.folder / "ca.pem"),
                is_peer_verified=True,
                is_certificate_required=True,
                revocation_check=check,
                revocation_directories=(str(self.lists),),
            )
        )

    def is_accepted(self, listener: Tls, leaf: trustme.LeafCert) -> bool:
        """Whether `listener` completes a handshake with the client that has `leaf`."""
        client = ssl.create_default_context()
        self.authority.configure_trust(client)
        leaf.configure_cert(client)
        first, second = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = (
            client.wrap_bio(first, second, server_hostname="localhost"),
            listener.context.wrap_bio(second, first, server_side=True),
        )
        done: set[ssl.SSLObject] = set()
        for _ in range(10):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                except ssl.SSLCertVerificationError as error:
                    return error.verify_code not in _OF_LISTS
                done.add(end)
        return len(done) == len(ends)


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


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"crl_check": "peer"}, r"crl_check = peer needs ssl_options\.crl_sources\.1\.path"),
        ({"crl_check": "best_effort", "crl_sources.1.path": "x"}, "best_effort is not supported"),
        ({"crl_check": "true", "crl_sources.1": "http"}, r"crl_sources\.1 must be dir"),
        ({"crl_check": "true", "crl_sources.1.colour": "red"}, "must end with a number or with .path"),
    ],
)
def test_settings_that_cannot_be_followed_refuse_the_listener(entries: dict[str, str], text: str) -> None:
    keys = {
        "listeners.ssl.default": "5671",
        **{f"ssl_options.{key}": value for key, value in entries.items()},
    }
    with pytest.raises(TlsError, match=text):
        tls(Config([ConfigEntry(key, value, "here") for key, value in keys.items()]))
