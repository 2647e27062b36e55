"""What a coroutine of a remote queue waits for: the answer of its home."""

from collections.abc import Callable
from typing import TypeAlias

from warren.client.answer import Answer
from warren.cluster.queue_traffic import QueueTraffic
from warren.errors import AmqpError
from warren.queues.queue import Delivery

# The numbers of an answer, or a delivery with the number of messages behind it.
HomeAnswer: TypeAlias = "tuple[int, int, int] | tuple[Delivery, int]"


class HomeRequest(Answer[HomeAnswer]):
    """A request to the home of a queue; it may be withdrawn before it is answered."""

    __slots__ = ("delivery", "id", "kind", "traffic", "undo")

    def __init__(self, id: int, kind: int, traffic: QueueTraffic | None) -> None:
        """`kind` is that of the item that asks; without `traffic` it is not about a queue."""
        super().__init__()
        self.id = id
        self.kind = kind
        self.traffic = traffic
        # What the leader of a quorum queue has sent before its answer to GET.
        self.delivery: Delivery | None = None
        # Called with the answer instead of completing; None unless it was withdrawn.
        self.undo: Callable[[HomeAnswer], None] | None = None

    def answer(self, value: HomeAnswer) -> None:
        """Continue with `value`, or undo what it says was done."""
        if self.undo is None:
            self.complete(value)
        else:
            self.undo(value)


def fail(request: HomeRequest, error: AmqpError, now: int) -> None:
    """Raise `error` in who waits for `request`, in a turn of its own."""
    request.fail(error)


def ignore(answer: HomeAnswer) -> None:
    """Undo nothing: nobody waits for the answer any more."""
