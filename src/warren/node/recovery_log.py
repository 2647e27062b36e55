"""What the log says while a store is recovered and read."""

import logging
import time

from warren.limits import STREAM_DAMAGE_LOGGED_MAX
from warren.node.loss_file import LossFile
from warren.store.segment import StoreFileError

logger = logging.getLogger("warren.storage")

# Interval of progress messages during a long recovery.
_PROGRESS_S = 1.0


class StreamDamageLog:
    """Logs unreadable parts of streams, once for each place, however many readers find it."""

    def __init__(self, name: str, losses: LossFile | None = None) -> None:
        self._name = name
        self._losses = losses
        self._told: set[str] = set()

    def report(self, error: OSError | StoreFileError) -> None:
        """Log `error`, and record the loss."""
        if self._losses is not None and isinstance(error, StoreFileError) and str(error) not in self._told:
            self._losses.add(self._name, [error])
        text = str(error)
        if text not in self._told and len(self._told) < STREAM_DAMAGE_LOGGED_MAX:
            self._told.add(text)
            logger.error(
                "vhost '%s': a stream is damaged, readers skip the damaged messages: %s", self._name, text
            )


class RecoveryProgress:
    """Logs the progress of a recovery that takes long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = time.monotonic()

    def tell(self, read: int, total: int) -> None:
        """Log that `read` of `total` bytes are read, if it is time."""
        now = time.monotonic()
        if now - self._told >= _PROGRESS_S:
            self._told = now
            logger.info("vhost '%s': recovering, %d of %d MiB read", self._name, read >> 20, total >> 20)
