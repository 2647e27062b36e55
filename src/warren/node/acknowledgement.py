"""The quarantined items that an operator has acknowledged, kept in a file in the quarantine directory.

<data>/quarantine/acknowledged   a JSON list of ids
"""

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from warren.runtime.locked_directory import make_directory

logger = logging.getLogger("warren.quarantine")

_NAME = "acknowledged"


class Acknowledgements:
    """The acknowledged items of one quarantine."""

    def __init__(self, folder: Path) -> None:
        """Read the acknowledged ids in `folder`, which need not exist yet."""
        self._path = folder / _NAME
        self._ids: frozenset[str] = frozenset()
        try:
            self._ids = frozenset(map(str, json.loads(self._path.read_text("utf-8"))))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            # Every item is reported again.
            logger.error("cannot read the acknowledged items of the quarantine: %s: %s", self._path, error)

    def has(self, id: str) -> bool:
        """True if an operator has acknowledged the item `id`."""
        return id in self._ids

    def add(self, ids: Iterable[str]) -> int:
        """Record `ids` as acknowledged; returns how many of them were not acknowledged before."""
        new = frozenset(ids) - self._ids
        if new:
            self._write(self._ids | new)
        return len(new)

    def forget(self, id: str) -> None:
        """Remove `id`, which is no longer quarantined, so that it is reported if it is quarantined again."""
        if id in self._ids:
            self._write(self._ids - {id})

    def _write(self, ids: frozenset[str]) -> None:
        """Replace the file by the present ids, atomically."""
        self._ids = ids
        new = self._path.with_name(_NAME + ".new")
        try:
            make_directory(self._path.parent)
            with open(new, "w", encoding="utf-8", opener=_private) as file:
                json.dump(sorted(ids), file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            logger.error("cannot write the acknowledged items of the quarantine: %s: %s", self._path, error)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
