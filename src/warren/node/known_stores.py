"""The virtual hosts that have a store on the disk, recorded beside the metadata to detect missing stores.

<data>/metadata/stores   a JSON object: the name of each virtual host by its directory name

A virtual host is added after its store has been created and synced, before the store confirms anything, and
removed before its directory is deleted. So a store that is listed here and not found was lost. The
catalogs of a store list its files, but are lost together with them if the whole directory is.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from warren.limits import CATALOG_QUEUES_MAX
from warren.node.vhost_folders import STREAMS, directory_name
from warren.store.recovery import CATALOG
from warren.store.segment import StoreFileError
from warren.store.streams.recovery import CATALOG as STREAM_CATALOG

logger = logging.getLogger("warren.storage")

_FILE = "stores"
# Files that each store has from its first start on; a store without one of them has lost data.
_PARTS = (
    (Path(CATALOG), "the catalog is missing, and other files of the message store may be missing too"),
    (
        Path(STREAMS) / STREAM_CATALOG,
        "the catalog is missing, and other files of the streams may be missing too",
    ),
)


class KnownStores:
    """The known stores of one node."""

    def __init__(self, folder: Path, vhosts: Iterable[str]) -> None:
        """Read the record in the directory `folder`; virtual hosts that are not in `vhosts` were deleted."""
        self._path = folder / _FILE
        # Stores are opened in threads of their own, several at once.
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        known = {directory_name(name) for name in vhosts}
        try:
            listed = json.loads(self._path.read_text("utf-8"))
            self._names = {digits: str(name) for digits, name in dict(listed).items() if digits in known}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, RecursionError) as error:
            logger.error("cannot read the list of known stores: %s: %s", self._path, error)

    def has(self, name: str) -> bool:
        """True if the virtual host `name` has had a store."""
        return directory_name(name) in self._names

    def missing(self, name: str, path: Path, queues: Iterable[int]) -> list[StoreFileError]:
        """Return what is missing of the store of the virtual host `name` in `path`, which has `queues`."""
        if not self.has(name):
            return []
        named = tuple(sorted(queues)[:CATALOG_QUEUES_MAX])
        return [StoreFileError(file, 0, reason, queues=named) for file, reason in _missing(path)]

    def add(self, name: str) -> None:
        """Record that the store of the virtual host `name` exists and is synced. Raises OSError."""
        with self._lock:
            if self._names.get(directory_name(name)) != name:
                self._names[directory_name(name)] = name
                try:
                    self._write()
                except OSError:
                    # The next call writes it.
                    del self._names[directory_name(name)]
                    raise

    def forget(self, name: str) -> None:
        """Remove the virtual host `name`, which was deleted."""
        with self._lock:
            if self._names.pop(directory_name(name), None) is None:
                return
            try:
                self._write()
            except OSError as error:
                logger.error("cannot write the list of known stores: %s: %s", self._path, error)

    def _write(self) -> None:
        """Replace the file by the present record, atomically."""
        new = self._path.with_name(f"{_FILE}.new")
        with open(new, "w", encoding="utf-8", opener=_private) as file:
            json.dump(self._names, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _missing(path: Path) -> Iterator[tuple[str, str]]:
    if not path.exists():
        yield path.name, "the directory of the virtual host is missing"
        return
    for part, reason in _PARTS:
        if not (path / part).exists():
            yield str(part), reason


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
