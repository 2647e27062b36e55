"""The part of LDAP version 3 (RFC 4511) needed to find a user: bind, search, StartTLS, unbind.

element | tag u8 | length: u8 below 128, else 0x80 + count, then that many bytes | content …
message | SEQUENCE 0x30 | id INTEGER | operation | controls [0], which are ignored

1. Responses are parsed with definite lengths within the received bytes; anything else raises
   LdapSyntaxError.
2. A filter is built from values, never from text with brackets: user input cannot change its structure.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

MESSAGE = 0x30
# RFC 4511 §4.14.1: the request name of StartTLS.
START_TLS = "1.3.6.1.4.1.1466.20037"
# RFC 4511 §4.5.1.8: return no attributes, only names.
_NO_ATTRIBUTES = b"1.1"

_BOOLEAN, _INTEGER, _OCTET_STRING, _ENUMERATED, _SEQUENCE = 0x01, 0x02, 0x04, 0x0A, 0x30
_VERSION = 3
_BIND, _UNBIND, _SEARCH, _EXTENDED = 0x60, 0x42, 0x63, 0x77
_ENTRY, _REFERENCE = 0x64, 0x73
# The final responses of bind, search and extended operations.
_DONE = frozenset({0x61, 0x65, 0x78})
_SUBTREE = 2
_ANY, _EQUAL, _EXTENSIBLE = 0xA1, 0xA3, 0xA9
_LENGTH_BYTES_MAX = 4

SUCCESS = 0
SIZE_LIMIT_EXCEEDED = 4
# Result codes about the user or the credentials; all others are errors of the server or its configuration.
_CREDENTIALS_WRONG = frozenset({32, 34, 48, 49, 50, 53})
_NAMES = {
    1: "operationsError", 2: "protocolError", 3: "timeLimitExceeded", 4: "sizeLimitExceeded",
    7: "authMethodNotSupported", 8: "strongerAuthRequired", 10: "referral", 11: "adminLimitExceeded",
    13: "confidentialityRequired", 16: "noSuchAttribute", 18: "inappropriateMatching", 32: "noSuchObject",
    34: "invalidDNSyntax", 48: "inappropriateAuthentication", 49: "invalidCredentials",
    50: "insufficientAccessRights", 51: "busy", 52: "unavailable", 53: "unwillingToPerform", 80: "other",
}  # fmt: skip
# The length to which a server's diagnostic message is cut for the log; it goes nowhere else.
_DIAGNOSTIC_SIZE_MAX = 200


class LdapSyntaxError(Exception):
    """The response is not valid LDAP."""


class LdapEntry(Struct, frozen=True):
    """An entry found by a search."""

    name: str


class LdapResult(Struct, frozen=True):
    """The result of an operation."""

    code: int
    diagnostic: str

    @property
    def is_of_credentials(self) -> bool:
        """True if the credentials are wrong, or the user may not log in."""
        return self.code in _CREDENTIALS_WRONG

    def __str__(self) -> str:
        name = _NAMES.get(self.code, f"code {self.code}")
        return f"{name} ({self.diagnostic})" if self.diagnostic else name


class EqualityFilter(Struct, frozen=True):
    """Matches an attribute with a value; `rule` is the matching rule, if not the attribute's own."""

    attribute: str
    value: str
    rule: str = ""


def bind(number: int, name: str, password: str) -> bytes:
    """Encode a bind request with a password; anonymous if name and password are empty."""
    credentials = _element(0x80, _text(password))
    return _message(number, _BIND, _integer(_VERSION) + _element(_OCTET_STRING, _text(name)) + credentials)


def search(
    number: int, base: str, filters: Sequence[EqualityFilter], *, count_max: int, time_s_max: int
) -> bytes:
    """Encode a search for the names of entries at or under `base` that match any of `filters`."""
    wanted = b"".join(_filter(one) for one in filters)
    content = (
        _element(_OCTET_STRING, _text(base))
        + _element(_ENUMERATED, bytes((_SUBTREE,)))
        # Aliases are not dereferenced.
        + _element(_ENUMERATED, b"\0")
        + _integer(count_max)
        + _integer(time_s_max)
        + _element(_BOOLEAN, b"\0")
        + (wanted if len(filters) == 1 else _element(_ANY, wanted))
        + _element(_SEQUENCE, _element(_OCTET_STRING, _NO_ATTRIBUTES))
    )
    return _message(number, _SEARCH, content)


def start_tls(number: int) -> bytes:
    """Encode a StartTLS request."""
    return _message(number, _EXTENDED, _element(0x80, START_TLS.encode()))


def unbind(number: int) -> bytes:
    """Encode an unbind request."""
    return _message(number, _UNBIND, b"")


def decoded(data: bytes) -> tuple[int, LdapEntry | LdapResult | None]:
    """Decode a message: the id of its request, and the response; None if it is to be ignored."""
    elements = _elements(data)
    tag, number = _next(elements)
    if tag != _INTEGER:
        raise LdapSyntaxError("a message without a number")
    tag, content = _next(elements)
    return int.from_bytes(number, "big", signed=True), _operation(tag, content)


def length_count(octet: int) -> int:
    """The number of length bytes after the first one, `byte`; 0 if that is the length itself."""
    if octet < 0x80:
        return 0
    count = octet - 0x80
    if not 0 < count <= _LENGTH_BYTES_MAX:
        raise LdapSyntaxError("a length that is not definite")
    return count


def _operation(tag: int, content: bytes) -> LdapEntry | LdapResult | None:
    if tag == _ENTRY:
        return LdapEntry(_read_text(_content(_elements(content), _OCTET_STRING)))
    if tag in _DONE:
        return _result(content)
    if tag == _REFERENCE:
        return None
    raise LdapSyntaxError(f"an unknown operation 0x{tag:02x}")


def _result(content: bytes) -> LdapResult:
    elements = _elements(content)
    code = int.from_bytes(_content(elements, _ENUMERATED), "big", signed=True)
    _content(elements, _OCTET_STRING)
    diagnostic = _read_text(_content(elements, _OCTET_STRING))[:_DIAGNOSTIC_SIZE_MAX]
    return LdapResult(code, "".join(part if part.isprintable() else " " for part in diagnostic).strip())


def _filter(one: EqualityFilter) -> bytes:
    if one.rule:
        parts = ((0x81, one.rule), (0x82, one.attribute), (0x83, one.value))
        return _element(_EXTENSIBLE, b"".join(_element(tag, _text(text)) for tag, text in parts))
    return _element(
        _EQUAL, _element(_OCTET_STRING, _text(one.attribute)) + _element(_OCTET_STRING, _text(one.value))
    )


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


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and content of each element in `data`."""
    at, end = 0, len(data)
    while at < end:
        if end - at < 2:
            raise LdapSyntaxError("an element that is cut off")
        tag, size = data[at], data[at + 1]
        start = at + 2 + length_count(size)
        if start > at + 2:
            size = int.from_bytes(data[at + 2 : start], "big")
        at = start + size
        if at > end:
            raise LdapSyntaxError("an element that is cut off")
        yield tag, data[start:at]


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


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
