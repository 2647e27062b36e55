"""The stream of a retained queue is declared where the queue is."""

from tests.unit.vhost.conftest import CountingQueue

from warren.metadata.commands import DONE, DeclareQueue, MetadataCommand, Reply
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.routing.router import Router
from warren.vhost.retained_streams import RetainedStreams


class Proposed:
    """Port `Proposals`, which keeps what it is given."""

    def __init__(self) -> None:
        self.commands: list[MetadataCommand] = []
        self.is_in_doubt = False

    async def resolve(self) -> None:
        raise AssertionError

    async def is_outdated(self, index: int) -> bool:
        raise AssertionError

    async def propose(self, command: MetadataCommand, user: str = "") -> Reply:
        self.commands.append(command)
        return DONE


def test_a_retained_stream_has_the_home_of_its_queue() -> None:
    proposals, queues = Proposed(), {}
    streams = RetainedStreams(
        Router("v"), queues, proposals, later=lambda action: action(0), after=lambda ms, action: None
    )
    record = QueueRecord("q", True, False, None, {}, "u", 1, None, 3)
    queue = queues["q"] = CountingQueue(record, QueueSettings(is_retained=True))
    streams.on_queue_changed(record, queue)
    assert proposals.commands == [
        DeclareQueue(
            vhost="v",
            name="amq.retained.q",
            durable=True,
            arguments={"x-queue-type": "stream"},
            home=3,
        )
    ]
