"""The keys that verify the signatures of tokens: from files, and from a key server (RFC 7517).

The address of the key server is configured, or told by an OpenID provider (OpenID Connect Discovery 1.0).
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

from warren.limits import (
    KEY_SET_INTERVAL_MS,
    KEY_SET_KEYS_MAX,
    KEY_SET_SIZE_MAX,
    KEY_SET_TIMEOUT_MS,
)
from warren.limits_access import DISCOVERY_LIFETIME_MS, DISCOVERY_SIZE_MAX
from warren.node.bounded_fetch import FetchFailed, checked_url, fetched, verifying_context
from warren.node.errors import BootRefused
from warren.runtime.clock import Clock

logger = logging.getLogger("warren.tokens")

_PEM = "-----BEGIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyringSettings:
    """The sources of keys."""

    # PEM files by the ids of their keys.
    files: Mapping[str, str] = field(default_factory=dict)
    # The id of the key for tokens that name no key.
    default: str = ""
    url: str = ""
    # Where the provider tells the address of its key set, if `url` is empty.
    discovery_url: str = ""
    authority_file: str = ""
    verifies_server: bool = True


class Keyring:
    """The keys of one provider."""

    def __init__(self, settings: KeyringSettings, clock: Clock) -> None:
        """Read the key files; raises BootRefused for a file without a key, or an insecure key server."""
        self._settings = settings
        self._clock = clock
        self._fixed = {name: _read(Path(file)) for name, file in settings.files.items()}
        self._served: dict[str | None, Key] = {}
        self._asked_at: int | None = None
        self._asking: asyncio.Task[None] | None = None
        # What the provider has told, and when it is asked again (ms).
        self._discovered = ""
        self._discovers_at = 0
        self._has_server = bool(settings.url or settings.discovery_url)
        checked_url("auth_oauth2.jwks_url", settings.url)
        checked_url("auth_oauth2.issuer", settings.discovery_url)
        self._tls: ssl.SSLContext | None = None
        if self._has_server:
            self._tls = verifying_context(settings.authority_file, is_verified=settings.verifies_server)

    async def key(self, identifier: str | None) -> Key | None:
        """Return the key with the id `identifier`, or the default key; None if there is none.

        An unknown key is requested from the key server, but not more often than every ten seconds.
        """
        name = identifier or self._settings.default or None
        found = self._known(name)
        if found is None and self._has_server:
            await self._ask()
            found = self._known(name)
        return found

    def _known(self, name: str | None) -> Key | None:
        return (self._fixed.get(name) if name is not None else None) or self._served.get(name)

    async def _ask(self) -> None:
        """Fetch the current keys; concurrent callers share one request."""
        now = self._clock.now()
        if self._asking is None:
            if self._asked_at is not None and now - self._asked_at < KEY_SET_INTERVAL_MS:
                return
            self._asked_at = now
            self._asking = asyncio.get_running_loop().create_task(self._fetch())
            self._asking.add_done_callback(self._asked)
        await asyncio.shield(self._asking)

    def _asked(self, _: object) -> None:
        self._asking = None

    async def _fetch(self) -> None:
        try:
            url = self._settings.url or await self._key_set_url()
            keys = _key_set(await self._answer(url, KEY_SET_SIZE_MAX))
        except (FetchFailed, JoseError, ValueError, TypeError, RecursionError) as error:
            # Perhaps the provider has moved its key set.
            self._discovers_at = 0
            logger.warning("cannot fetch signing keys: %s", error)
            return
        self._served = keys
        logger.info("fetched %d signing keys from %s", len(keys), url)

    async def _key_set_url(self) -> str:
        """The address of the key set, as the provider has told within the last hour."""
        now = self._clock.now()
        if now >= self._discovers_at:
            source = self._settings.discovery_url
            document = msgspec.json.decode(await self._answer(source, DISCOVERY_SIZE_MAX))
            url = document.get("jwks_uri") if isinstance(document, dict) else None
            if not isinstance(url, str):
                raise ValueError(f"{source} tells no jwks_uri")
            self._discovered, self._discovers_at = url, now + DISCOVERY_LIFETIME_MS
        return self._discovered

    async def _answer(self, url: str, size_max: int) -> bytes:
        assert self._tls is not None
        return await fetched(url, self._tls, size_max=size_max, timeout_ms=KEY_SET_TIMEOUT_MS)


def _key_set(data: bytes) -> dict[str | None, Key]:
    """Return the keys of a key set by id; if there is only one key, it is also the default key."""
    document = msgspec.json.decode(data)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it contains no list of keys")
    keys = [key for key in map(_known_key, listed[:KEY_SET_KEYS_MAX]) if key is not None]
    if not keys:
        raise ValueError("it contains no key of a supported type")
    found: dict[str | None, Key] = {key.kid: key for key in KeySet(keys).keys}
    if len(found) == 1:
        found[None] = next(iter(found.values()))
    return found


def _known_key(described: object) -> Key | None:
    """Return the key that an entry of a key set describes; None if it is not usable (RFC 7517 §5)."""
    try:
        return import_key(described) if isinstance(described, dict) else None
    except (JoseError, ValueError, TypeError, KeyError):
        # joserfc raises KeyError for a curve that it does not know.
        return None


def _read(path: Path) -> Key:
    try:
        text = path.read_text().strip()
        if not text.startswith(_PEM):
            raise ValueError("not PEM")
        for kind in ("RSA", "EC", "OKP"):
            try:
                return import_key(text, kind)
            except (JoseError, ValueError, TypeError):
                continue
        raise ValueError("neither RSA nor EC nor EdDSA")
    except (OSError, ValueError) as error:
        raise BootRefused(f"cannot read a public key from {str(path)!r}: {error}") from error
