"""Who someone is: a name and a password, or a certificate, against the users of the metadata.

Every refusal of credentials has one text, and takes as long whatever is wrong: neither tells which users
exist. Who fails too often waits before the next attempt is looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from warren.access.mechanisms import AMQPLAIN, EXTERNAL, PLAIN, READERS
from warren.access.penalties import Penalties, PenaltySettings
from warren.access.verification import Verification, VerificationWorld
from warren.access.waiting import Answer
from warren.errors import CommandInvalid, LoginRefused
from warren.metadata.machine import Metadata


class Peer(Protocol):
    """What is asked about the other end of a connection."""

    @property
    def host(self) -> str:
        """Its address."""

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
    penalties: PenaltySettings = field(default_factory=PenaltySettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationWorld(VerificationWorld):
    """What logging in needs from above the waterline."""

    # Port: over after so many milliseconds.
    wait: Callable[[int], Answer[None]]
    # Told what an operator should know, in one line.
    report: Callable[[str], None]


class Authenticator:
    """Turns what a client says about itself into the name of a user."""

    __slots__ = (
        "_mechanisms",
        "_metadata",
        "_penalties",
        "_settings",
        "_verification",
        "_without_certificate",
        "_world",
    )

    def __init__(
        self, metadata: Metadata, settings: AuthenticationSettings, world: AuthenticationWorld
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._world = world
        self._mechanisms = settings.mechanisms
        self._without_certificate = tuple(name for name in settings.mechanisms if name != EXTERNAL)
        self._verification = Verification(metadata, world)
        self._penalties = Penalties(settings.penalties)

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """The mechanisms offered to `peer`: EXTERNAL only to one with a certificate."""
        return self._without_certificate if peer.certificate_login is None else self._mechanisms

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> str:
        """The name of the user, who has proved to be that one."""
        if mechanism not in self.mechanisms(peer):
            raise CommandInvalid(f"unknown authentication mechanism '{mechanism}'")
        if mechanism == EXTERNAL:
            name = peer.certificate_login or ""
            is_right = name in self._metadata.users.by_name
        else:
            name, password = READERS[mechanism](response)
            is_right = await self._is_right(mechanism, name, password, peer)
        if not is_right or (name in self._settings.loopback_users and not peer.is_loopback):
            error = refusal(mechanism)
            error.user = name
            raise error
        return name

    async def _is_right(self, mechanism: str, name: str, password: str, peer: Peer) -> bool:
        wait_ms = self._penalties.wait_ms(peer.host, name, self._world.now())
        if wait_ms is None:
            raise refusal(mechanism)
        if wait_ms:
            await self._world.wait(wait_ms)
        if await self._verification.is_password_of(name, password):
            self._penalties.succeeded(peer.host, name, self._world.now())
            return True
        if self._penalties.failed(peer.host, name, self._world.now()):
            self._world.report(f"too many logins from {peer.host} failed: those that follow are slowed down")
        return False


def refusal(mechanism: str) -> LoginRefused:
    """What a client with wrong credentials is told, whatever is wrong with them."""
    return LoginRefused(
        f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.",
        method_index=0,
    )
