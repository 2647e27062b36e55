"""The sessions of the web interface, kept over restarts in a file that only its owner can read.

    <data>/sessions │ "WRNSES" │ version u16 │ basis, 32 bytes │ sessions, JSON │ checksum u32 │

The checksum is CRC32C over all before it. The JSON is a list with an object for each session, with the fields
of `management/sessions.StoredSession`; tokens and passwords are stored as digests only. The basis is a
digest of the settings that decide who may log in with a password: if they change, all sessions end.

The file is replaced atomically. If it cannot be read, or has a newer format, all sessions end, and it is kept
as `sessions.unreadable`, which is never read. If it cannot be replaced it is removed, so that no restart
restores a session that has ended.
"""

import asyncio
import logging
from hashlib import blake2b
from pathlib import Path

import msgspec
from google_crc32c import value as checksum_of

from warren.management.web_sessions import StoredWebSession, WebSessions
from warren.metadata.events import Event, UserChanged, UserRemoved
from warren.metadata.machine import Metadata
from warren.node import settings
from warren.node.config import Config
from warren.runtime.private_file import replace_private_file, sync_directory

logger = logging.getLogger("warren.sessions")

_NAME = "sessions"
_UNREADABLE = "sessions.unreadable"
_MAGIC = b"WRNSES"
_VERSION = 1
_BASIS_SIZE = 32
_PREFIX = _MAGIC + _VERSION.to_bytes(2, "big")
_HEAD_SIZE = len(_PREFIX) + _BASIS_SIZE
_CHECKSUM_SIZE = 4


class SessionFileError(Exception):
    """The sessions cannot be read; the message contains the reason."""


class SessionFile:
    """The session file of one data directory."""

    def __init__(self, folder: Path, basis: bytes) -> None:
        """`basis` is the digest of the current settings, see `basis_of`."""
        self._path = folder / _NAME
        self._head = _PREFIX + basis

    def read(self) -> list[StoredWebSession]:
        """Return the sessions written with equal settings. Raises SessionFileError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SessionFileError(error.strerror) from error
        if not data.startswith(_MAGIC) or len(data) < _HEAD_SIZE + _CHECKSUM_SIZE:
            raise SessionFileError("the file is damaged")
        version = int.from_bytes(data[len(_MAGIC) : len(_PREFIX)], "big")
        if version > _VERSION:
            raise SessionFileError(f"format {version} is newer than {_VERSION}")
        content, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
        if checksum_of(content) != int.from_bytes(checksum, "big"):
            raise SessionFileError("the file is damaged")
        if not content.startswith(self._head):
            logger.info("all sessions of the web interface ended: the authentication settings were changed")
            return []
        try:
            return msgspec.json.decode(content[_HEAD_SIZE:], type=list[StoredWebSession])
        except msgspec.DecodeError as error:
            raise SessionFileError("the file is damaged") from error

    def set_aside(self) -> None:
        """Rename an unreadable file, so that the next write does not replace it."""
        try:
            self._path.replace(self._path.with_name(_UNREADABLE))
        except OSError as error:
            logger.error("cannot rename %s to '%s': %s", self._path, _UNREADABLE, error.strerror)

    async def write(self, sessions: list[StoredWebSession]) -> None:
        """Replace the file by `sessions`, and sync it; a failure is logged."""
        try:
            await asyncio.to_thread(self._write, sessions)
        except OSError as error:
            logger.error(
                "cannot save the sessions of the web interface, a restart will end them: %s: %s",
                self._path,
                error.strerror,
            )

    def _write(self, sessions: list[StoredWebSession]) -> None:
        content = self._head + msgspec.json.encode(sessions)
        try:
            replace_private_file(self._path, content + checksum_of(content).to_bytes(_CHECKSUM_SIZE, "big"))
        except OSError:
            self._path.unlink(missing_ok=True)
            sync_directory(self._path.parent)
            raise


def restore_sessions(sessions: WebSessions, folder: Path, config: Config, metadata: Metadata) -> None:
    """Restore the sessions in `folder` into `sessions`, and write the file at each change from now on."""
    file = SessionFile(folder, basis_of(config))
    try:
        stored = file.read()
    except SessionFileError as error:
        logger.warning(
            "all sessions of the web interface ended: cannot read %s: %s; it is kept as '%s'",
            folder / _NAME,
            error,
            _UNREADABLE,
        )
        file.set_aside()
        stored = []
    sessions.restore(stored, metadata.users.by_name, file.write)

    def changed(event: Event) -> None:
        assert isinstance(event, UserChanged | UserRemoved)
        sessions.user_changed(event.user, metadata.users.by_name.get(event.user))

    metadata.listen(changed, (UserChanged, UserRemoved))


def basis_of(config: Config) -> bytes:
    """Return a digest of the settings that decide who may log in with a password."""
    said = (
        sorted((number, str(source)) for number, source in config.family(settings.BACKENDS).items()),
        str(config.get(settings.CACHED_BACKEND)),
        sorted(config.family(settings.LOOPBACK_USERS).items()),
    )
    return blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=_BASIS_SIZE).digest()
