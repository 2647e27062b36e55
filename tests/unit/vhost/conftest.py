"""A vhost with small real parts: metadata, router, and queues that only count."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from warren.access.authorize import Authorizer
from warren.access.grants import UserGrants
from warren.errors import HomeDown
from warren.metadata.commands import MetadataCommand, PutUser, PutVhost, Reply, SetPermissions
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.queues.queue_counts import QueueCounts
from warren.routing.router import Router
from warren.vhost.exchange_service import ExchangeService
from warren.vhost.live_topology import LiveTopology, LiveTopologyDependencies
from warren.vhost.queue_removals import QueueRemovals
from warren.vhost.queue_service import QueueService
from warren.vhost.requester import Owner, Requester

T = TypeVar("T")


class CountingQueue:
    """A queue whose message and consumer counts the test sets."""

    def __init__(self, record: QueueRecord, settings: QueueSettings) -> None:
        self.name = record.name
        self.settings = settings
        self.message_count = 0
        self.consumer_count = 0
        self.touched = 0
        self.is_deleted = False
        self.is_local = True
        self.is_down = False
        self.is_paused = False
        # Raised while its home is down.
        self.failure: HomeDown | None = None

    def apply_settings(self, settings: QueueSettings) -> None:
        self.settings = settings

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def touch(self) -> None:
        self.touched += 1

    def check_reachable(self) -> None:
        if self.failure is not None:
            raise self.failure

    def counts(self) -> QueueCounts:
        return QueueCounts(self.message_count, self.consumer_count)

    async def inspect(self) -> QueueCounts:
        return self.counts()

    async def purge(self) -> int:
        count, self.message_count = self.message_count, 0
        return count

    def delete(self) -> int:
        self.is_deleted = True
        return self.message_count


class LiveVhost:
    """Everything of one vhost, with users that make requests."""

    def __init__(self) -> None:
        # Actions that wait for a turn.
        self.turns: list[Callable[[int], None]] = []
        self.metadata = Metadata()
        self.local = LocalProposals(self.metadata, lambda: 0)
        self.apply(PutVhost(name="v"))
        self.user("guest", ".*", ".*", ".*")
        parts = LiveTopologyDependencies(
            router=Router("v"),
            queues={},
            make_queue=CountingQueue,
            random_bytes=lambda size: b"\xff" * size,
            later=self.turns.append,
        )
        self.topology: LiveTopology[CountingQueue] = LiveTopology(self.metadata, "v", parts)
        assert list(self.topology.recover(lambda record, queue: None)) == [None]
        self.queue_service = QueueService(
            self.metadata,
            self.local,
            self.topology,
            parts.random_bytes,
            node_name="n@test",
            removals=QueueRemovals(),
        )
        self.exchange_service = ExchangeService(self.metadata, self.local, self.topology, node_name="n@test")

    @property
    def queues(self) -> dict[str, CountingQueue]:
        return self.topology.queues

    def apply(self, command: MetadataCommand) -> Reply:
        return self.local.apply(command)

    def user(self, name: str, configure: str, write: str, read: str) -> None:
        self.apply(PutUser(name=name, password_hash=b"", hashing_algorithm=""))
        self.apply(SetPermissions(user=name, vhost="v", configure=configure, write=write, read=read))

    def requester(self, user: str = "guest", connection: str = "c1") -> Requester:
        return Requester(
            Authorizer(UserGrants(self.metadata.permissions, user), self.metadata.users.by_name[user], "v"),
            Owner(connection),
        )


def ran(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, which must not suspend."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    result: T = stopped.value.value
    return result


@pytest.fixture
def live() -> LiveVhost:
    return LiveVhost()
