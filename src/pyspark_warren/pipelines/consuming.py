"""Whether messages may be taken out of a queue: a stream keeps what is read, a classic queue does not."""

from pyspark_warren.choosing import STREAM, Choice


class Consuming(ValueError):
    """Messages would be taken out of a queue, and nobody has said that they may."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"the queue {queue!r} is no stream: its messages are taken out of it, and acknowledged when they "
            "are written, so that no consumer gets them any more"
        )


def check_consumed(choice: Choice, consume: bool) -> None:
    """Refuse to read what `choice` says unless it keeps its messages, or `consume` says that it is meant."""
    if not consume and choice.mode != STREAM:
        raise Consuming(choice.queues[0])
