"""AMQP URIs as the parameters of RabbitMQ's shovels and upstreams have them: with a query, or without a host.

What is accepted, and the texts of refusals, were measured on RabbitMQ 3.10.8. Its texts quote the URI; here
passwords in the quote are hidden, and the quoted terms are in one line.
"""

import re
from collections.abc import Iterable
from typing import NoReturn

from msgspec import Struct

from warren.client.uri import PORTS, ClientTls, Target
from warren.limits import CHANNELS_MAX, FRAME_SIZE_MAX, FRAME_SIZE_MIN
from warren.model.erlang_terms import Atom, Term, printed_term
from warren.wire.strings import decode_text

HIDDEN = "***"
# In a URI everything up to the password, the password, and what follows it.
PASSWORD = re.compile("(://[^:@]*:)(.*)(@)", re.DOTALL)
# A local target has all keys of a remote one that have no meaning for it.
_TLS_FILES = "cacertfile", "certfile", "keyfile"
_REMOTE_FIELDS = (
    "username", "virtual_host", "host", "port", "channel_max", "frame_max", "heartbeat",
    "connection_timeout", "ssl_options", "auth_mechanisms", "client_properties", "socket_options",
)  # fmt: skip
_LOCAL_FIELDS = "username", "virtual_host", "node", "adapter_info", "client_properties"
_NUMBERS = "channel_max", "frame_max", "heartbeat", "connection_timeout"
_MECHANISMS = {"plain": "PLAIN", "external": "EXTERNAL"}
# The keys of a query whose values are shown; anything else could be a password that is misspelt.
_SHOWN = frozenset((
    *_TLS_FILES, *_REMOTE_FIELDS, *_LOCAL_FIELDS, "auth_mechanism", "depth", "fail_if_no_peer_cert",
    "server_name_indication", "verify",
))  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]+")
_ENTITY = re.compile("%(..?)?", re.DOTALL)
_HEX = re.compile("[0-9a-fA-F]{2}")
# The longest number that is parsed: no parameter has a larger one.
_DIGITS_MAX = 20
_PORT_MAX = 65_535
_HEARTBEAT_S_MAX = 65_535


class _RefusedError(Exception):
    """A URI that RabbitMQ refuses, with the term that it shows as the reason."""

    def __init__(self, reason: Term) -> None:
        super().__init__()
        self.reason = reason


class _Parts(Struct, frozen=True):
    """A URI, split and not decoded; each character is one byte of the URI."""

    scheme: str
    # None unless the scheme is followed by two slashes.
    userinfo: list[str] | None
    host: str
    port: int | None
    path: str
    query: list[tuple[str, str]]

    def value(self, key: str) -> str | None:
        """The first value of `key` in the query."""
        return next((value for name, value in self.query if name == key), None)


def parse_target(uri: str) -> Target:
    """Parse `uri`, with everything that it says in its query; without a host it is a local target.

    Raises ValueError, whose text has no password.
    """
    try:
        return _target(_split(uri))
    except _RefusedError as refused:
        raise ValueError(_refusal(uri, refused.reason)) from None


def uri_refusal(uri: str) -> str | None:
    """Return why `uri` is not accepted, in RabbitMQ's words if it refuses it as well; None if it is."""
    try:
        parse_target(uri)
    except ValueError as error:
        return str(error)
    return None


def uri_without_credentials(uri: str) -> str:
    """Return scheme, host, port and path of `uri`: nothing of it is secret."""
    try:
        parts = _split(uri)
    except _RefusedError:
        # Without its query; the password may have slashes, so that it ends at the last @.
        return re.sub("://.*@", "://", uri.partition("?")[0], flags=re.DOTALL)
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    port = "" if parts.port is None else f":{parts.port}"
    return _text(f"{parts.scheme}://{host}{port}{parts.path}")


def _refusal(uri: str, reason: Term) -> str:
    """Return RabbitMQ's text for a URI that is refused for `reason`."""
    shown, hidden = without_passwords(uri)
    term = printed_term((_hide(reason, hidden), _bytes_of(shown)))
    return f'"{shown}" not a valid URI: {term}'


def without_passwords(uri: str) -> tuple[str, list[str]]:
    """Return `uri` with its passwords hidden, and these passwords.

    What its query says under unknown keys, and a fragment, are hidden as passwords are.
    """
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(_bytes_of(match[2]))
        return match[1] + HIDDEN + match[3]

    def hide_value(match: re.Match[str]) -> str:
        if match[2] in _SHOWN and "#" not in match[3]:
            return match[0]
        hidden.append(_bytes_of(match[3]))
        return match[1] + HIDDEN

    before, mark, query = uri.partition("?")
    if mark and "@" in query and "@" not in before:
        # A question mark in a password that is not encoded.
        before, mark, query = uri, "", ""
    before = PASSWORD.sub(hide, before)
    query = re.sub("((?:^|(?<=&))(?:([^&=#]*)=)?)([^&]+)", hide_value, query, flags=re.DOTALL)
    return before + mark + query, [secret for secret in hidden if secret]


def _hide(term: Term, hidden: list[str]) -> Term:
    """Replace in `term` each text that has a password, or is a part of one."""
    if isinstance(term, tuple):
        return tuple(_hide(item, hidden) for item in term)
    if isinstance(term, list):
        return [_hide(item, hidden) for item in term]
    if isinstance(term, str) and not isinstance(term, Atom):
        is_secret = any(term and (term in secret or secret in term) for secret in hidden)
        return HIDDEN if is_secret else term
    return term


# --- splitting ----------------------------------------------------------------------------------


def _split(uri: str) -> _Parts:
    text = _bytes_of(uri)
    scheme, colon, rest = text.partition(":")
    if not colon:
        raise _RefusedError((Atom("unable_to_parse_uri"), Atom("no_scheme")))
    userinfo: list[str] | None = None
    host, port = "", None
    if rest.startswith("//"):
        authority = re.match("[^/?#]*", rest[2:])
        assert authority is not None
        rest = rest[2 + authority.end() :]
        user, _, address = authority[0].rpartition("@")
        userinfo = user.split(":") if user else []
        host, port = _split_address(address, text)
    rest = rest.partition("#")[0]
    path, _, query = rest.partition("?")
    pairs = [item.partition("=") for item in query.split("&")]
    return _Parts(
        scheme, userinfo, host, port, path, [(key, value) for key, equals, value in pairs if equals]
    )


def _split_address(address: str, uri: str) -> tuple[str, int | None]:
    """Split the host, which may be an IPv6 address in brackets, from the port."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        if rest and not rest.startswith(":"):
            raise _malformed(uri, (Atom("invalid_port"), rest))
        found, port = bool(rest), rest[1:]
    else:
        host, colon, port = address.partition(":")
        found = bool(colon)
    if not found:
        return host, None
    if not _is_integer(port):
        call = (Atom("erlang"), Atom("list_to_integer"), [port])
        raise _malformed(uri, (Atom("EXIT"), (Atom("badarg"), [call])))
    return host, int(port)


def _malformed(uri: str, reason: Term) -> _RefusedError:
    shown = _bytes_of(without_passwords(_text(uri))[0])
    return _RefusedError((Atom("unable_to_parse_uri"), (Atom("malformed_uri"), shown, reason)))


# --- meaning ------------------------------------------------------------------------------------


def _target(parts: _Parts) -> Target:
    """Check `parts` in RabbitMQ's order."""
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise _RefusedError((Atom("unexpected_uri_scheme"), scheme))
    is_tls = scheme == "amqps"
    if parts.port is not None and not 0 < parts.port <= _PORT_MAX:
        raise _RefusedError((Atom("port_out_of_range"), parts.port))
    vhost = _vhost(parts.path)
    host = _decoded(parts.host)
    if parts.port is not None and not host:
        raise _RefusedError(Atom("port_requires_host"))
    mechanisms = _mechanisms(parts) if host else ("PLAIN",)
    if parts.userinfo is None:
        raise _RefusedError((Atom("case_clause"), Atom("undefined")))
    names = [_decoded(name) for name in parts.userinfo[:2]]
    tls = _tls(parts) if is_tls else ClientTls()
    if is_tls and not host:
        raise _RefusedError((Atom("badrecord"), Atom("amqp_params_direct")))
    numbers = _numbers(parts, _REMOTE_FIELDS if host else _LOCAL_FIELDS)
    _check_ranges(parts, numbers)
    frame_max = numbers.get("frame_max", 0)
    return Target(
        host=host,
        port=(parts.port or PORTS[scheme]) if host else 0,
        user=names[0] if names else "",
        password=names[1] if len(names) > 1 else "",
        vhost=vhost,
        is_tls=is_tls,
        tls=tls,
        mechanisms=mechanisms,
        heartbeat_s=numbers.get("heartbeat"),
        timeout_ms=numbers.get("connection_timeout"),
        channels_max=min(numbers.get("channel_max", 0) or CHANNELS_MAX, CHANNELS_MAX),
        frame_size_max=max(FRAME_SIZE_MIN, min(frame_max, FRAME_SIZE_MAX)) if frame_max else FRAME_SIZE_MAX,
    )


def _vhost(path: str) -> str:
    if not path:
        return "/"
    if not path.startswith("/"):
        raise _RefusedError((Atom("case_clause"), path))
    if "/" in path[1:]:
        raise _RefusedError((Atom("invalid_vhost"), path[1:]))
    return _decoded(path[1:])


def _mechanisms(parts: _Parts) -> tuple[str, ...]:
    """Return the SASL mechanisms to try, in order; those that are not supported are left out."""
    given = [value for key, value in parts.query if key == "auth_mechanism"]
    if not given:
        return ("PLAIN",)
    names = []
    for value in given:
        words = [word for word in value.split(":") if word]
        if not 0 < len(words) <= 2 or (len(words) == 2 and words[0] != "amqp_auth_mechanisms"):
            raise _RefusedError((Atom("not_mechanism"), [Atom(word) for word in words]))
        names.append(words[-1])
    supported = tuple(_MECHANISMS[name] for name in names if name in _MECHANISMS)
    if not supported:
        raise ValueError(f"auth_mechanism={_text(names[0])}: plain and external are supported")
    return supported


def _tls(parts: _Parts) -> ClientTls:
    """Return what the query says of TLS. A broker is verified unless it says verify=verify_none."""
    ca_file, cert_file, key_file = (_tls_text(parts, key) for key in _TLS_FILES)
    verify = parts.value("verify")
    for_server = parts.value("fail_if_no_peer_cert")
    if for_server not in (None, "true", "false"):
        _refuse_tls(parts, "fail_if_no_peer_cert", (Atom("require_boolean"), Atom(for_server)))
    password = _tls_text(parts, "password")
    server_name = _tls_text(parts, "server_name_indication")
    depth = parts.value("depth")
    if depth is not None and not _is_integer(depth):
        _refuse_tls(parts, "depth", (Atom("not_an_integer"), depth))
    if verify not in (None, "verify_peer", "verify_none"):
        raise ValueError("verify must be verify_peer or verify_none")
    return ClientTls(
        ca_file=ca_file,
        cert_file=cert_file,
        # RabbitMQ reads the key from certfile as well if there is no keyfile.
        key_file=key_file,
        key_password=password,
        is_verified=verify != "verify_none",
        server_name="" if server_name == "disable" else server_name,
    )


def _tls_text(parts: _Parts, key: str) -> str | None:
    value = parts.value(key)
    if value is None:
        return None
    try:
        return _decoded(value)
    except _RefusedError as refused:
        _refuse_tls(parts, key, refused.reason)


def _refuse_tls(parts: _Parts, key: str, reason: Term) -> NoReturn:
    value = parts.value(key)
    assert value is not None
    raise _RefusedError((Atom("invalid_ssl_parameter"), Atom(key), value, list(parts.query), reason))


def _numbers(parts: _Parts, fields: Iterable[str]) -> dict[str, int]:
    """Return the numbers in the query; other fields of a connection cannot be set there."""
    numbers = {}
    for field in fields:
        value = parts.value(field)
        if value is None:
            continue
        if field not in _NUMBERS:
            reason: Term = (Atom("parameter_unconfigurable_in_query"), Atom(field), value)
        elif _is_integer(value):
            numbers[field] = int(value)
            continue
        else:
            reason = (Atom("not_an_integer"), value)
        raise _RefusedError(
            (Atom("invalid_amqp_params_parameter"), Atom(field), value, list(parts.query), reason)
        )
    return numbers


def _check_ranges(parts: _Parts, numbers: dict[str, int]) -> None:
    """Refuse numbers that RabbitMQ accepts, and with which no connection can be opened."""
    bounds = {
        "heartbeat": (0, _HEARTBEAT_S_MAX),
        "connection_timeout": (1, None),
        "channel_max": (0, None),
        "frame_max": (0, None),
    }
    for key, number in numbers.items():
        least, most = bounds[key]
        if number < least or (most is not None and number > most):
            raise ValueError(
                f"{key}={parts.value(key)}: must be at least {least}"
                + ("" if most is None else f" and at most {most}")
            )


def _is_integer(text: str) -> bool:
    return len(text) <= _DIGITS_MAX and _INTEGER.fullmatch(text) is not None


# --- encoding -----------------------------------------------------------------------------------


def _decoded(text: str) -> str:
    """Decode the percent-encoded bytes of `text`."""

    def byte(match: re.Match[str]) -> str:
        digits = match[1] or ""
        if len(digits) < 2:
            raise _RefusedError((Atom("unterminated_entity"), [Atom("%"), *map(ord, digits)]))
        if not _HEX.fullmatch(digits):
            raise _RefusedError((Atom("invalid_entitiy"), [Atom("%"), *map(ord, digits)]))
        return chr(int(digits, 16))

    return _text(_ENTITY.sub(byte, text))


def _bytes_of(text: str) -> str:
    """Return `text` with one character for each of its bytes, as Erlang's strings of it have."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(data: str) -> str:
    """Return the text whose bytes are the characters of `data`."""
    return decode_text(data.encode("latin-1"))
