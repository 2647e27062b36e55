"""TLS contexts from files, and the explanation of TLS failures."""

import ssl
from pathlib import Path

import pytest
import trustme

from warren.blocking.tls import TlsNames, client_context, refusal_hint
from warren.client.uri import ClientTls

NAMES = TlsNames(ca_file="--ca", cert_file="--cert", key_file="--key", key_password="SECRET")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with certificates, keys, and files that are neither."""
    made = tmp_path_factory.mktemp("files")
    authority = trustme.CA()
    mine, other = authority.issue_cert("mine"), authority.issue_cert("other")
    authority.cert_pem.write_to_path(made / "ca.pem")
    mine.cert_chain_pems[0].write_to_path(made / "cert.pem")
    mine.private_key_pem.write_to_path(made / "key.pem")
    mine.private_key_and_cert_chain_pem.write_to_path(made / "both.pem")
    other.private_key_pem.write_to_path(made / "other.pem")
    (made / "junk").write_text("junk")
    return made


def context_of(folder: Path, **named: str) -> ssl.SSLContext:
    return client_context(ClientTls(**{what: str(folder / name) for what, name in named.items()}), NAMES)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"ca_file": "none"}, "--ca .*none: No such file"),
        ({"ca_file": "junk"}, "--ca .*junk: no certificates in PEM"),
        ({"cert_file": "none"}, "--cert .*none: No such file"),
        (
            {"cert_file": "cert.pem"},
            "--cert .*cert.pem: no certificate with its key in PEM; set the key with --key",
        ),
        ({"cert_file": "cert.pem", "key_file": "none"}, "--key .*none: No such file"),
        (
            {"cert_file": "cert.pem", "key_file": "junk"},
            "--key .*junk: this and --cert .*cert.pem are not a key",
        ),
        ({"cert_file": "cert.pem", "key_file": "other.pem"}, "--key .*other.pem: this is not the key of"),
        ({"key_file": "key.pem"}, "--key needs --cert, the certificate of the key"),
    ],
)
def test_an_unusable_file_is_named_with_the_reason(folder: Path, named: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        context_of(folder, **named)
    assert "\n" not in str(caught.value)


def test_a_key_may_be_in_the_file_of_its_certificate(folder: Path) -> None:
    assert context_of(folder, ca_file="ca.pem", cert_file="both.pem").check_hostname


def test_without_verification_any_host_name_is_accepted(folder: Path) -> None:
    context = client_context(ClientTls(is_verified=False), NAMES)
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


def test_no_error_text_contains_the_password_of_a_key() -> None:
    assert "secret" not in repr(ClientTls(key_password="secret"))


def test_the_advice_names_the_option_that_helps() -> None:
    alert = ssl.SSLError(1, "alert")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    for refused in (alert, ConnectionResetError(), ssl.SSLEOFError()):
        assert "set it with --cert and --key" in refusal_hint(refused, ClientTls(), NAMES)
        assert "the certificate of --cert mine.pem" in refusal_hint(
            refused, ClientTls(cert_file="mine.pem"), NAMES
        )
    assert "trusted certificates with --ca" in refusal_hint(
        ssl.SSLCertVerificationError(), ClientTls(), NAMES
    )
    assert refusal_hint(ConnectionRefusedError(), ClientTls(), NAMES) == ""
