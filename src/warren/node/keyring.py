"""The keys that verify the signatures of tokens: from files, and from a key server (RFC 7517)."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

from warren.limits import KEY_SET_INTERVAL_MS, KEY_SET_KEYS_MAX, KEY_SET_SIZE_MAX, KEY_SET_TIMEOUT_MS
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
    authority_file: str = ""
    verifies_server: bool = True


class Keyring:
    """The keys of one node."""

    def __init__(self, settings: KeyringSettings, clock: Clock) -> None:
        """Read the key files; raises BootRefused for a file without a key, or an insecure key server."""
        self._settings = settings
        self._clock = clock
        self._fixed = {name: _read(Path(file)) for name, file in settings.files.items()}
        self._served: dict[str | None, Key] = {}
        self._asked_at: int | None = None
        self._asking: asyncio.Task[None] | None = None
        self._tls = _tls(settings) if settings.url else None

    async def key(self, identifier: str | None) -> Key | None:
        """Return the key with the id `identifier`, or the default key; None if there is none.

        An unknown key is requested from the key server, but not more often than every ten seconds.
        """
        name = identifier or self._settings.default or None
        found = self._known(name)
        if found is None and self._settings.url:
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
            keys = _key_set(await self._answer())
        except (aiohttp.ClientError, OSError, TimeoutError, JoseError, ValueError, TypeError) as error:
            logger.warning(
                "cannot fetch signing keys from %s: %s", self._settings.url, error or type(error).__name__
            )
            return
        self._served = keys
        logger.info("fetched %d signing keys from %s", len(keys), self._settings.url)

    async def _answer(self) -> bytes:
        timeout = aiohttp.ClientTimeout(total=KEY_SET_TIMEOUT_MS / 1000)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._settings.url, ssl=self._tls or True, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > KEY_SET_SIZE_MAX:
                    raise ValueError(f"more than {KEY_SET_SIZE_MAX} bytes")
            return bytes(data)


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


def _tls(settings: KeyringSettings) -> ssl.SSLContext | None:
    """Return the TLS context for the key server; None for one on this machine that uses plain HTTP."""
    scheme, _, rest = settings.url.partition("://")
    if scheme == "http" and _is_here(rest):
        return None
    if scheme != "https":
        raise BootRefused(f"auth_oauth2.jwks_url must be an https address, not {settings.url!r}")
    try:
        context = ssl.create_default_context(cafile=settings.authority_file or None)
    except OSError as error:
        raise BootRefused(f"cannot read CA certificates from {settings.authority_file!r}: {error}") from error
    if not settings.verifies_server:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_here(rest: str) -> bool:
    host = rest.partition("/")[0].rpartition(":")[0].strip("[]") or rest.partition("/")[0]
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
