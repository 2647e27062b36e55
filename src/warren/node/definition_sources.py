"""Definitions that are imported at a start: from files, and from an HTTPS address."""

import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from warren.limits_http import DEFINITIONS_TIMEOUT_MS, HTTP_BODY_SIZE_MAX, JSON_DEPTH_MAX
from warren.metadata.commands import Json
from warren.model.nesting import is_deeper
from warren.node import definition_settings as settings
from warren.node.config import Config
from warren.node.errors import BootRefused

logger = logging.getLogger("warren.broker")


class DefinitionSource(Struct, frozen=True):
    """One document of definitions: its name for the log, and how it is read."""

    name: str
    read: Callable[[], Awaitable[bytes]]

    async def document(self) -> Json:
        """Read the document; raises BootRefused if it cannot be had or is not JSON."""
        try:
            document = json.loads(await self.read())
        except OSError as error:
            raise BootRefused(f"{self.name}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise BootRefused(f"{self.name} is not JSON: {error}") from error
        if is_deeper(document, JSON_DEPTH_MAX):
            raise BootRefused(f"{self.name}: it is nested more than {JSON_DEPTH_MAX} levels deep")
        return document


def definition_sources(config: Config) -> list[DefinitionSource] | None:
    """The documents to import, in order; None if none are configured. BootRefused for an unusable address."""
    url, is_remote = config.get(settings.URL), config.get(settings.BACKEND) == settings.HTTPS
    if is_remote and not url:
        raise BootRefused("definitions.https.url is not set, but definitions.import_backend is https")
    if url and not is_remote:
        logger.warning("definitions.https.url is not used without definitions.import_backend = https")
    name = config.get(settings.FILES) or config.get(settings.FILES_PATH) or config.get(settings.FILES_OLD)
    if not name and not is_remote:
        return None
    found = [
        DefinitionSource(f"definitions file {str(file)!r}", partial(_read, file))
        for file in (_files(Path(name)) if name else ())
    ]
    if is_remote:
        found.append(DefinitionSource(f"definitions at {url}", partial(_fetch, config, url)))
    return found


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


async def _read(file: Path) -> bytes:
    return file.read_bytes()


async def _fetch(config: Config, url: str) -> bytes:
    # The client of HTTP is loaded only by brokers that use it (decision 0194).
    from warren.node.bounded_fetch import FetchFailed, checked_url, fetched, verifying_context

    context = verifying_context(config.get(settings.AUTHORITY_FILE), is_verified=config.get(settings.VERIFY))
    certificate = config.get(settings.CERTIFICATE_FILE)
    try:
        if certificate:
            context.load_cert_chain(
                certificate, config.get(settings.KEY_FILE) or None, config.get(settings.KEY_PASSWORD) or None
            )
    except OSError as error:
        raise BootRefused(f"definitions.tls: {error}") from error
    address = checked_url(settings.URL.key, url)
    try:
        return await fetched(address, context, size_max=HTTP_BODY_SIZE_MAX, timeout_ms=DEFINITIONS_TIMEOUT_MS)
    except FetchFailed as error:
        raise BootRefused(f"definitions cannot be fetched: {error}") from error
