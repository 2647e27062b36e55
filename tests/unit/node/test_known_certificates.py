"""The addresses of lists of revoked certificates, and which lists are taken."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.unit.node.authority import DAY, NOW, Authority, Certified, point

from warren.node.known_certificates import KnownCertificates, UnusableList

NOW_MS = int(NOW.timestamp() * 1000)
ROOT = Authority("root")
OTHER = Authority("other")


def known(own: Certified | None = None, *authorities: Certified) -> KnownCertificates:
    listed = authorities or (ROOT,)
    own_pem = (own or ROOT.issue("localhost")).pem_with_key
    return KnownCertificates(b"".join(one.pem for one in listed), own_pem)


def test_the_certificate_of_the_listener_and_those_of_authorities_name_addresses() -> None:
    below = Authority("below", ROOT, point("http://above/list"))
    own = below.issue(
        "localhost", point("http://below/list", "https://below/list"), point("http://more/list")
    )
    assert known(own, ROOT, below).addresses() == [
        ("http://above/list",),
        ("http://below/list", "https://below/list"),
        ("http://more/list",),
    ]


def test_the_chain_of_the_listener_is_known_as_far_as_authorities_have_issued_it() -> None:
    below = Authority("below", ROOT, point("http://above/list"))
    own = below.issue("localhost", point("http://below/list"))
    chain = own.pem_with_key + below.pem
    found = KnownCertificates(ROOT.pem, chain)
    assert found.addresses() == [("http://above/list",), ("http://below/list",)]
    assert found.read(below.revoked().public_bytes(Encoding.PEM), NOW_MS).issuer == "CN=below"
    stranger = KnownCertificates(OTHER.pem, chain)
    assert stranger.addresses() == []
    with pytest.raises(UnusableList, match="signed by no known authority"):
        stranger.read(below.revoked().public_bytes(Encoding.PEM), NOW_MS)


def test_addresses_that_cannot_be_followed_are_left_out() -> None:
    name = x509.UniformResourceIdentifier("http://some/list")
    own = ROOT.issue(
        "localhost",
        point("ldap://above/list"),
        point("ldap://above/list", "http://above/list"),
        x509.DistributionPoint([name], None, frozenset({x509.ReasonFlags.key_compromise}), None),
        x509.DistributionPoint([name], None, None, [x509.DirectoryName(OTHER.certificate.subject)]),
    )
    assert known(own).addresses() == [("http://above/list",)]


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
def test_a_list_is_pem_or_der(encoding: Encoding) -> None:
    ends = NOW + DAY
    found = known().read(ROOT.revoked(ROOT.issue("a"), ends=ends).public_bytes(encoding), NOW_MS)
    assert (found.issuer, found.ends_at) == ("CN=root", int(ends.timestamp() * 1000))
    assert x509.load_pem_x509_crl(found.pem).next_update_utc == ends


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "it is not a list of revoked certificates"),
        (b"<html>", "it is not a list of revoked certificates"),
        (b"0nonsense", "it is not a list of revoked certificates"),
        (ROOT.pem, "it is not a list of revoked certificates"),
        (ROOT.revoked(ends=NOW).public_bytes(Encoding.DER), "the list of CN=root has ended at"),
        (OTHER.revoked().public_bytes(Encoding.DER), "the list of CN=other is signed by no known authority"),
        (
            ROOT.revoked(signer=OTHER).public_bytes(Encoding.DER),
            "the list of CN=root is signed by no known authority",
        ),
    ],
)
def test_what_is_no_current_list_of_a_known_authority_is_refused(data: bytes, text: str) -> None:
    with pytest.raises(UnusableList, match=text):
        known().read(data, NOW_MS)


def test_a_file_without_certificates_is_refused() -> None:
    with pytest.raises(ValueError, match="PEM"):
        KnownCertificates(b"", ROOT.pem)
