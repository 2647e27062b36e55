"""A certificate authority of a test, whose certificates name the addresses of its lists."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


class Certified:
    """A certificate and its key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self.key = key

    @property
    def pem(self) -> bytes:
        """The certificate alone."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def pem_with_key(self) -> bytes:
        """The certificate, and behind it its key."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return self.pem + key


class Authority(Certified):
    """An authority: one of its own, or one below another."""

    def __init__(self, name: str, above: "Authority | None" = None, *points: x509.DistributionPoint) -> None:
        """`points` say where the list of the one `above` is."""
        made = _certified(name, above, points, is_authority=True)
        super().__init__(made.certificate, made.key)

    def issue(self, name: str, *points: x509.DistributionPoint) -> Certified:
        """Certify `name`; `points` say where the list of this authority is."""
        return _certified(name, self, points, is_authority=False)

    def revoked(
        self, *certified: Certified, ends: datetime = NOW + DAY, signer: Certified | None = None
    ) -> x509.CertificateRevocationList:
        """The list with what was `certified`, perhaps signed by another one."""
        builder = x509.CertificateRevocationListBuilder(
            issuer_name=self.certificate.subject, last_update=NOW - 2 * DAY, next_update=ends
        )
        for one in certified:
            number = one.certificate.serial_number
            entry = x509.RevokedCertificateBuilder(serial_number=number, revocation_date=NOW - DAY)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign((signer or self).key, hashes.SHA256())


def point(*addresses: str) -> x509.DistributionPoint:
    """Where one list is: at any of `addresses`."""
    names = [x509.UniformResourceIdentifier(address) for address in addresses]
    return x509.DistributionPoint(full_name=names, relative_name=None, reasons=None, crl_issuer=None)


def _certified(
    name: str, issuer: Certified | None, points: Sequence[x509.DistributionPoint], *, is_authority: bool
) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 2 * DAY)
        .not_valid_after(NOW + 2 * DAY)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    if points:
        builder = builder.add_extension(x509.CRLDistributionPoints(points), critical=False)
    signer = key if issuer is None else issuer.key
    return Certified(builder.sign(signer, hashes.SHA256()), key)
