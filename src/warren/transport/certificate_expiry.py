"""Reads the expiry of the certificates in a file from their DER, because Python's `ssl` does not expose it.

certificate | SEQUENCE { to-be-signed SEQUENCE { [0] version?, serial, algorithm, issuer, validity … } … }
validity    | SEQUENCE { not-before, not-after }, each a UTCTime or a GeneralizedTime (RFC 5280 §4.1.2.5)
"""

import re
import ssl
from datetime import UTC, datetime

_PEM = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_FORMATS = {_UTC_TIME: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
# RFC 5280: two-digit years from 50 on are in the 20th century; Python starts at 69.
_CENTURY_FROM = 2050


def expiry_ms(pem: str) -> int | None:
    """The earliest expiry of the certificates in `pem` (Unix time, ms); None if there is none."""
    ends = [_not_after(ssl.PEM_cert_to_DER_cert(found)) for found in _PEM.findall(pem)]
    return min(ends, default=None)


def _not_after(certificate: bytes) -> int:
    """The end of validity of `certificate`. ValueError if it is not a certificate."""
    _, body, _ = _element(certificate, 0)
    _, at, _ = _element(certificate, body)
    kind, _, end = _element(certificate, at)
    if kind == _VERSION:
        at = end
    # serial, algorithm, issuer
    for _ in range(3):
        _, _, at = _element(certificate, at)
    kind, not_before, _ = _element(certificate, at)
    if kind != _SEQUENCE:
        raise ValueError("a certificate without a validity")
    _, _, not_after = _element(certificate, not_before)
    kind, start, end = _element(certificate, not_after)
    if kind not in _FORMATS:
        raise ValueError("a certificate with a strange time")
    when = datetime.strptime(certificate[start:end].decode("ascii"), _FORMATS[kind])
    if kind == _UTC_TIME and when.year >= _CENTURY_FROM:
        when = when.replace(year=when.year - 100)
    return int(when.replace(tzinfo=UTC).timestamp() * 1000)


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the element at `at`, and the start and end of its contents."""
    if at + 2 > len(data):
        raise ValueError("a certificate cut short")
    size, start = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + size > len(data):
        raise ValueError("a certificate cut short")
    return data[at], start, start + size
