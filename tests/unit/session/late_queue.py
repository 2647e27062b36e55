"""A queue whose answers come late, as those of a queue on another node do."""

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from warren.errors import AccessRefused, NotFound
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Consumer, Delivery, QueueHost
from warren.queues.queue_counts import QueueCounts

T = TypeVar("T")


class Question(Generic[T]):
    """A request to the home of the queue: `obey` executes it there, and `arrive` brings the answer."""

    def __init__(self, execute: Callable[[], T], undo: Callable[[T], None]) -> None:
        self._execute = execute
        self._undo = undo
        self._callback: Callable[[object], None] | None = None
        self._result: T | None = None
        self._error: Exception | None = None
        self._is_obeyed = self._is_there = self._is_over = False

    def obey(self) -> None:
        """Execute the request at the home of the queue, once."""
        if self._is_over or self._is_obeyed:
            return
        self._is_obeyed = True
        try:
            self._result = self._execute()
        except Exception as error:
            self._error = error

    def arrive(self) -> None:
        """Bring the answer."""
        self.obey()
        self._finish()

    def fail(self, error: Exception) -> None:
        """Answer with `error`, whatever was executed."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self._is_there = True
        if self._callback is not None and not self._is_over:
            self._callback(self)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        self._callback = callback

    def __await__(self) -> "Generator[Question[T], None, T]":
        try:
            if not self._is_there:
                yield self
        except GeneratorExit:
            if self._is_obeyed and self._error is None:
                self._undo(self._result)  # type: ignore[arg-type]
            raise
        finally:
            self._is_over = True
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class LateQueue(ClassicQueue):
    """A classic queue that answers each question when the test lets the answer arrive."""

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        super().__init__(name, vhost_name, host, settings)
        # True if it answers later.
        self.is_late = False
        self.questions: list[Question[object]] = []
        # Runs an action in a turn of its own.
        self.later: Callable[[Callable[[int], None]], None] = lambda action: action(0)
        # The publishes that were not answered yet: the listener, and the sequence.
        self._unconfirmed: list[tuple[ConfirmListener, int]] = []
        self._admitted: set[Consumer] = set()

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Publish `message`; its confirmation comes with `confirm` or `refuse` if the queue is late."""
        if self.is_late and confirmation is not None:
            confirmation.expect(sequence)
            self._unconfirmed.append((confirmation, sequence))
            confirmation = None
        return super().publish(message, confirmation, sequence)

    def confirm(self, count: int) -> None:
        """Confirm the publishes, at most `count`, that were not answered yet, the last ones first."""
        for confirmation, sequence in reversed(self._unconfirmed[:count]):
            confirmation.done(sequence, sequence)
        del self._unconfirmed[:count]

    def refuse(self) -> None:
        """Refuse the first publish that was not answered yet."""
        confirmation, sequence = self._unconfirmed.pop(0)
        confirmation.refused(sequence)

    @property
    def is_local(self) -> bool:
        return not self.is_late

    async def inspect(self) -> QueueCounts:
        return await self._ask(lambda: QueueCounts(self.message_count, self.consumer_count))

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        def take() -> tuple[Delivery, int] | None:
            delivery = self.get()
            return None if delivery is None else (delivery, self.message_count)

        def put_back(fetched: tuple[Delivery, int] | None) -> None:
            if fetched is not None:
                self.give_back(fetched[0])
                self.pump()

        fetched = await self._ask(take, put_back)
        if fetched is not None and no_ack:
            self.acknowledge(fetched[0])
        return fetched

    async def purge(self) -> int:
        return await self._ask(self.clear)

    async def admit(self, consumer: Consumer) -> None:
        def reserve() -> None:
            self.check_consumer(consumer)
            if any(consumer.is_exclusive or other.is_exclusive for other in self._admitted):
                raise AccessRefused(f"queue '{self.name}' in vhost '{self.vhost_name}' in exclusive use")
            self._admitted.add(consumer)

        await self._ask(reserve, lambda _: self._admitted.discard(consumer))

    def add_consumer(self, consumer: Consumer) -> None:
        self._admitted.discard(consumer)
        super().add_consumer(consumer)

    @property
    def admitted_count(self) -> int:
        """The number of consumers that have a place and were not added yet."""
        return len(self._admitted)

    def delete(self) -> int:
        """Delete the queue; who waits is told in a turn of its own, and publishes count as confirmed."""
        count = super().delete()
        questions, self.questions = self.questions, []
        error = NotFound(f"no queue '{self.name}' in vhost '{self.vhost_name}'")
        for question in questions:
            self.later(lambda _, question=question: question.fail(error))  # type: ignore[misc]
        if self._unconfirmed:
            self.later(lambda _: self.confirm(len(self._unconfirmed)))
        return count

    def arrive(self) -> None:
        """Let the oldest answer arrive."""
        self.questions.pop(0).arrive()

    async def _ask(self, execute: Callable[[], T], undo: Callable[[T], None] = lambda _: None) -> T:
        question = Question(execute, undo)
        if self.is_late:
            self.questions.append(question)  # type: ignore[arg-type]
        else:
            question.arrive()
        return await question
