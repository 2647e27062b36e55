"""Which virtual hosts have a store on the disk: kept beside the metadata, so that one that is gone is missed.

<data>/metadata/stores   a JSON object: the digits of the directory of each virtual host, and its name

A virtual host is written here when its store has been made, and all of it was synced, before anything is
confirmed by it; it is taken out before its directory goes. So what is named here, and not found, was lost.
The catalogs of a store know its files, and are lost together with them when the whole directory is.
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
# What each store has from its first start on, and what is not known any more without it.
_PARTS = (
    (Path(CATALOG), "the catalog is missing, and with it what else of the messages may be"),
    (Path(STREAMS) / STREAM_CATALOG, "the catalog is missing, and with it what else of the streams may be"),
)


class KnownStores:
    """Those of one node."""

    def __init__(self, folder: Path, vhosts: Iterable[str]) -> None:
        """Those that are named in the directory `folder`, of `vhosts`: others are deleted."""
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

    def missing(self, name: str, path: Path, queues: Iterable[int]) -> list[StoreFileError]:
        """What is gone of the store of the virtual host `name`, whose directory is `path`, with `queues`."""
        if directory_name(name) not in self._names:
            return []
        named = tuple(sorted(queues)[:CATALOG_QUEUES_MAX])
        return [StoreFileError(file, 0, reason, queues=named) for file, reason in _missing(path)]

    def add(self, name: str) -> None:
        """The virtual host `name` has a store, all of which is synced. OSError if that cannot be written."""
        with self._lock:
            if self._names.get(directory_name(name)) != name:
                self._names[directory_name(name)] = name
                self._write()

    def forget(self, name: str) -> None:
        """The virtual host `name` is deleted."""
        with self._lock:
            if self._names.pop(directory_name(name), None) is None:
                return
            try:
                self._write()
            except OSError as error:
                logger.error("cannot write the list of known stores: %s: %s", self._path, error)

    def _write(self) -> None:
        """Have the file name them, whole or not at all."""
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
