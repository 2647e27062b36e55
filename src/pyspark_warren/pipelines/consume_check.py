"""Whether messages may be taken out of a queue: a stream keeps what is read, a classic queue does not."""

from pyspark_warren.mode_detection import STREAM, ReadStrategy


class ConsumeNotAllowed(ValueError):
    """Messages would be taken out of a queue, and nobody has said that they may."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"the queue {queue!r} is no stream: its messages are taken out of it, and acknowledged when they "
            "are written, so that no consumer gets them any more"
        )


def check_consume(strategy: ReadStrategy, consume: bool) -> None:
    """Refuse a `strategy` that removes messages from their queues, unless `consume` allows that."""
    if not consume and strategy.mode != STREAM:
        raise ConsumeNotAllowed(strategy.queues[0])
