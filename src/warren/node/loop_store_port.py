"""The port of a store to the event loop: when it commits, and what follows when it cannot."""

import asyncio
import errno
import logging
from collections.abc import Callable

from warren.flow.credit import PublishCredit
from warren.model.confirm_listener import ConfirmListener
from warren.store.disk import OnDone
from warren.store.message_store import MessageStore
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams.stream_store import StreamStore

logger = logging.getLogger("warren.storage")

# Interval at which a batch that found no room on the disk is retried.
_RETRY_S = 1.0
# How long the records of settled messages may wait to be written, unless a record follows that a client waits
# for; and what of that is too short for another timer, as timers have milliseconds.
_SETTLED_S = 0.02
_SETTLED_EARLY_S = 0.001
# Errors of a system without a free file descriptor.
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


class LoopStorePort(StorePort):
    """Commits at the end of a loop turn, retries when the disk was full, and withdraws publish credit.

    An unexpected exception ends the store.
    """

    __slots__ = (
        "_is_behind", "_is_settling", "_loop", "_name", "_on_failed", "_settle_at_s", "_when_full", "credit",
        "failure", "is_full", "is_over", "is_transient", "note_failure", "store",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        on_failed: Callable[[Exception], None],
        when_full: str,
    ) -> None:
        """`when_full` is what the log says of the virtual host `name` when the disk is full."""
        self._loop = loop
        self._name = name
        self._on_failed = on_failed
        self._when_full = when_full
        self.store: MessageStore | StreamStore | None = None
        # Of the virtual host, once it is running.
        self.credit: PublishCredit | None = None
        # Logs and counts what is no error of the store.
        self.note_failure: Callable[[str, Exception], None] | None = None
        self._is_behind = False
        # True while a delayed commit of settled messages is scheduled, and when it is due, which is later
        # after another batch.
        self._is_settling = False
        self._settle_at_s = 0.0
        # True for the store of transient messages.
        self.is_transient = False
        self.is_full = False
        # True when the store is closed or has failed: later events are ignored.
        self.is_over = False
        # The exception that ended the store.
        self.failure: Exception | None = None

    def commit_due(self) -> None:
        self._loop.call_soon(self._commit)

    def commit_due_later(self) -> None:
        self._settle_at_s = self._loop.time() + _SETTLED_S
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_later(_SETTLED_S, self._settle)

    def failed(self, error: OSError, is_full: bool) -> None:
        if not is_full:
            self._fail(error)
            return
        if not self.is_full:
            self.is_full = True
            logger.error("%s: %s: %s", missing_resource(error), self._when_full % self._name, error)
        self._loop.call_later(_RETRY_S, self._retry)

    def recovered(self) -> None:
        self.is_full = False
        logger.info("vhost '%s': messages can be written to disk again", self._name)

    def fell_behind(self) -> None:
        if self.credit is not None and not self._is_behind:
            self._is_behind = True
            self.credit.spend(for_all=self.is_transient)

    def caught_up(self) -> None:
        if self.credit is not None and self._is_behind:
            self._is_behind = False
            self.credit.renew(for_all=self.is_transient)

    def listener_failed(self, listener: ConfirmListener, error: Exception) -> None:
        if self.note_failure is None:
            raise error
        self.note_failure(f"a confirm to {type(listener).__name__} in vhost '{self._name}' has failed", error)

    def unreadable(self, error: OSError | StoreFileError) -> None:
        self._fail(error)

    def job_ended(self, done: OnDone, error: OSError | None) -> None:
        """Pass the end of a job of the disk to `done`, unless the store has ended."""
        if self.is_over:
            return
        try:
            done(error)
        except Exception as unexpected:
            self._fail(unexpected)

    def _commit(self) -> None:
        store = self.store
        assert store is not None
        if self.is_over:
            return
        try:
            store.commit()
        except Exception as error:
            self._fail(error)

    def _settle(self) -> None:
        left_s = self._settle_at_s - self._loop.time()
        if left_s > _SETTLED_EARLY_S:
            self._loop.call_later(left_s, self._settle)
            return
        self._is_settling = False
        self._commit()

    def _retry(self) -> None:
        store = self.store
        assert store is not None
        if self.is_over:
            return
        try:
            store.retry()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self.is_over:
            self.is_over = True
            self.failure = error
            self._on_failed(error)


def missing_resource(error: OSError) -> str:
    """Return the resource that is exhausted: disk space or file descriptors."""
    return "no free file descriptors" if error.errno in _NO_DESCRIPTOR else "the disk is full"
