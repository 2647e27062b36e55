"""Retained streams: copies of what is published to classic and quorum queues whose policy has `retain`.

The stream is named `amq.retained.` and the name of the queue. It is declared when the policy takes effect,
receives what is routed to the queue from then on, and takes part in its confirms. It outlives the policy and
the queue; if it is deleted while the policy is in effect, it is declared anew.
"""

from collections.abc import Callable

from warren.errors import InternalError, ResourceError
from warren.limits import NAME_SIZE_MAX, REMOVAL_RETRY_MS
from warren.metadata.commands import DeclareQueue
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUEUE_TYPE
from warren.model.coroutine_driver import Later, drive
from warren.model.names import retained_by, retained_name
from warren.queues.vhost_queue import VhostQueue
from warren.routing.router import Router

_STREAM = "stream"


class RetainedStreams:
    """Connects the retained queues of one vhost with their streams."""

    __slots__ = ("_after", "_later", "_proposals", "_queues", "_requested", "_router", "_wanted")

    def __init__(
        self,
        router: Router,
        queues: dict[str, VhostQueue],
        proposals: Proposals,
        *,
        later: Later,
        after: Callable[[int, Callable[[], None]], None],
    ) -> None:
        """`after` calls an action after a number of milliseconds."""
        self._router = router
        self._queues = queues
        self._proposals = proposals
        self._later = later
        self._after = after
        # The queues that need a stream, with the homes of both, and those for which one was requested.
        self._wanted: dict[str, int] = {}
        self._requested: set[str] = set()

    def on_queue_changed(self, record: QueueRecord, queue: VhostQueue) -> None:
        """Update the stream of `queue`, which was declared or has new settings."""
        name = record.name
        if record.kind == _STREAM:
            origin = retained_by(name)
            if origin in self._wanted:
                self._router.copy_to(self._queues[origin], queue)
            return
        self._wanted.pop(name, None)
        stream = None
        if is_retained(record, queue):
            self._wanted[name] = record.home
            stream = self._queues.get(retained_name(name))
            if stream is None:
                self._request_stream(name)
        self._router.copy_to(queue, stream)

    def on_queue_deleted(self, name: str, queue: VhostQueue) -> None:
        """Disconnect `queue`, which was called `name` and is deleted."""
        self._wanted.pop(name, None)
        self._router.copy_to(queue, None)
        origin = retained_by(name)
        if origin in self._wanted:
            self._router.copy_to(self._queues[origin], None)
            self._request_stream(origin)

    def _request_stream(self, name: str) -> None:
        """Declare the stream of the queue `name` in a later turn."""
        if name not in self._requested:
            self._requested.add(name)
            self._later(lambda _: drive(self._declare(name)))

    async def _declare(self, name: str) -> None:
        self._requested.discard(name)
        home = self._wanted.get(name)
        if home is None:
            return
        vhost = self._router.vhost_name
        arguments = {QUEUE_TYPE: _STREAM}
        try:
            await self._proposals.propose(
                DeclareQueue(
                    vhost=vhost, name=retained_name(name), durable=True, arguments=arguments, home=home
                )
            )
        except (InternalError, ResourceError):
            # It cannot be written now, which was reported already.
            self._after(REMOVAL_RETRY_MS, lambda: self._request_stream(name))


def is_retained(record: QueueRecord, queue: VhostQueue) -> bool:
    """True if `queue` needs a stream; exclusive and transient queues do not."""
    return (
        queue.settings.is_retained
        and record.survives_restart
        and len(retained_name(record.name).encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX
    )
