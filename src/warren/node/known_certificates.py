"""The certificates that a listener knows: of authorities, and its own as far as these have issued them.

They name the addresses of lists of revoked certificates (RFC 5280 §4.2.1.13), and sign these lists.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

# The tag of a sequence, with which a list in DER begins.
_SEQUENCE = b"\x30"


class UnusableList(ValueError):
    """What a server has is not a current list of a known authority; the text says why."""


class RevocationList(Struct, frozen=True):
    """A list as PEM, the name of its authority, and when it ends (Unix time, ms)."""

    pem: bytes
    issuer: str
    ends_at: int


class KnownCertificates:
    """The certificates in the files of a listener."""

    def __init__(self, authorities: bytes, own: bytes) -> None:
        """`authorities` and `own` are PEM; raises ValueError if that contains no certificate."""
        self._certificates = x509.load_pem_x509_certificates(authorities)
        # From the one that is nearest to an authority.
        for certificate in reversed(x509.load_pem_x509_certificates(own)):
            if any(_has_issued(known, certificate) for known in self._certificates):
                self._certificates.append(certificate)

    def addresses(self) -> list[tuple[str, ...]]:
        """Where there are lists: of each, the addresses of one server after the other."""
        found = (point for certificate in self._certificates for point in _points(certificate))
        return list(dict.fromkeys(found))

    def read(self, data: bytes, now: int) -> RevocationList:
        """The list in `data`, PEM or DER; raises UnusableList, also if it has ended at `now` (ms)."""
        try:
            load = x509.load_der_x509_crl if data.startswith(_SEQUENCE) else x509.load_pem_x509_crl
            found = load(data)
            ends = found.next_update_utc
        except (ValueError, TypeError) as error:
            raise UnusableList(f"it is not a list of revoked certificates: {error}") from error
        issuer = found.issuer.rfc4514_string()
        if ends is None:
            raise UnusableList(f"the list of {issuer} says no time of the next one")
        if _ms(ends) <= now:
            raise UnusableList(f"the list of {issuer} has ended at {ends:%Y-%m-%d %H:%M} UTC")
        if not any(_has_signed(known, found) for known in self._certificates):
            raise UnusableList(f"the list of {issuer} is signed by no known authority")
        return RevocationList(found.public_bytes(Encoding.PEM), issuer, _ms(ends))


def _points(certificate: x509.Certificate) -> Iterable[tuple[str, ...]]:
    """The addresses of the lists that may contain `certificate`; those by LDAP are left out."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.CRLDistributionPoints)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return
    for point in extension.value:
        # Other lists than those of all reasons, by the issuer itself, are not looked at by OpenSSL either.
        if point.full_name is None or point.reasons or point.crl_issuer:
            continue
        names = (name.value for name in point.full_name if isinstance(name, x509.UniformResourceIdentifier))
        usable = tuple(name for name in names if name.startswith(("http://", "https://")))
        if usable:
            yield usable


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _has_signed(authority: x509.Certificate, found: x509.CertificateRevocationList) -> bool:
    if authority.subject != found.issuer:
        return False
    try:
        # It raises TypeError for a key that cannot sign.
        return found.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False


def _ms(when: datetime) -> int:
    return int(when.astimezone(UTC).timestamp() * 1000)
