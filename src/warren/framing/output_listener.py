"""Port: receives a notification when a connection has output; one per connection."""


class OutputListener:
    """Implemented above the waterline; several calls before the next write cause one write."""

    __slots__ = ()

    def output_ready(self) -> None:
        """Call `take_output()` of the connection before this turn of the loop ends."""
        raise NotImplementedError

    def output_full(self) -> None:
        """Called when the outbox is full: consumers are held back until it is written."""
