"""Payloads that wait until this node has applied the metadata that their sender had applied.

While one waits, those behind it wait as well. Events of the metadata and a timer continue it: when the time
is over, the first payload is handled without waiting any longer.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from warren.cluster.payload_reader import PayloadReader
from warren.cluster.remote_codec import MalformedPayload
from warren.limits_cluster import REMOTE_PARKED_MAX, REMOTE_PARKED_MS_MAX, REMOTE_PARKED_SIZE_MAX
from warren.metadata.events import Event
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later


class ParkingDependencies(Struct, frozen=True, kw_only=True):
    """What the wait for metadata needs."""

    metadata: Metadata
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # Called with the reason if a payload that has waited is malformed.
    end_session: Callable[[str], None]


class ParkedPayloads:
    """Payloads in order; the first one of those that wait was read in part."""

    __slots__ = ("_dependencies", "_handle", "_is_listening", "_is_over", "_payloads", "_size", "_wait")

    def __init__(
        self, handle: Callable[[PayloadReader, bool], bool], dependencies: ParkingDependencies
    ) -> None:
        """`handle` handles a payload; it returns False if it must wait, unless it is said to be final."""
        self._handle = handle
        self._dependencies = dependencies
        self._payloads: deque[PayloadReader] = deque()
        # In bytes.
        self._size = 0
        # The number of the wait for metadata, and whether their events are heard.
        self._wait = 0
        self._is_listening = False
        self._is_over = False

    def __len__(self) -> int:
        return len(self._payloads)

    def received(self, reader: PayloadReader) -> None:
        """Handle a payload, or have it wait. Raises MalformedPayload."""
        if not self._payloads:
            if not self._handle(reader, False):
                self._park(reader)
            return
        self._add(reader)
        if len(self._payloads) > REMOTE_PARKED_MAX or self._size > REMOTE_PARKED_SIZE_MAX:
            self._retry(is_final=True)

    def try_again(self) -> None:
        """Handle in a later turn what need not wait any longer."""
        self._dependencies.later(self._retried)

    def end(self) -> None:
        """Forget all that waits."""
        self._is_over = True
        self._stop_listening()
        self._payloads.clear()

    # --- private --------------------------------------------------------------------------------------

    def _add(self, reader: PayloadReader) -> None:
        self._payloads.append(reader)
        self._size += reader.size

    def _park(self, reader: PayloadReader) -> None:
        self._add(reader)
        if not self._is_listening:
            self._is_listening = True
            self._dependencies.metadata.listen(self._on_event)
        self._begin_wait()

    def _begin_wait(self) -> None:
        self._wait += 1
        self._dependencies.after(REMOTE_PARKED_MS_MAX, partial(self._end_wait, self._wait))

    def _on_event(self, event: Event) -> None:
        self.try_again()

    def _retried(self, now: int) -> None:
        self._retry_alone(is_final=False)

    def _end_wait(self, wait: int) -> None:
        """The first payload has waited long enough, if it is still that of number `wait`."""
        if wait == self._wait:
            self._retry_alone(is_final=True)

    def _retry_alone(self, *, is_final: bool) -> None:
        if self._payloads and not self._is_over:
            try:
                self._retry(is_final=is_final)
            except MalformedPayload as error:
                self._dependencies.end_session(str(error))

    def _retry(self, *, is_final: bool) -> None:
        """Handle the payloads, of which the first one waits no longer if `is_final`."""
        count = len(self._payloads)
        while self._payloads:
            if not self._handle(self._payloads[0], is_final):
                if len(self._payloads) < count:
                    self._begin_wait()
                return
            if self._payloads:
                self._size -= self._payloads.popleft().size
            is_final = False
        self._stop_listening()

    def _stop_listening(self) -> None:
        self._wait += 1
        if self._is_listening:
            self._is_listening = False
            self._dependencies.metadata.ignore(self._on_event)
