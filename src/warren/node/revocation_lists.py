"""Fetches lists of revoked certificates, before the listeners start, and again before the lists end.

No handshake waits for it. A list that cannot be fetched again is used until it ends; then OpenSSL refuses
the certificates of its authority, as it does before there is a list.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from warren.limits_access import (
    REVOCATION_ADDRESSES_MAX,
    REVOCATION_FETCH_SIZE_MAX,
    REVOCATION_INTERVAL_MS_MAX,
    REVOCATION_INTERVAL_MS_MIN,
)
from warren.node.bounded_fetch import FetchFailed, fetched_signed
from warren.node.known_certificates import KnownCertificates, RevocationList, UnusableList
from warren.node.revocation_config import ListServer
from warren.node.revocation_settings import REVOCATION_SOURCES
from warren.runtime.clock import Clock
from warren.runtime.timers import PeriodicTimer
from warren.transport.tls import Tls, TlsError

logger = logging.getLogger("warren.tls")


class ListFiles(Struct, frozen=True):
    """The files with the certificates of authorities, and with those of the listener."""

    authorities: str
    own: str

    def read(self) -> KnownCertificates:
        """Read them; raises TlsError if one cannot be used."""
        try:
            return KnownCertificates(Path(self.authorities).read_bytes(), Path(self.own).read_bytes())
        except (OSError, ValueError) as error:
            raise TlsError(f"cannot use {self.authorities!r}, {self.own!r}: {error}") from error


class _Source(Struct):
    """A list on servers: what was fetched, what has failed, and when it is fetched again."""

    addresses: tuple[str, ...]
    timeout_ms: int
    found: RevocationList | None = None
    failure: str = ""
    due: int = 0


class RevocationLists:
    """The lists of one listener's TLS that come from servers."""

    def __init__(self, servers: Sequence[ListServer], files: ListFiles, tls: Tls, clock: Clock) -> None:
        self._servers = servers
        self._files = files
        self._tls = tls
        self._clock = clock
        self._sources: dict[tuple[str, ...], _Source] = {}
        # What the TLS uses.
        self._used: list[bytes] = []
        self._timer: PeriodicTimer | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch all lists once, and go on; raises TlsError if no address of a list is known."""
        await self.refresh()
        loop = asyncio.get_running_loop()
        self._timer = PeriodicTimer(loop, REVOCATION_INTERVAL_MS_MIN / 1000, self._refresh_later)

    async def stop(self) -> None:
        """Fetch nothing more."""
        if self._timer is not None:
            self._timer.stop()
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait((self._refreshing,))

    async def refresh(self) -> None:
        """Fetch the lists that are due; raises TlsError if no address of a list is known."""
        known = await asyncio.to_thread(self._files.read)
        self._find_sources(known)
        now = self._clock.now()
        due = [source for source in self._sources.values() if source.due <= now]
        await asyncio.gather(*(self._fetch(source, known) for source in due))
        lists = [source.found.pem for source in self._sources.values() if source.found is not None]
        if lists != self._used:
            await self._tls.use_lists(lists)
            self._used = lists

    def _refresh_later(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh_again())

    async def _refresh_again(self) -> None:
        try:
            await self.refresh()
        except TlsError as error:
            logger.error("lists of revoked certificates are not fetched: %s", error)

    def _find_sources(self, known: KnownCertificates) -> None:
        """Know the addresses that are configured, and those in certificates, which may have changed."""
        found: dict[tuple[str, ...], int] = {}
        for server in self._servers:
            for addresses in [(server.url,)] if server.url else known.addresses():
                found.setdefault(addresses, server.timeout_ms)
        if not found:
            raise TlsError(
                f"{REVOCATION_SOURCES.key}: no certificate in {self._files.authorities!r}, or of these"
                f" authorities in {self._files.own!r}, has the address of a list: set"
                f" {REVOCATION_SOURCES.key}.1.url"
            )
        if len(found) > REVOCATION_ADDRESSES_MAX:
            raise TlsError(f"{REVOCATION_SOURCES.key}: more than {REVOCATION_ADDRESSES_MAX} addresses")
        self._sources = {
            addresses: self._sources.get(addresses) or _Source(addresses, timeout_ms)
            for addresses, timeout_ms in found.items()
        }

    async def _fetch(self, source: _Source, known: KnownCertificates) -> None:
        """Fetch the list of `source` from the first server that has it."""
        reasons = []
        for address in source.addresses:
            try:
                data = await fetched_signed(
                    address, size_max=REVOCATION_FETCH_SIZE_MAX, timeout_ms=source.timeout_ms
                )
                found = await asyncio.to_thread(known.read, data, self._clock.now())
            except FetchFailed as error:
                reasons.append(str(error))
            except UnusableList as error:
                reasons.append(f"{address}: {error}")
            else:
                self._fetched(source, found)
                return
        self._failed(source, "; ".join(reasons))

    def _fetched(self, source: _Source, found: RevocationList) -> None:
        if source.found is None or source.failure:
            logger.info("the list of certificates that %s has revoked was fetched", found.issuer)
        now = self._clock.now()
        # Early enough for several attempts before it ends.
        pause = min(max((found.ends_at - now) // 2, REVOCATION_INTERVAL_MS_MIN), REVOCATION_INTERVAL_MS_MAX)
        source.found, source.failure, source.due = found, "", now + pause

    def _failed(self, source: _Source, reason: str) -> None:
        now, found = self._clock.now(), source.found
        source.due = now + REVOCATION_INTERVAL_MS_MIN
        if found is not None and found.ends_at > now:
            ends = datetime.fromtimestamp(found.ends_at / 1000, UTC)
            effect = f"the last one is used until it ends, at {ends:%Y-%m-%d %H:%M} UTC"
        else:
            effect = "without a current list, all certificates of its authority are refused"
        failure = f"cannot fetch a list of revoked certificates: {reason}; {effect}"
        # It is tried again every minute.
        if failure != source.failure:
            logger.warning("%s", failure)
        source.failure = failure
