"""The metadata of a node with a data directory: read at the start, kept from then on."""

import asyncio
import logging
from pathlib import Path

from warren.journal.journal import Journal, JournalWorld
from warren.journal.page import NAME, PageError
from warren.journal.recovery import recover
from warren.metadata.machine import Metadata
from warren.node.refusal import BootRefused
from warren.runtime.clock import Clock
from warren.runtime.disk import DirectoryDisk
from warren.runtime.folder import make_folder
from warren.runtime.randomness import random_octets
from warren.runtime.worker import Worker

logger = logging.getLogger("warren.journal")

_NAME = "metadata"


class Journaling:
    """The metadata in a directory, and the journal by which it changes."""

    def __init__(self, data: Path, clock: Clock, *, is_damage_skipped: bool) -> None:
        """Read what is there; BootRefused if that cannot be done, or not without loss."""
        self._path = data / _NAME
        loop = asyncio.get_running_loop()
        self._worker = Worker(_NAME)
        self.metadata = Metadata()
        try:
            make_folder(self._path)
            self._disk = DirectoryDisk(self._path, loop, self._worker)
            # True if nothing was ever written here.
            self.is_new = NAME not in self._disk.names()
            damage = recover(self._disk, self.metadata)
        except PageError as error:
            raise BootRefused(f"metadata in {str(self._path)!r}: {error}") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise BootRefused(f"cannot read the metadata in {str(self._path)!r}: {reason}") from error
        self._judge(damage, is_damage_skipped=is_damage_skipped)
        # True if something that existed may be missing.
        self.is_damaged = bool(damage)
        self.journal = Journal(
            self.metadata,
            self._disk,
            JournalWorld(
                now=clock.now,
                random_octets=random_octets,
                make_answer=loop.create_future,
                report=self._report,
            ),
        )

    async def close(self) -> None:
        """Have everything on the disk, and let go of it."""
        ended = asyncio.get_running_loop().create_future()
        self.journal.close(lambda: ended.set_result(None))
        await ended
        self._worker.close()
        self._disk.close()

    def _judge(self, damage: list[PageError], *, is_damage_skipped: bool) -> None:
        for error in damage:
            logger.error("metadata in %r: %s", str(self._path), error)
        if damage and not is_damage_skipped:
            raise BootRefused(
                f"metadata in {str(self._path)!r}: {damage[0]}, and {len(damage) - 1} more; "
                "metadata.skip_damage = true starts without what cannot be read"
            )

    def _report(self, error: OSError | None) -> None:
        if error is None:
            logger.warning("the metadata can be written again")
        else:
            logger.critical(
                "cannot write the metadata: %s; nothing that survives a restart can be changed until it can",
                error.strerror or error,
            )
