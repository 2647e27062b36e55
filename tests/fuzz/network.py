"""Fuzz targets of input from servers and proxies: LDAP answers, PROXY headers, tokens and key sets."""

import asyncio
import json
import socket
import struct
from contextlib import suppress
from ipaddress import ip_address

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from warren.access.tokens import (
    SHARED_ALGORITHMS,
    ResourceServer,
    TokenRefused,
    TokenSettings,
    TokenVerifier,
)
from warren.limits import LDAP_MESSAGE_SIZE_MAX
from warren.node.keyring import _key_set as key_set
from warren.node.ldap_connection import LdapConnection, LdapConnectionLost, LdapServer
from warren.transport.proxy_protocol import ProxiedEnds, ProxyHeaderError, read_header
from warren.wire import ldap

NOW = 1_000_000_000
LOOP = asyncio.new_event_loop()
KEY = OctKey.import_key("a key that every input of the target is signed with")
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
CLAIMS = {
    "sub": "alice", "aud": ["rabbitmq", "other"], "scope": "rabbitmq.read:v/q rabbitmq.tag:administrator",
    "exp": NOW, "nbf": 1.5, "authorization": {"permissions": [{"scopes": ["rabbitmq.write:*/*"]}]},
    "extra": {"scopes": {"rabbitmq": ["configure:%2F/x.*"]}}, "client_id": "c",
}  # fmt: skip


def check_ldap(data: bytes) -> None:
    """Whatever a server answers, a search ends with a result, or the connection is closed."""
    LOOP.run_until_complete(_search(data))


async def _search(data: bytes) -> None:
    reader = asyncio.StreamReader(limit=LDAP_MESSAGE_SIZE_MAX)
    reader.feed_data(data)
    reader.feed_eof()
    link = LdapConnection(LdapServer(host="directory", port=389), reader, _Discarding())  # type: ignore[arg-type]
    with suppress(LdapConnectionLost):
        names, result = await link.search(
            "dc=x", [ldap.EqualityFilter("uid", "a")], count_max=2, time_s_max=1
        )
        assert len(names) <= 2
        assert str(result).isprintable()


class _Discarding:
    """A writer that discards everything."""

    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass


def ldap_seeds() -> list[bytes]:
    """Answers to request 1, encoded with the functions for requests."""
    message, element, number = ldap._message, ldap._element, ldap._integer

    def result(tag: int, code: int, text: bytes) -> bytes:
        return message(1, tag, element(0x0A, bytes([code])) + element(4, b"") + element(4, text))

    entry = message(1, 0x64, element(4, b"uid=a,dc=x") + element(0x30, b""))
    done = result(0x65, 0, b"")
    long = message(1, 0x64, element(4, b"uid=" + b"a" * 300 + b",dc=x") + element(0x30, number(3)))
    return [
        entry + done, entry + entry + entry + done, message(1, 0x73, element(4, b"ldap://b/")) + done,
        result(0x65, 49, b"no \xff\n such user"), long + done, message(0, 0x78, element(0x0A, b"\x34")),
    ]  # fmt: skip


def check_proxy(data: bytes) -> None:
    """A header is parsed exactly or refused, and its addresses are unchanged when they are written
    again.
    """
    ends, rest = LOOP.run_until_complete(_read_header(data))
    if ends is None:
        return
    for header in (_version_1(ends), _version_2(ends)):
        assert LOOP.run_until_complete(_read_header(header + rest)) == (ends, rest)


async def _read_header(data: bytes) -> tuple[ProxiedEnds | None, bytes]:
    """The addresses in `data`, and what follows its header."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        try:
            ends = await read_header(LOOP, near)
        except ProxyHeaderError:
            return None, b""
        return ends, near.recv(len(data) + 1)


def _version_1(ends: ProxiedEnds) -> bytes:
    kind = "TCP6" if ":" in ends.host else "TCP4"
    return f"PROXY {kind} {ends.host} {ends.server_host} {ends.port} {ends.server_port}\r\n".encode()


def _version_2(ends: ProxiedEnds) -> bytes:
    hosts = b"".join(ip_address(host).packed for host in (ends.host, ends.server_host))
    addresses = hosts + struct.pack(">HH", ends.port, ends.server_port)
    family = 0x21 if ":" in ends.host else 0x11
    return SIGNATURE + struct.pack(">BBH", 0x21, family, len(addresses)) + addresses


def proxy_seeds() -> list[bytes]:
    """Headers of both versions, followed by the beginning of a connection."""
    four = ProxiedEnds("192.0.2.1", 56_324, "198.51.100.1", 5672)
    six = ProxiedEnds("2001:db8::1", 1, "2001:db8::2", 65_535)
    headers = [write(ends) for write in (_version_1, _version_2) for ends in (four, six)]
    unknown = SIGNATURE + b"\x20\0\0\0"
    return [header + b"AMQP\0\0\x09\x01" for header in [*headers, b"PROXY UNKNOWN\r\n", unknown]]


def check_tokens(data: bytes) -> None:
    """A token is accepted or refused: as it is, and with these claims under a valid signature."""
    with suppress(ValueError, RecursionError):
        claims = json.loads(data)
        if isinstance(claims, dict):
            with suppress(JoseError, TypeError):
                token = jwt.encode({"alg": "HS256", "kid": "k"}, claims, KEY, algorithms=["HS256"])
                _let_in(token)
    _let_in(data.decode("utf-8", "surrogateescape"))


def _let_in(token: str) -> None:
    """Log in with `token`, with scopes in every configured place."""

    async def key(identifier: str | None) -> OctKey | None:
        return KEY

    settings = TokenSettings(
        resource_server_id="rabbitmq", algorithms=SHARED_ALGORITHMS,
        additional_scopes_key="extra.scopes roles", resource_server_type="broker",
        scope_aliases={"admin": "rabbitmq.tag:administrator rabbitmq.read:*/*"},
    )  # fmt: skip
    with suppress(TokenRefused):
        verifier = TokenVerifier([ResourceServer(settings, key)], lambda: NOW)
        user = LOOP.run_until_complete(verifier.user_of(token, "claimed"))
        user.grants.permission("v")


def token_seeds() -> list[bytes]:
    """Claims, and whole tokens."""
    without_end = {name: value for name, value in CLAIMS.items() if name != "exp"}
    signed = jwt.encode({"alg": "HS256", "kid": "k"}, without_end, KEY, algorithms=["HS256"])
    aliased = json.dumps({"client_id": "x", "aud": "rabbitmq", "scope": ["admin"]})
    return [json.dumps(CLAIMS).encode(), json.dumps(without_end).encode(), aliased.encode(), signed.encode()]


def check_keys(data: bytes) -> None:
    """A key set is read, or refused by an error that the keyring expects."""
    with suppress(JoseError, ValueError, TypeError):
        key_set(data)


def key_seeds() -> list[bytes]:
    """A set with a key of each kind."""
    keys: list[dict[str, str]] = [
        {"kty": "oct", "kid": "o", "k": "GawgguFyGrWKav7AX4VKUg"},
        {"kty": "OKP", "kid": "e", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
        {
            "kty": "EC", "kid": "p", "crv": "P-256", "use": "sig",
            "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
            "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
        },
        {"kty": "RSA", "kid": "r", "alg": "RS256", "e": "AQAB", "n": "sXchTgTSYqRDcG9vPZ8B"},
    ]  # fmt: skip
    return [json.dumps({"keys": chosen}).encode() for chosen in (keys, keys[:1], [])]
