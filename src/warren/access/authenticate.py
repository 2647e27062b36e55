"""Who someone is: the SASL mechanisms PLAIN, AMQPLAIN and EXTERNAL against the users of the metadata.

Every refusal of credentials has one text, and an unknown user costs what a wrong password costs: neither
tells which users exist. A malformed response is an error of its own, as RabbitMQ has it (3.10.8, measured).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from warren.access.passwords import DEFAULT_ALGORITHM, hash_password, is_password
from warren.errors import AmqpError, AmqpSyntaxError, CommandInvalid, LoginRefused
from warren.metadata.machine import Metadata
from warren.metadata.users import User
from warren.wire.erlang import octets_printed
from warren.wire.table import decode_table

PLAIN = "PLAIN"
AMQPLAIN = "AMQPLAIN"
EXTERNAL = "EXTERNAL"

_NUL = b"\0"


class Peer(Protocol):
    """What is asked about the other end of a connection."""

    @property
    def is_loopback(self) -> bool:
        """The client itself, not the listener, is on this machine."""

    @property
    def certificate_login(self) -> str | None:
        """The user whom a verified client certificate names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationSettings:
    """Which mechanisms are offered, in order, and who is let in from this machine only."""

    mechanisms: tuple[str, ...] = (AMQPLAIN, PLAIN)
    loopback_users: frozenset[str] = frozenset(("guest",))


class Authenticator:
    """Turns what a client says about itself into the name of a user."""

    __slots__ = ("_mechanisms", "_metadata", "_settings", "_stranger", "_without_certificate")

    def __init__(self, metadata: Metadata, settings: AuthenticationSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._mechanisms = settings.mechanisms
        self._without_certificate = tuple(name for name in settings.mechanisms if name != EXTERNAL)
        # Compared with in place of an unknown user's hash, so that both take the same path.
        self._stranger = User(
            name="",
            password_hash=hash_password("", bytes(4)),
            hashing_algorithm=DEFAULT_ALGORITHM,
            tags=(),
            limits={},
        )

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """The mechanisms offered to `peer`: EXTERNAL only to one with a certificate."""
        return self._without_certificate if peer.certificate_login is None else self._mechanisms

    def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> str:
        """The name of the user, who has proved to be that one."""
        if mechanism not in self.mechanisms(peer) or mechanism not in _READERS:
            raise CommandInvalid(f"unknown authentication mechanism '{mechanism}'")
        if mechanism == EXTERNAL:
            name = peer.certificate_login or ""
            is_right = name in self._metadata.users.by_name
        else:
            name, password = _READERS[mechanism](response)
            is_right = self.is_password_of(name, password)
        if not is_right or (name in self._settings.loopback_users and not peer.is_loopback):
            raise refusal(mechanism)
        return name

    def is_password_of(self, name: str, password: str) -> bool:
        """True if `name` is a user and `password` its password; a blank one is nobody's."""
        user = self._metadata.users.by_name.get(name)
        known = user or self._stranger
        is_right = is_password(password, known.password_hash, known.hashing_algorithm)
        return is_right and user is not None and password != ""


def refusal(mechanism: str) -> LoginRefused:
    """What a client with wrong credentials is told, whatever is wrong with them."""
    return LoginRefused(
        f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.",
        method_index=0,
    )


def _plain(response: bytes) -> tuple[str, str]:
    # RFC 4616 without an authorisation identity: NUL user NUL password.
    parts = response.split(_NUL)
    if len(parts) != 3 or parts[0]:
        raise AmqpSyntaxError(f"response {octets_printed(response)} invalid")
    return _text(parts[1]), _text(parts[2])


def _amqplain(response: bytes) -> tuple[str, str]:
    """A field table without its size, with LOGIN and PASSWORD."""
    try:
        table = decode_table(response, 0, len(response))
    except AmqpError:
        raise AmqpSyntaxError("AMQPLAIN auth info is no field table") from None
    name, password = table.get("LOGIN"), table.get("PASSWORD")
    if not isinstance(name, str) or not isinstance(password, str):
        raise AmqpSyntaxError("AMQPLAIN auth info is missing LOGIN or PASSWORD field")
    return name, password


def _external(_: bytes) -> tuple[str, str]:
    raise AssertionError("the certificate says who it is")


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


_READERS: dict[str, Callable[[bytes], tuple[str, str]]] = {
    PLAIN: _plain,
    AMQPLAIN: _amqplain,
    EXTERNAL: _external,
}
