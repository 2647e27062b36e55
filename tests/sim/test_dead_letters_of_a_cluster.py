"""Quorum queues whose dead letters are delivered at least once into another one, while brokers fail.

The nodes, their faults and their clients are those of `test_broker_cluster`. What clients reject dies, and
each message that was confirmed and not acknowledged must be among the dead letters in the end, perhaps twice.
"""

import gc
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.seeds import SEEDS, TEST_S_MAX
from tests.sim.broker_scenario import BrokerScenario
from tests.sim.cluster_client import CONSUMING, PUBLISHING, ClusterChannel, ClusterClient
from tests.sim.cluster_history import BrokenPromise, ClusterHistory, KnownQueue, SentMessage

STEPS = 100
RUNS = max(1, SEEDS // 10)
RUN_S_MAX = 4
DEAD = "dead"
SOURCE = {
    "x-overflow": "reject-publish",
    "x-dead-letter-strategy": "at-least-once",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": DEAD,
}


class DyingHistory(ClusterHistory):
    """Messages that were delivered come from the queue of the dead letters, where they are settled."""

    def __init__(self, queues: list[KnownQueue]) -> None:
        super().__init__(queues)
        self._seen: set[int] = set()
        # By the id of the message.
        self._dead_letters: dict[int, SentMessage] = {}

    def delivered(self, id: int, queue: KnownQueue, consumer: object, *, is_again: bool) -> SentMessage:
        message = self.messages[id]
        if message.queue is queue or queue.name != DEAD:
            self._seen.add(id)
            # Without the order: what was under way to a consumer that is gone, and has not reached it, comes
            # without a mark behind what others were given meanwhile.
            return super().delivered(id, queue, None, is_again=is_again)
        if id not in self._seen:
            raise BrokenPromise(f"message {id} has died, and was not delivered before")
        self.counts["died"] += 1
        return self._dead_letters.setdefault(id, replace(message, queue=queue))

    def check_nothing_is_lost(self) -> None:
        for id, dead_letter in self._dead_letters.items():
            self.messages[id].is_settled |= dead_letter.is_settled
        super().check_nothing_is_lost()


class DyingScenario(BrokerScenario):
    """One seed: much happens while messages are under way."""

    pauses_ms = (2, 5, 20, 800)
    # Thousands are taken out, each of them twice.
    drained_ms = 60_000

    def new_history(self) -> ClusterHistory:
        sources = [KnownQueue(f"source{number}", is_quorum=True, arguments=SOURCE) for number in range(3)]
        return DyingHistory([*sources, KnownQueue(DEAD, is_quorum=True)])

    def actions(self) -> list[tuple[Callable[[ClusterClient, KnownQueue], None], int]]:
        return [(self.publish, 6), (self.consume, 6), (self.get, 1), (self.settle, 20), (self.leave, 1)]

    def publish(self, client: ClusterClient, queue: KnownQueue) -> None:
        """Publish more than are sent as dead letters at a time."""
        client.declare(queue)
        for _ in range(self.chance.choice((4, 80))):
            client.channel(PUBLISHING).publish(queue, 20, is_persistent=True, is_mandatory=False)

    def consume(self, client: ClusterClient, queue: KnownQueue) -> None:
        client.declare(queue)
        if len(client.channel(CONSUMING).consumers) < 3:
            client.channel(CONSUMING).consume(queue, self.chance.choice((3, 100)))

    def settle(self, client: ClusterClient, queue: KnownQueue) -> None:
        for channel, tag in list(client.all_unacked()):
            if channel.unacked[tag].queue.name != DEAD and self.chance.random() < 0.9:
                channel.reject(tag)
        super().settle(client, queue)

    def take(self, channel: ClusterChannel, tag: int) -> None:
        if channel.unacked[tag].queue.name == DEAD:
            channel.settle(tag)
        else:
            channel.reject(tag)


def ran(seed: int) -> ClusterHistory:
    """What happened by a seed."""
    # The one before has disks of 100 MB, in cycles.
    gc.collect()
    scenario = DyingScenario(seed)
    scenario.run(STEPS)
    return scenario.history


@pytest.mark.timeout(TEST_S_MAX + RUN_S_MAX * RUNS)
@pytest.mark.seeds(RUNS)
def test_each_message_that_dies_is_among_the_dead_letters_whatever_fails(seed: int) -> None:
    ran(seed)


def test_messages_die_and_their_dead_letters_arrive() -> None:
    counts = sum((ran(seed).counts for seed in range(5)), start=ran(5).counts)
    assert [name for name in ("confirmed", "rejected", "died", "settled") if not counts[name]] == []
