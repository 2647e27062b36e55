"""LDAP version 3 (RFC 4511), as much of it as finds a user: bind, search, StartTLS, unbind.

element | tag u8 | length: u8 below 128, else 0x80 + count and so many octets | content …
message | SEQUENCE 0x30 | id INTEGER | operation | controls [0], which nobody reads here

1. What a server sends is read with definite lengths that lie within what is there; anything else is an
   LdapSyntaxError.
2. A filter is made of values, never of text with brackets: what a user writes cannot become a part of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MESSAGE = 0x30
# RFC 4511 §4.14.1: what asks for TLS on a connection that began without.
START_TLS = "1.3.6.1.4.1.1466.20037"
# RFC 4511 §4.5.1.8: no attributes at all, only names.
_NO_ATTRIBUTES = b"1.1"

_BOOLEAN, _INTEGER, _OCTETS, _ENUMERATED, _SEQUENCE = 0x01, 0x02, 0x04, 0x0A, 0x30
_VERSION = 3
_BIND, _UNBIND, _SEARCH, _EXTENDED = 0x60, 0x42, 0x63, 0x77
_ENTRY, _REFERENCE = 0x64, 0x73
# Bind, search and extended operation.
_DONE = frozenset({0x61, 0x65, 0x78})
_SUBTREE = 2
_ANY, _EQUAL, _EXTENSIBLE = 0xA1, 0xA3, 0xA9
_LENGTH_OCTETS_MAX = 4

SUCCESS = 0
SIZE_LIMIT_EXCEEDED = 4
# The user, or what they said about themselves: everything else is the server's or the operator's fault.
_CREDENTIALS_WRONG = frozenset({32, 34, 48, 49, 50, 53})
_NAMES = {
    1: "operationsError", 2: "protocolError", 3: "timeLimitExceeded", 4: "sizeLimitExceeded",
    7: "authMethodNotSupported", 8: "strongerAuthRequired", 10: "referral", 11: "adminLimitExceeded",
    13: "confidentialityRequired", 16: "noSuchAttribute", 18: "inappropriateMatching", 32: "noSuchObject",
    34: "invalidDNSyntax", 48: "inappropriateAuthentication", 49: "invalidCredentials",
    50: "insufficientAccessRights", 51: "busy", 52: "unavailable", 53: "unwillingToPerform", 80: "other",
}  # fmt: skip
# What a server says about an error goes into the log, and no further.
_DIAGNOSTIC_SIZE_MAX = 200


class LdapSyntaxError(Exception):
    """A server does not speak LDAP."""


@dataclass(frozen=True, slots=True)
class LdapEntry:
    """Something that a search found."""

    name: str


@dataclass(frozen=True, slots=True)
class LdapResult:
    """How an operation ended."""

    code: int
    diagnostic: str

    @property
    def is_of_credentials(self) -> bool:
        """True if somebody is not who they say, or may not log in."""
        return self.code in _CREDENTIALS_WRONG

    def __str__(self) -> str:
        name = _NAMES.get(self.code, f"code {self.code}")
        return f"{name} ({self.diagnostic})" if self.diagnostic else name


@dataclass(frozen=True, slots=True)
class EqualityFilter:
    """An attribute has a value; `rule` is the matching rule to use, if it is not the attribute's."""

    attribute: str
    value: str
    rule: str = ""


def bind(number: int, name: str, password: str) -> bytes:
    """Say who one is, with a password; nobody without either."""
    credentials = _element(0x80, _text(password))
    return _message(number, _BIND, _integer(_VERSION) + _element(_OCTETS, _text(name)) + credentials)


def search(
    number: int, base: str, filters: Sequence[EqualityFilter], *, count_max: int, time_s_max: int
) -> bytes:
    """Ask for the names of what lies at or under `base` and is found by any of `filters`."""
    wanted = b"".join(_filter(one) for one in filters)
    content = (
        _element(_OCTETS, _text(base))
        + _element(_ENUMERATED, bytes((_SUBTREE,)))
        # Aliases are what they are called.
        + _element(_ENUMERATED, b"\0")
        + _integer(count_max)
        + _integer(time_s_max)
        + _element(_BOOLEAN, b"\0")
        + (wanted if len(filters) == 1 else _element(_ANY, wanted))
        + _element(_SEQUENCE, _element(_OCTETS, _NO_ATTRIBUTES))
    )
    return _message(number, _SEARCH, content)


def start_tls(number: int) -> bytes:
    """Ask to go on with TLS."""
    return _message(number, _EXTENDED, _element(0x80, START_TLS.encode()))


def unbind(number: int) -> bytes:
    """Say good-bye."""
    return _message(number, _UNBIND, b"")


def decoded(octets: bytes) -> tuple[int, LdapEntry | LdapResult | None]:
    """What the content of a message says, and to which request; None: something to pass over."""
    elements = _elements(octets)
    tag, number = _next(elements)
    if tag != _INTEGER:
        raise LdapSyntaxError("a message without a number")
    tag, content = _next(elements)
    return int.from_bytes(number, "big", signed=True), _operation(tag, content)


def length_count(octet: int) -> int:
    """How many octets of length follow the first one, `octet`; 0 if it is the length itself."""
    if octet < 0x80:
        return 0
    count = octet - 0x80
    if not 0 < count <= _LENGTH_OCTETS_MAX:
        raise LdapSyntaxError("a length that is not definite")
    return count


def _operation(tag: int, content: bytes) -> LdapEntry | LdapResult | None:
    if tag == _ENTRY:
        return LdapEntry(_read_text(_content(_elements(content), _OCTETS)))
    if tag in _DONE:
        return _result(content)
    if tag == _REFERENCE:
        return None
    raise LdapSyntaxError(f"an unknown operation 0x{tag:02x}")


def _result(content: bytes) -> LdapResult:
    elements = _elements(content)
    code = int.from_bytes(_content(elements, _ENUMERATED), "big", signed=True)
    _content(elements, _OCTETS)
    diagnostic = _read_text(_content(elements, _OCTETS))[:_DIAGNOSTIC_SIZE_MAX]
    return LdapResult(code, "".join(part if part.isprintable() else " " for part in diagnostic).strip())


def _filter(one: EqualityFilter) -> bytes:
    if one.rule:
        parts = ((0x81, one.rule), (0x82, one.attribute), (0x83, one.value))
        return _element(_EXTENSIBLE, b"".join(_element(tag, _text(text)) for tag, text in parts))
    return _element(_EQUAL, _element(_OCTETS, _text(one.attribute)) + _element(_OCTETS, _text(one.value)))


def _message(number: int, operation: int, content: bytes) -> bytes:
    return _element(_SEQUENCE, _integer(number) + _element(operation, content))


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 + len(length))) + length + content


def _integer(value: int) -> bytes:
    return _element(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _elements(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element in `octets`."""
    at, end = 0, len(octets)
    while at < end:
        if end - at < 2:
            raise LdapSyntaxError("an element that is cut off")
        tag, size = octets[at], octets[at + 1]
        start = at + 2 + length_count(size)
        if start > at + 2:
            size = int.from_bytes(octets[at + 2 : start], "big")
        at = start + size
        if at > end:
            raise LdapSyntaxError("an element that is cut off")
        yield tag, octets[start:at]


def _next(elements: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    found = next(elements, None)
    if found is None:
        raise LdapSyntaxError("an element is missing")
    return found


def _content(elements: Iterator[tuple[int, bytes]], tag: int) -> bytes:
    found, content = _next(elements)
    if found != tag:
        raise LdapSyntaxError(f"an element 0x{found:02x} where 0x{tag:02x} is due")
    return content


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read_text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
