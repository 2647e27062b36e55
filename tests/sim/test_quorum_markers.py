"""Groups of messages that go to a quorum queue, on a disk that loses power at any step, driven by seeds.

A marker says how many groups are published: the queue has each message of these, unless it was settled, and
none of later ones, although its messages count only with the entry that proposes them.
"""

import pytest
from tests.seeds import SEEDS
from tests.sim.segments import make_small
from tests.sim.test_quorum_queue import SEGMENT_SIZES, STEPS, Simulation

KEY = b"progress"


class MarkedSimulation(Simulation):
    """A quorum queue whose publisher records its progress."""

    def __init__(self, seed: int) -> None:
        # The number of each message -> the number of its group; and the number of the last group.
        self.groups: dict[int, int] = {}
        self.sent = 0
        super().__init__(seed, None)

    def group(self) -> None:
        """Publish a group of messages, if the queue may propose them with the next batch."""
        if not self.queue.is_restored:
            return
        self.sent += 1
        self.store.begin_group()
        for _ in range(self.chance.choice([0, 1, 2, 20])):
            self.groups[self.number] = self.sent
            self.publish()
        self.store.end_group(KEY, b"%d" % self.sent)

    def end(self) -> None:
        before = {*self.there}
        super().end()
        marker = self.store.markers.get(KEY)
        progress = 0 if marker is None else int(marker.value)
        assert progress <= self.sent
        published = {number for number, group in self.groups.items() if group <= progress}
        assert before & published <= self.there
        assert not self.there & (self.groups.keys() - published)
        for number in self.groups.keys() - published:
            del self.groups[number]
        self.sent = progress


@pytest.mark.seeds(SEEDS)
def test_a_marker_is_there_with_the_messages_of_its_group_in_a_quorum_queue(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = MarkedSimulation(seed)
    actions = [simulation.publish, simulation.group, simulation.group, simulation.get, simulation.settle]
    actions += [simulation.commit] * 2
    for _ in range(STEPS):
        simulation.chance.choice(actions)()
        if simulation.chance.random() < 0.05:
            simulation.end()
    simulation.end()
