"""Ends what an error of the broker has broken: one queue, lease or listener, and not the virtual host.

An error of the store itself is another matter: it is passed on, and ends the virtual host.
"""

from collections.abc import Callable

from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.queues.failed_queue import FailedQueue
from warren.queues.queue import Expirable, QueueHost
from warren.queues.vhost_queue import VhostQueue
from warren.routing.exchange import Binding
from warren.routing.router import Router
from warren.store.segment import StoreFileError


class FailedQueues:
    """The failures of one virtual host since its start."""

    def __init__(
        self,
        queues: dict[str, VhostQueue],
        router: Router,
        *,
        log: Callable[[str, Exception], None],
        store_failed: Callable[[Exception], None],
        ended: Callable[[VhostQueue], None],
    ) -> None:
        """`log` is called for each failure, `store_failed` with an error of the store.

        `ended` is called with each queue that has failed, before another one takes its place.
        """
        self._queues = queues
        self._router = router
        self._log = log
        self._store_failed = store_failed
        self._ended = ended
        # The number of failures.
        self.count = 0

    def end(self, host: QueueHost, name: str, error: Exception) -> None:
        """End the queue `name` of `host`, in which `error` was raised; does nothing if it has failed already.

        Its consumers are cancelled, and what clients hold of it can be settled without effect.
        """
        failed = self._queues.get(name)
        if isinstance(error, OSError | StoreFileError):
            self._store_failed(error)
        if failed is None or failed.is_deleted or isinstance(failed, FailedQueue):
            return
        self.note(f"queue '{name}' in vhost '{failed.vhost_name}' has failed and is down", error)
        substitute = FailedQueue(name, failed.vhost_name, host, failed.settings)
        substitute.owner = failed.owner
        self._queues[name] = substitute
        for binding in self._router.bindings_of(failed):
            self._router.unbind(binding)
            self._router.bind(Binding(binding.source, binding.key, binding.arguments, substitute))
        held = [
            delivery
            for holder in list(host.holders)
            for delivery in holder.held()
            if delivery.queue is failed or delivery.queue is failed.led_here()
        ]
        for delivery in held:
            delivery.move(substitute, delivery.position)
        for step in (failed.abandon, lambda: self._ended(failed)):
            try:
                step()
            except Exception as reason:
                self.note(f"the failed queue '{name}' in vhost '{failed.vhost_name}' has not ended", reason)

    def end_expirable(self, host: QueueHost, woken: Expirable, error: Exception) -> None:
        """End `woken`, which has raised `error` when its time had come."""
        name = next((name for name, queue in self._queues.items() if queue is woken), None)
        if name is not None:
            self.end(host, name, error)
        elif isinstance(woken, ConfirmListener):
            woken.failed(error)
        else:
            self.note(f"a timer ({type(woken).__name__}) has failed", error)

    def made_in_its_place(
        self, host: QueueHost, name: str, settings: QueueSettings, error: Exception
    ) -> VhostQueue:
        """The queue `name`, which could not be made because of `error`. Raises that of the store."""
        if isinstance(error, OSError | StoreFileError):
            raise error
        vhost_name = self._router.vhost_name
        self.note(f"queue '{name}' in vhost '{vhost_name}' could not be made and is down", error)
        return FailedQueue(name, vhost_name, host, settings)

    def note(self, text: str, error: Exception) -> None:
        """Log and count a failure."""
        self.count += 1
        self._log(text, error)
