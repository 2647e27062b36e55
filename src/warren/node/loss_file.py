"""The losses of messages with damaged or missing files, kept in a file until an operator acknowledges them.

<data>/losses   a JSON list; one object for each loss, with the fields of `management/managed.Loss`
"""

import json
import logging
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import asdict, replace

from warren.limits import LOSSES_MAX
from warren.management.managed_node import Loss
from warren.store.segment import StoreFileError

logger = logging.getLogger("warren.storage")

_NAME = "losses"
# The first and the last lost message of a stream, in the text of its store.
_OFFSETS = re.compile(r"messages from offset (\d+) to (\d+) are")


class LossFile:
    """The losses of one node, in the order in which they were found."""

    def __init__(self, folder: Path, queue_name: Callable[[str, int], str]) -> None:
        """Read the losses in `folder`; `queue_name` returns the name of a queue of a virtual host."""
        self._path = folder / _NAME
        self._queue_name = queue_name
        self._losses: list[Loss] = []
        try:
            listed = json.loads(self._path.read_text("utf-8"))
            self._losses = [Loss(**{**fields, "queues": tuple(fields["queues"])}) for fields in listed]
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            # A loss that still exists is found again; only its acknowledgement is lost with this file.
            logger.error("cannot read the record of lost messages: %s: %s", self._path, error)

    def all(self) -> list[Loss]:
        """All losses on record."""
        return list(self._losses)

    def add(self, vhost: str, errors: Iterable[StoreFileError]) -> list[Loss]:
        """Record `errors` of a virtual host; returns their losses, whether recorded before or not."""
        found = [self._loss(vhost, error) for error in errors]
        new = [loss for loss in found if not any(_is_within(loss, known) for known in self._losses)]
        if new:
            self._losses = [*self._losses, *new][-LOSSES_MAX:]
            self._write()
        return found

    def acknowledge(self, vhost: str | None) -> int:
        """Acknowledge all losses, or those of `vhost`; returns how many were not acknowledged before."""
        meant = [loss for loss in self._losses if not loss.acknowledged and vhost in (None, loss.vhost)]
        if meant:
            self._losses = [
                replace(loss, acknowledged=True) if loss in meant else loss for loss in self._losses
            ]
            self._write()
        return len(meant)

    def forget(self, vhost: str) -> None:
        """Remove the losses of the virtual host `vhost`, which was deleted."""
        kept = [loss for loss in self._losses if loss.vhost != vhost]
        if len(kept) < len(self._losses):
            self._losses = kept
            self._write()

    def _loss(self, vhost: str, error: StoreFileError) -> Loss:
        return Loss(
            vhost=vhost,
            file=error.name,
            offset=error.at,
            reason=error.reason,
            messages=error.messages,
            queues=tuple(self._queue_name(vhost, number) for number in error.queues),
        )

    def _write(self) -> None:
        """Replace the file by the present losses, atomically."""
        new = self._path.with_name(_NAME + ".new")
        try:
            with open(new, "w", encoding="utf-8", opener=_private) as file:
                json.dump([asdict(loss) for loss in self._losses], file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            logger.error("cannot write the record of lost messages: %s: %s", self._path, error)


def _is_within(loss: Loss, known: Loss) -> bool:
    """True if `loss` is `known`, or a part of it that a reader of a stream has found."""
    if replace(loss, acknowledged=known.acknowledged, messages=known.messages, queues=known.queues) == known:
        return True
    part, whole = _OFFSETS.search(loss.reason), _OFFSETS.search(known.reason)
    if part is None or whole is None or (loss.vhost, loss.queues) != (known.vhost, known.queues):
        return False
    return int(whole[1]) <= int(part[1]) and int(part[2]) <= int(whole[2])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
