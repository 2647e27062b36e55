"""Random batches of a quorum queue, each of which can follow the one before it."""

import random

from warren.queues.quorum.batch_builder import BatchBuilder
from warren.queues.quorum.batch_codec import Enqueuer, HoldReason, QuorumBatch, SettleReason

ENQUEUERS = (Enqueuer(1, 7), Enqueuer(1, 2**64 - 1), Enqueuer(2**16 - 1, 7))
LEVELS = (0, 1, 255)
REASONS = tuple(SettleReason)
HOLDS = tuple(HoldReason)


class BatchSource:
    """Makes batches as a queue would, from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        # Level -> the next position and the positions that are not settled; enqueuer -> its last number.
        self.ends = dict.fromkeys(LEVELS, self.chance.choice((0, 4_090, 2**40)))
        self.live: dict[int, list[int]] = {level: [] for level in LEVELS}
        self.numbers = dict.fromkeys(ENQUEUERS, 0)
        self.forgotten: set[Enqueuer] = set()

    def batch(self) -> QuorumBatch:
        """The next batch."""
        chance, builder = self.chance, BatchBuilder()
        # A list, so that no order is that of a set of objects.
        for _ in range(chance.choice((0, 1, 5, 60))):
            self._enqueue(builder)
        for level in LEVELS:
            for position in self._some(level):
                failed = chance.randrange(3)
                total = failed + chance.randrange(2)
                ready_at = chance.choice((0, 5, 2**63 - 1))
                builder.return_counted(level, position, failed, total, ready_at=ready_at)
            for position in self._some(level)[:5]:
                builder.hold(level, position, chance.choice(HOLDS))
            if chance.random() < 0.3:
                builder.raise_reach(level, chance.randrange(2**41))
            settled = self._some(level)
            if chance.random() < 0.5:
                settled.sort()
            for position in settled:
                reason = chance.choice(REASONS[: chance.choice((1, 7))])
                builder.settle(level, position, chance.choice((0, 10, 2**33)), reason)
                self.live[level].remove(position)
        if chance.random() < 0.05:
            gone = ENQUEUERS[2]
            builder.forget(gone)
            self.numbers[gone] = 0
        return builder.take()

    def _enqueue(self, builder: BatchBuilder) -> None:
        chance = self.chance
        enqueuer = ENQUEUERS[0] if chance.random() < 0.8 else chance.choice(ENQUEUERS)
        level = LEVELS[0] if chance.random() < 0.8 else chance.choice(LEVELS)
        last = self.numbers[enqueuer]
        # Now and then a message that is in the queue already.
        number = last + 1 if chance.random() < 0.9 or not last else chance.randint(1, last)
        self.numbers[enqueuer] = max(number, last)
        position = self.ends[level]
        self.ends[level] += 1
        self.live[level].append(position)
        builder.enqueue(enqueuer, number, level, position)

    def _some(self, level: int) -> list[int]:
        live = self.live[level]
        found = self.chance.sample(live, self.chance.randrange(min(len(live), 40) + 1))
        if self.chance.random() < 0.5:
            low = self.chance.randrange(len(live) + 1)
            found = live[low : low + 30]
        return found
