"""The servers of one OpenID provider, as a client of logins: its description, and its token endpoint."""

import asyncio
import logging
import ssl
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from warren.access.authorization_code import (
    CodeRefused,
    ProviderEndpoints,
    ProviderTokens,
    read_error,
    read_tokens,
)
from warren.limits_access import (
    DISCOVERY_LIFETIME_MS,
    DISCOVERY_SIZE_MAX,
    PROVIDER_REQUESTS_MAX,
    PROVIDER_TIMEOUT_MS,
    TOKEN_ANSWER_SIZE_MAX,
)
from warren.management.oauth_logins import ProviderUnavailable
from warren.node.bounded_fetch import FetchFailed, fetched, is_secure, posted
from warren.runtime.clock import Clock

logger = logging.getLogger("warren.login")

_OK = 200
# Answers of a token endpoint that refuse a request (RFC 6749 §5.2).
_REFUSALS = (400, 401)
# Characters of its error in the log.
_ERROR_SHOWN = 200


class ProviderAddresses(Struct, frozen=True, kw_only=True):
    """What is configured about a provider; an address that is set replaces the one that it tells."""

    metadata_url: str
    authorization: str = ""
    token: str = ""
    end_session: str = ""


class HttpIdentityProvider:
    """One provider: its description is kept for a while, and requests to it are bounded in number."""

    def __init__(self, addresses: ProviderAddresses, tls: ssl.SSLContext, clock: Clock) -> None:
        self._addresses = addresses
        self._tls = tls
        self._clock = clock
        self._endpoints: ProviderEndpoints | None = None
        self._asks_at = 0
        self._asking: asyncio.Task[ProviderEndpoints] | None = None
        self._requests = 0

    async def endpoints(self) -> ProviderEndpoints:
        """The addresses of the provider; concurrent callers share one request. ProviderUnavailable."""
        if self._endpoints is not None and self._clock.now() < self._asks_at:
            return self._endpoints
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._discovered())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def tokens(self, form: Mapping[str, str]) -> ProviderTokens:
        """The tokens for `form`; raises CodeRefused if the provider refuses, ProviderUnavailable."""
        endpoints = await self.endpoints()
        if self._requests >= PROVIDER_REQUESTS_MAX:
            raise _unavailable(f"{endpoints.token} has not answered {self._requests} requests")
        self._requests += 1
        try:
            status, body = await posted(
                endpoints.token,
                form,
                self._tls,
                size_max=TOKEN_ANSWER_SIZE_MAX,
                timeout_ms=PROVIDER_TIMEOUT_MS,
            )
        except FetchFailed as failure:
            # Perhaps the provider has moved its token endpoint.
            self._asks_at = 0
            raise _unavailable(str(failure)) from None
        finally:
            self._requests -= 1
        if status == _OK:
            return read_tokens(body)
        if status in _REFUSALS:
            raise CodeRefused(f"{endpoints.token} answered {read_error(body)[:_ERROR_SHOWN]!r}")
        raise _unavailable(f"{endpoints.token} answered with status {status}")

    def _asked(self, asked: "asyncio.Task[ProviderEndpoints]") -> None:
        self._asking = None
        if not asked.cancelled():
            # No caller may be left waiting for it.
            asked.exception()

    async def _discovered(self) -> ProviderEndpoints:
        """Ask the provider for its description (OpenID Connect Discovery 1.0), unless nothing is missing."""
        configured = self._addresses
        told = _Description()
        if not (configured.authorization and configured.token):
            url = configured.metadata_url
            try:
                data = await fetched(
                    url, self._tls, size_max=DISCOVERY_SIZE_MAX, timeout_ms=PROVIDER_TIMEOUT_MS
                )
                told = msgspec.json.decode(data, type=_Description)
            except (FetchFailed, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as failure:
                raise _unavailable(f"{url} tells no endpoints: {failure}") from None
        found = ProviderEndpoints(
            authorization=configured.authorization or told.authorization_endpoint,
            token=configured.token or told.token_endpoint,
            end_session=configured.end_session or told.end_session_endpoint or "",
            issuer=told.issuer,
        )
        for address in (found.authorization, found.token, *filter(None, [found.end_session])):
            if not is_secure(address):
                raise _unavailable(f"{address!r} of {configured.metadata_url} is not an https address")
        self._endpoints, self._asks_at = found, self._clock.now() + DISCOVERY_LIFETIME_MS
        return found


class _Description(Struct):
    issuer: str = ""
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    end_session_endpoint: str | None = None


def _unavailable(reason: str) -> ProviderUnavailable:
    logger.warning("a login to the web interface failed: %s", reason)
    return ProviderUnavailable(reason)
