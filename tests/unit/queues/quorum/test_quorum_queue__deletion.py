"""A quorum queue that is deleted while somebody waits for its group."""

from tests.unit.queues.quorum.followers import Follower
from tests.unit.queues.quorum.test_kept_dead_letters import KeepingPlace

from warren.errors import NotFound
from warren.model.coroutine_driver import drive
from warren.queues.quorum.raft_storage import ALONE


def test_who_waits_for_a_message_hears_that_the_queue_is_deleted() -> None:
    one = Follower(host=KeepingPlace().vhost, configuration=ALONE)
    errors: list[Exception] = []

    async def fetch() -> None:
        try:
            await one.queue.fetch(False)
        except NotFound as error:
            errors.append(error)

    drive(fetch())
    one.queue.delete()
    assert len(errors) == 1
