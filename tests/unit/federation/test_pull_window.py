"""How many messages a federated queue takes at a time, by what its consumers do with them."""

from warren.federation.pull_window import PAUSED, PullWindow


class Queue:
    """A queue with consumers that can be given `room` more messages."""

    def __init__(self, room: int = 0, ready: int = 0, *, has_consumer: bool = True) -> None:
        self.room = room
        self.ready_count = ready
        self.is_consumed = has_consumer
        self.received = 0

    def has_consumer(self) -> bool:
        return self.is_consumed

    def is_hungry(self) -> bool:
        return self.is_consumed and not self.ready_count and self.room > 0

    def receive(self, count: int) -> None:
        self.received += count
        taken = min(self.room, count)
        self.room -= taken
        self.ready_count += count - taken

    def consume(self, count: int) -> None:
        """Acknowledge `count` messages, and take what is ready."""
        taken = min(count, self.ready_count)
        self.ready_count -= taken
        self.room += count - taken


def followed(window: PullWindow, queue: Queue) -> int:
    window.follow(queue, queue.received)
    return window.size


def grown(window: PullWindow, queue: Queue) -> None:
    """Have a fast consumer enlarge the window until it grows no more."""
    queue.room = 1_000_000
    while window.follow(queue, queue.received):
        queue.receive(window.size)


def test_nothing_is_taken_without_a_hungry_consumer() -> None:
    window = PullWindow(1000)
    assert followed(window, Queue(has_consumer=False)) == PAUSED
    assert followed(window, Queue(room=0)) == PAUSED
    assert followed(window, Queue(room=5, ready=1)) == PAUSED


def test_a_hungry_consumer_gets_one_message_first() -> None:
    assert followed(PullWindow(1000), Queue(room=10)) == 1


def test_the_window_doubles_when_all_of_it_was_taken_up_to_the_prefetch_count() -> None:
    window, queue, sizes = PullWindow(100), Queue(room=100_000), []
    for _ in range(9):
        sizes.append(followed(window, queue))
        queue.receive(window.size)
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 100, 100]


def test_the_window_does_not_grow_while_the_upstream_has_nothing() -> None:
    window, queue = PullWindow(100), Queue(room=100)
    assert [followed(window, queue) for _ in range(5)] == [1, 1, 1, 1, 1]


def test_a_slow_consumer_is_a_few_messages_behind() -> None:
    window, queue = PullWindow(1000), Queue(room=1)
    most = 0
    for turn in range(200):
        followed(window, queue)
        # The upstream always has more; the consumer takes a message in ten turns.
        queue.receive(window.size)
        most = max(most, queue.ready_count)
        if turn % 10 == 9:
            queue.consume(1)
    assert most <= 4


def test_the_window_pauses_when_more_than_it_waits_and_is_half_as_large_afterwards() -> None:
    window, queue = PullWindow(64), Queue()
    grown(window, queue)
    assert window.size == 64
    queue.room = 0
    queue.receive(64)
    assert followed(window, queue) == 64
    queue.receive(1)
    assert followed(window, queue) == PAUSED
    queue.consume(48)
    assert followed(window, queue) == PAUSED
    queue.consume(1)
    assert followed(window, queue) == 32


def test_a_small_window_waits_until_the_queue_is_empty() -> None:
    window, queue = PullWindow(8), Queue()
    grown(window, queue)
    queue.room = 0
    queue.receive(9)
    assert followed(window, queue) == PAUSED
    queue.consume(9)
    assert followed(window, queue) == PAUSED
    queue.consume(1)
    assert followed(window, queue) == 4


def test_the_end_of_the_last_consumer_pauses_at_once_and_begins_with_one_message() -> None:
    window, queue = PullWindow(64), Queue()
    grown(window, queue)
    queue.is_consumed = False
    assert followed(window, queue) == PAUSED
    queue.is_consumed = True
    assert followed(window, queue) == 1


def test_consumers_that_hold_all_they_may_do_not_pause_an_empty_queue() -> None:
    window, queue = PullWindow(64), Queue(room=1)
    followed(window, queue)
    queue.receive(1)
    assert followed(window, queue) == 1


def test_a_prefetch_count_of_zero_is_bounded_by_amqp() -> None:
    window, queue = PullWindow(0), Queue()
    grown(window, queue)
    assert window.size == 65_535


def test_a_message_that_has_come_back_ends_the_window_unless_a_consumer_could_be_given_one() -> None:
    window, queue = PullWindow(1000), Queue()
    grown(window, queue)
    assert window.follow(queue, queue.received, has_returned=True) is False
    queue.room = 0
    assert window.follow(queue, queue.received, has_returned=True) is True
    assert window.size == PAUSED
    # Nothing is ready, and nevertheless it does not continue before a consumer has room.
    assert followed(window, queue) == PAUSED
    queue.room = 1
    assert followed(window, queue) == 1
