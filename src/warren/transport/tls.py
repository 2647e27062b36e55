"""TLS for listeners: certificates that can be replaced while the broker runs, and mutual TLS.

A listener keeps one context for its lifetime. In OpenSSL's server-name callback, which runs for every
ClientHello, that context passes each new handshake to the newest context loaded from the files. Existing
connections are not affected.

A handshake that fails ends with OpenSSL's alert, which contains the reason: uvloop closes the socket without
writing it (0.21), so that a client would not learn that it needs a certificate, or another one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar

from msgspec import Struct

from warren.transport.certificate_expiry import expiry_ms
from warren.transport.certificates import LoginFrom, login_name
from warren.transport.revocation import (
    RevocationCheck,
    check_revocation,
    revocation_files,
    revocation_lists,
)

logger = logging.getLogger("warren.tls")

_VERSIONS = {
    "tlsv1": (ssl.TLSVersion.TLSv1, ssl.OP_NO_TLSv1),
    "tlsv1.1": (ssl.TLSVersion.TLSv1_1, ssl.OP_NO_TLSv1_1),
    "tlsv1.2": (ssl.TLSVersion.TLSv1_2, ssl.OP_NO_TLSv1_2),
    "tlsv1.3": (ssl.TLSVersion.TLSv1_3, ssl.OP_NO_TLSv1_3),
}
VERSION_NAMES = tuple(_VERSIONS)


class TlsError(Exception):
    """The files or options are not usable for TLS; the text says which and why."""


class TlsSettings(Struct, frozen=True, kw_only=True):
    """The settings `ssl_options.*` and `ssl_cert_login_*`, or those with another `prefix`."""

    prefix: str = "ssl_options"

    certificate_file: str
    key_file: str
    authority_file: str = ""
    password: str = ""
    is_peer_verified: bool = False
    is_certificate_required: bool = False
    versions: tuple[str, ...] = ("tlsv1.2", "tlsv1.3")
    ciphers: tuple[str, ...] = ()
    is_own_cipher_order: bool = True
    revocation_check: RevocationCheck = RevocationCheck.NONE
    # Directories with lists of revoked certificates.
    revocation_directories: tuple[str, ...] = ()
    # True if lists come later, by `use_lists`.
    are_lists_fetched: bool = False
    login_from: LoginFrom = LoginFrom.DISTINGUISHED_NAME
    login_san_type: str = "dns"
    login_san_index: int = 0


_CONNECTED: ContextVar[socket.socket | None] = ContextVar("connected", default=None)


class _Handshake(ssl.SSLObject):
    """A TLS handshake that sends the client its reason of failure."""

    # OpenSSL's output and its destination; None after the handshake has succeeded.
    outgoing: ssl.MemoryBIO | None = None
    connected: socket.socket | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.outgoing is not None and self.connected is not None:
                with suppress(OSError):
                    self.connected.send(self.outgoing.read())
            raise
        self.outgoing = self.connected = None


class _Context(ssl.SSLContext):
    """A TLS context whose handshakes know their socket."""

    sslobject_class = _Handshake

    def wrap_bio(  # type: ignore[override]
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        *,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _Handshake)
        made.outgoing, made.connected = outgoing, _CONNECTED.get()
        return made


async def accept(
    connected: socket.socket,
    make_protocol: Callable[[], asyncio.BaseProtocol],
    tls: Tls | None,
    handshake_s: float,
) -> None:
    """Connect `connected` to its protocol, after a handshake if `tls` is set; OSError if that fails."""
    token = _CONNECTED.set(connected)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            make_protocol,
            connected,
            ssl=tls.context if tls else None,
            ssl_handshake_timeout=handshake_s if tls else None,
        )
    finally:
        _CONNECTED.reset(token)


class Tls:
    """A set of TLS settings, with the newest context loaded from its files."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._files = [name for name in _file_names(settings) if name]
        self._stamps = self._stamp()
        self._lists: tuple[bytes, ...] = ()
        # Each connection takes it when it is accepted. A callback of the handshake, which could exchange it,
        # would make Python print a trace for a server name that is not ASCII.
        self.context = _context(settings, self._lists)

    async def use_lists(self, lists: Sequence[bytes]) -> None:
        """Use the fetched `lists` of revoked certificates (PEM) from the next handshake on.

        Raises TlsError if the files are not usable at present: then they are used after the next reload.
        """
        self._lists = tuple(lists)
        before = self.context
        # A long list takes OpenSSL a while.
        made = await asyncio.to_thread(_context, self._settings, self._lists)
        # One that was reloaded meanwhile has the lists.
        if self.context is before:
            self.context = made

    def reload(self) -> bool:
        """Load the files again; if they are not usable, log it and keep the current context."""
        self._stamps = self._stamp()
        try:
            self.context = _context(self._settings, self._lists)
        except TlsError as error:
            logger.error("cannot reload certificates, the old ones stay in use: %s", error)
            return False
        logger.info("certificates reloaded from %s", ", ".join(self._files))
        return True

    def reload_if_changed(self) -> None:
        """Reload if a file has changed; called periodically."""
        if self._stamp() != self._stamps:
            self.reload()

    def expiries(self) -> dict[str, int]:
        """The expiry of the certificates in each file (Unix time, ms)."""
        found: dict[str, int] = {}
        for name in (self._settings.certificate_file, self._settings.authority_file):
            if name:
                with suppress(OSError, ValueError), open(name, encoding="ascii", errors="replace") as file:
                    expiry = expiry_ms(file.read())
                    if expiry is not None:
                        found[name] = expiry
        return found

    def certificate_login(self, connected: ssl.SSLObject) -> str | None:
        """The user named by the client's certificate; None without a verified certificate."""
        certificate = connected.getpeercert() if self._settings.is_peer_verified else None
        if not certificate:
            return None
        settings = self._settings
        return login_name(
            dict(certificate), settings.login_from, settings.login_san_type, settings.login_san_index
        )

    def _stamp(self) -> list[tuple[int, int, int] | None]:
        lists: list[str] = []
        with suppress(OSError):
            lists = revocation_files(self._settings.revocation_directories)
        return [_stamp(name) for name in (*self._files, *lists)]


def _file_names(settings: TlsSettings) -> tuple[str, ...]:
    return settings.certificate_file, settings.key_file, settings.authority_file


def _stamp(name: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _context(settings: TlsSettings, lists: Sequence[bytes]) -> ssl.SSLContext:
    for name in _file_names(settings):
        if name and not os.path.isfile(name):
            raise TlsError(f"file {name!r} does not exist")
    if not settings.certificate_file or not settings.key_file:
        raise TlsError(f"a TLS listener needs {settings.prefix}.certfile and {settings.prefix}.keyfile")
    if settings.is_peer_verified and not settings.authority_file:
        raise TlsError(f"{settings.prefix}.verify = verify_peer needs {settings.prefix}.cacertfile")
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.is_own_cipher_order:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    restrict(context, versions=settings.versions, ciphers=settings.ciphers, prefix=settings.prefix)
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file, settings.password)
        if settings.authority_file:
            context.load_verify_locations(settings.authority_file)
    except (ssl.SSLError, OSError) as error:
        names = ", ".join(repr(name) for name in _file_names(settings) if name)
        raise TlsError(f"cannot use {names}: {error}") from error
    if settings.revocation_check is not RevocationCheck.NONE:
        try:
            found = revocation_lists(settings.revocation_directories)
            if not (found or settings.are_lists_fetched):
                raise OSError("there is no list of revoked certificates")
            check_revocation(context, [*found, *lists], settings.revocation_check)
        except OSError as error:
            raise TlsError(f"{settings.prefix}.crl_sources: {error}") from error
    if settings.is_peer_verified:
        context.verify_mode = ssl.CERT_REQUIRED if settings.is_certificate_required else ssl.CERT_OPTIONAL
    return context


def restrict(
    context: ssl.SSLContext, *, versions: Sequence[str], ciphers: Sequence[str], prefix: str
) -> None:
    """Restrict `context` to `versions` and `ciphers`, keys below `prefix`; TlsError if no cipher is known."""
    context.minimum_version = min(_VERSIONS[name][0] for name in versions)
    context.maximum_version = max(_VERSIONS[name][0] for name in versions)
    for name, (version, exclusion) in _VERSIONS.items():
        # Only a version excluded between the two bounds needs an option.
        if context.minimum_version < version < context.maximum_version and name not in versions:
            context.options |= exclusion
    # TLS 1.3 suites have separate names, and Python cannot select among them.
    named = [name for name in ciphers if not name.startswith("TLS_")]
    if named:
        try:
            context.set_ciphers(":".join(named))
        except ssl.SSLError as error:
            raise TlsError(f"{prefix}.ciphers: no cipher of {', '.join(named)} is known") from error
