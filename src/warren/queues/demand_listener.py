"""Port: what a federated queue tells of its demand for messages; `QueueDemand` implements it."""

from typing import Protocol


class DemandListener(Protocol):
    """The listener of one queue and of its consumers."""

    def demand_changed(self) -> None:
        """Note that the messages or the consumers of the queue have changed, or which of them are ready."""
