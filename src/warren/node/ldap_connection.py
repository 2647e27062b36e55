"""One connection to an LDAP server: one request at a time, each answered before the next."""

import asyncio
import ssl
from collections.abc import Sequence

from msgspec import Struct

from warren.limits import LDAP_MESSAGE_SIZE_MAX
from warren.wire import ldap
from warren.wire.ldap import EqualityFilter, LdapEntry, LdapResult, LdapSyntaxError

# RFC 4511 §4.1.1.1: the id of unsolicited notifications, such as the notice of disconnection.
_UNASKED = 0


class LdapConnectionLost(Exception):
    """The LDAP server closed the connection, or does not speak LDAP."""


class LdapServer(Struct, frozen=True, kw_only=True):
    """The address of an LDAP server, and its use of TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    # With StartTLS, TLS begins on request instead of at once.
    uses_start_tls: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class LdapConnection:
    """An open connection; each method raises LdapConnectionLost if it ends."""

    def __init__(
        self, server: LdapServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self._reader = reader
        self._writer = writer
        self._number = 0
        # When it was last used (the loop's time, s).
        self.used_at = 0.0

    @classmethod
    async def open(cls, server: LdapServer) -> "LdapConnection":
        """Open a connection, with TLS if the server is configured with it."""
        is_tls_at_once = server.tls is not None and not server.uses_start_tls
        try:
            reader, writer = await asyncio.open_connection(
                server.host, server.port, ssl=server.tls if is_tls_at_once else None
            )
        except OSError as error:
            raise LdapConnectionLost(f"{server}: {error.strerror or error}") from error
        connection = cls(server, reader, writer)
        if server.uses_start_tls:
            await connection._start_tls()
        return connection

    @property
    def is_lost(self) -> bool:
        """True if the server has closed it."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def bind(self, name: str, password: str) -> LdapResult:
        """Bind as `name`, or anonymously."""
        return await self._asked(ldap.bind(self._next(), name, password))

    async def search(
        self, base: str, filters: Sequence[EqualityFilter], *, count_max: int, time_s_max: int
    ) -> tuple[list[str], LdapResult]:
        """Search under `base` with each of `filters`; returns the names of entries, and the result."""
        names: list[str] = []
        request = ldap.search(self._next(), base, filters, count_max=count_max, time_s_max=time_s_max)
        result = await self._asked(request, names)
        return names[:count_max], result

    def close(self) -> None:
        """Send an unbind request, and close the connection without waiting."""
        if not self._writer.is_closing():
            self._writer.write(ldap.unbind(self._next()))
        self._writer.close()

    def abort(self) -> None:
        """Close the connection at once, since its protocol state is unknown."""
        self._writer.transport.abort()

    async def _start_tls(self) -> None:
        try:
            result = await self._asked(ldap.start_tls(self._next()))
            if result.code != ldap.SUCCESS:
                raise LdapConnectionLost(f"{self.server}: no StartTLS: {result}")
            assert self.server.tls is not None
            await self._writer.start_tls(self.server.tls, server_hostname=self.server.host)
        except OSError as error:
            self.abort()
            raise LdapConnectionLost(f"{self.server}: {error.strerror or error}") from error
        except BaseException:
            self.abort()
            raise

    def _next(self) -> int:
        self._number = self._number % 2**31 + 1 if self._number < 2**31 - 1 else 1
        return self._number

    async def _asked(self, request: bytes, names: list[str] | None = None) -> LdapResult:
        """Send `request` and return its result; the names of entries before it are added to `names`."""
        try:
            self._writer.write(request)
            await self._writer.drain()
            while True:
                number, found = ldap.decoded(await self._message())
                if number == _UNASKED:
                    raise LdapConnectionLost(f"{self.server} closed the session: {found}")
                if number != self._number:
                    raise LdapSyntaxError("a response without a request")
                if isinstance(found, LdapResult):
                    return found
                if isinstance(found, LdapEntry) and names is not None:
                    names.append(found.name)
        except (OSError, EOFError) as error:
            raise LdapConnectionLost(f"{self.server} closed the connection: {error}") from error
        except LdapSyntaxError as error:
            raise LdapConnectionLost(f"{self.server} does not speak LDAP: {error}") from error

    async def _message(self) -> bytes:
        """Return the content of the next message."""
        tag, size = await self._reader.readexactly(2)
        if tag != ldap.MESSAGE:
            raise LdapSyntaxError(f"0x{tag:02x} instead of a message")
        count = ldap.length_count(size)
        if count:
            size = int.from_bytes(await self._reader.readexactly(count), "big")
        if size > LDAP_MESSAGE_SIZE_MAX:
            raise LdapSyntaxError(f"a message of {size} bytes")
        return await self._reader.readexactly(size)
