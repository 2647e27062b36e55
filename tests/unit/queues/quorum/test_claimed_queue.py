"""What others publish to a quorum queue, and what they hold of it, before and after it is opened again."""

import pytest
from tests.unit.queues.quorum.followers import Follower, message
from tests.unit.queues.samples import Host, Reader

from warren.errors import NotFound
from warren.model.arguments import Overflow, QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.coroutine_driver import drive
from warren.queues.queue import ACCEPTED, REFUSED, Delivery, Expirable
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.claimed_queue import REPEATED, ClaimedQueue
from warren.queues.quorum.claims import Claims
from warren.queues.quorum.raft_storage import ALONE

OTHER = Enqueuer(2, 5)


class KeepingHost(Host):
    """A host of queues with dead letters."""

    def retry_dead_letters(self, waiting: Expirable, when: int) -> None:
        """Nothing waits."""


class Told(ConfirmListener):
    """Notes which publishes are safe."""

    def __init__(self) -> None:
        self.expected: list[int] = []
        self.safe: list[int] = []

    def expect(self, sequence: int) -> None:
        self.expected.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.safe += range(first, last + 1)


def opened(**settings: object) -> Follower:
    """A queue that is alone, open."""
    queue = Follower(settings=QueueSettings(priority_max=9, **settings), configuration=ALONE)  # type: ignore[arg-type]
    queue.write()
    assert queue.queue.is_restored
    return queue


def publish(one: Follower, number: int, told: Told, enqueuer: Enqueuer = OTHER, *, level: int = 0) -> int:
    sent = message(b"m%d" % number, level)
    return one.queue.publish_as(sent, told, number, enqueuer=enqueuer, number=number)


def restart(one: Follower) -> None:
    """Lose power, and open what is on the disk."""
    one.disk.lose_power()
    one.open()


def taken(one: Follower) -> Delivery:
    """The first message, as basic.get gets it."""
    found: list[tuple[Delivery, int] | None] = []

    async def fetch() -> None:
        found.append(await one.queue.fetch(False))

    drive(fetch())
    one.write()
    [fetched] = found
    assert fetched is not None
    return fetched[0]


def ready(one: Follower) -> list[bytes]:
    return [peeked.message.body for peeked in one.queue.peek(0, 100)]


def test_a_repeat_is_confirmed_with_its_first_copy_and_not_stored_again() -> None:
    one, told, again = opened(), Told(), Told()
    assert [publish(one, number, told) for number in (1, 2)] == [ACCEPTED, ACCEPTED]
    assert publish(one, 2, again) == ACCEPTED
    assert (told.safe, again.safe) == ([], [])
    one.write()
    assert (told.safe, again.safe) == ([1, 2], [2])
    assert publish(one, 1, again) == ACCEPTED | REPEATED
    assert again.expected == [2]
    assert ready(one) == [b"m1", b"m2"]


def test_a_repeat_is_known_to_the_next_leader() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    one.write()
    restart(one)
    one.write()
    assert one.queue.last_number(OTHER) == 1
    assert publish(one, 1, told) == ACCEPTED | REPEATED
    assert publish(one, 2, told) == ACCEPTED
    one.write()
    assert ready(one) == [b"m1", b"m2"]


def test_what_no_leader_has_written_is_new_to_the_next_one() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    restart(one)
    one.write()
    assert publish(one, 1, told) == ACCEPTED
    one.write()
    assert ready(one) == [b"m1"]
    assert told.safe == [1]


def test_a_number_that_is_left_out_is_an_error() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    with pytest.raises(ValueError, match=r"message 3 of .* follows 1"):
        publish(one, 3, told)


def test_a_full_queue_refuses_and_the_number_remains_free() -> None:
    one, told = opened(length_max=1, overflow=Overflow.REJECT_PUBLISH), Told()
    assert [publish(one, number, told) for number in (1, 2)] == [ACCEPTED, REFUSED]
    one.write()
    assert one.queue.last_number(OTHER) == 1
    one.queue.clear()
    one.write()
    assert publish(one, 2, told) == ACCEPTED


def test_a_queue_that_is_not_open_refuses() -> None:
    one = Follower(configuration=ALONE)
    assert publish(one, 1, Told()) == REFUSED


def test_the_numbers_of_earlier_runs_of_a_node_are_forgotten() -> None:
    one, told = opened(), Told()
    for enqueuer in (OTHER, Enqueuer(3, 1)):
        publish(one, 1, told, enqueuer)
    one.write()
    later = Enqueuer(2, 6)
    one.queue.forget_runs_before(later)
    assert publish(one, 1, told, later) == ACCEPTED
    one.write()
    assert one.group.machine.enqueuers() == [later, Enqueuer(3, 1)]


def test_own_messages_have_numbers_of_their_own() -> None:
    one, told = opened(), Told()
    own = one.group.proposals.enqueuer
    one.queue.publish(message(b"a"), told, 1)
    assert one.queue.last_number(own) == 1
    assert publish(one, 1, told, own) == ACCEPTED
    assert publish(one, 2, told, own) == ACCEPTED
    one.write()
    assert ready(one) == [b"a", b"m2"]


@pytest.mark.parametrize("level", [0, 3])
def test_what_is_claimed_is_not_ready_and_does_not_count_as_delivered_again(level: int) -> None:
    one, told = opened(), Told()
    for number in (1, 2):
        publish(one, number, told, level=level)
    one.write()
    place = one.queue.group_place(taken(one))
    assert place == level << 56
    restart(one)
    one.write()
    claimed = one.queue.claim(place)
    assert claimed is not None
    assert (claimed.message.body, claimed.attempts, one.queue.unacked_count) == (b"m1", 0, 1)
    assert one.queue.claim(place) is None
    assert ready(one) == [b"m2"]
    one.queue.acknowledge(claimed)
    one.write()
    restart(one)
    one.write()
    assert one.queue.claim(place) is None
    assert ready(one) == [b"m2"]


def test_what_was_never_handed_out_cannot_be_claimed() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    one.write()
    assert one.queue.claim(0) is None
    assert ready(one) == [b"m1"]


def test_what_came_back_is_claimed_with_its_attempts() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    one.write()
    one.queue.requeue(taken(one))
    again = taken(one)
    assert again.attempts == 1
    restart(one)
    one.write()
    claimed = one.queue.claim(0)
    assert claimed is not None
    assert claimed.attempts == 1


def test_nothing_is_handed_out_before_all_have_claimed() -> None:
    one, told = opened(), Told()
    publish(one, 1, told)
    one.write()
    restart(one)
    made: list[Claims] = []

    def make_claims(queue: ClaimedQueue) -> Claims:
        made.append(Claims(queue.add_consumer, [2, 3]))
        return made[0]

    one.queue.make_claims = make_claims
    one.write()
    [claims] = made
    first, second, fetched = Reader("first", prefetch=1), Reader("second", prefetch=1), []

    async def fetch() -> None:
        fetched.append(await one.queue.fetch(False))

    drive(fetch())
    claims.attach(second, 8)
    claims.attach(first, 7)
    claims.told(2)
    one.write()
    assert (first.got, second.got, fetched) == ([], [], [])
    claims.told(3)
    one.write()
    assert list(one.queue.consumers()) == [first, second]
    assert first.bodies == [b"m1"]
    assert fetched == [None]


def test_a_consumer_that_leaves_before_the_claims_are_complete_does_not_begin() -> None:
    one = opened()
    one.queue.claims = claims = Claims(one.queue.add_consumer, [2])
    reader = Reader()
    claims.attach(reader, 1)
    one.queue.remove_consumer(reader)
    claims.complete()
    assert one.queue.consumer_count == 0


def test_what_is_settled_is_told_when_it_is_committed() -> None:
    one, told, calls = opened(), Told(), []
    publish(one, 1, told)
    one.write()
    delivery = taken(one)
    one.queue.acknowledge(delivery)
    one.queue.when_settled(lambda: calls.append("settled"))
    assert calls == []
    one.write()
    assert calls == ["settled"]
    one.queue.when_settled(lambda: calls.append("nothing to do"))
    assert calls == ["settled", "nothing to do"]


def test_who_waits_for_a_message_hears_that_the_queue_is_deleted() -> None:
    one = Follower(host=KeepingHost(), configuration=ALONE)
    errors: list[Exception] = []

    async def fetch() -> None:
        try:
            await one.queue.fetch(False)
        except NotFound as error:
            errors.append(error)

    drive(fetch())
    one.queue.delete()
    assert len(errors) == 1
