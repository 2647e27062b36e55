"""What a verified certificate names: the user, for the EXTERNAL mechanism, and the hosts.

The user is as in RabbitMQ's ssl_cert_login_from: the whole subject, its common name, or a subject alternative
name.
"""

from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address

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


def is_issued_for(certificate: Certificate, host: str) -> bool:
    """True if a subject alternative name of the certificate is `host`, as RFC 6125 compares them.

    A name with an asterisk in the place of its first label is for all hosts that differ in that label.
    """
    names = _pairs(certificate.get("subjectAltName"))
    try:
        address = ip_address(host)
    except ValueError:
        wanted = host.lower().rstrip(".")
        _, _, domain = wanted.partition(".")
        found = {value.lower() for kind, value in names if kind == "DNS"}
        return wanted in found or (domain != "" and f"*.{domain}" in found)
    return any(kind == "IP Address" and _is_address(value, address) for kind, value in names)


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


def _is_address(text: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return ip_address(text.strip()) == address
    except ValueError:
        return False
