"""The user that a verified client certificate names, for the EXTERNAL mechanism.

As RabbitMQ's ssl_cert_login_from: the whole subject, its common name, or a subject alternative name.
"""

from enum import Enum

# The short names of RFC 4514 §3, and OpenSSL's names of the others.
_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "domainComponent": "DC",
    "userId": "UID",
    "surname": "SN",
    "givenName": "GN",
    "emailAddress": "EMAIL",
}
_SAN_TYPES = {"dns": "DNS", "ip": "IP Address", "email": "email", "uri": "URI", "other_name": "othername"}

# What ssl.SSLSocket.getpeercert returns.
Certificate = dict[str, object]


class LoginFrom(Enum):
    """The part of a certificate with the user's name; the values are those of the configuration file."""

    DISTINGUISHED_NAME = "distinguished_name"
    COMMON_NAME = "common_name"
    SUBJECT_ALTERNATIVE_NAME = "subject_alternative_name"


def login_name(
    certificate: Certificate, source: LoginFrom, san_type: str = "dns", san_index: int = 0
) -> str | None:
    """The user's name; None if that part of the certificate is missing."""
    match source:
        case LoginFrom.DISTINGUISHED_NAME:
            return distinguished_name(certificate) or None
        case LoginFrom.COMMON_NAME:
            return ",".join(v for n, v in _subject(certificate) if n == "commonName") or None
        case LoginFrom.SUBJECT_ALTERNATIVE_NAME:
            wanted = _SAN_TYPES[san_type]
            names = [value for kind, value in _pairs(certificate.get("subjectAltName")) if kind == wanted]
            return names[san_index] if san_index < len(names) else None


def distinguished_name(certificate: Certificate) -> str:
    """The subject as RFC 4514 writes it: last part first, special characters escaped."""
    parts = [f"{_SHORT_NAMES.get(name, name)}={_escape(value)}" for name, value in _subject(certificate)]
    return ",".join(reversed(parts))


def _subject(certificate: Certificate) -> list[tuple[str, str]]:
    subject = certificate.get("subject")
    if not isinstance(subject, tuple):
        return []
    return [pair for part in subject for pair in _pairs(part)]


def _pairs(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, tuple):
        return []
    return [(str(pair[0]), str(pair[1])) for pair in value]


def _escape(value: str) -> str:
    """`value` escaped as in RFC 4514 §2.4."""
    escaped = "".join(f"\\{octet}" if octet in ',+"\\<>;' else octet for octet in value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return escaped
