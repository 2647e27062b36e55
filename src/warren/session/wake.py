"""Port: a connection that had nothing to send has something now."""


class Wake:
    """Implemented above the waterline; several calls before the next write mean one write."""

    __slots__ = ()

    def output_ready(self, connection: object) -> None:
        """Call `connection.take_output()` before this turn of the loop ends."""
        raise NotImplementedError

    def output_full(self, connection: object) -> None:
        """So much waits that the consumers are held back: better write before more is read."""
