"""Port: a connection that had nothing to send has something now. Each connection has one of its own."""


class OutputListener:
    """Implemented above the waterline; several calls before the next write mean one write."""

    __slots__ = ()

    def output_ready(self) -> None:
        """Call `take_output()` of the connection before this turn of the loop ends."""
        raise NotImplementedError

    def output_full(self) -> None:
        """So much waits that the consumers are held back: better write before more is read."""
