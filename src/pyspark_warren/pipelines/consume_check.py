"""Checks that messages of a queue may be consumed; reading a stream consumes nothing."""

from pyspark_warren.mode_detection import STREAM, ReadStrategy


class ConsumeNotAllowed(ValueError):
    """The pipeline would consume messages of a queue, and `consume` was not given."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"the queue {queue!r} is not a stream: its messages would be consumed, and acknowledged when "
            "they are written, so that other consumers do not receive them"
        )


def check_consume(strategy: ReadStrategy, consume: bool) -> None:
    """Raise ConsumeNotAllowed if reading consumes messages and `consume` is false."""
    if not consume and strategy.mode != STREAM:
        raise ConsumeNotAllowed(strategy.queues[0])
