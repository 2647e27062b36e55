"""How a broker ends a channel or a connection of its client."""

from warren.errors import FrameError


class BrokerRefused(Exception):
    """The broker closed the channel or the connection, or the connection was lost.

    `code` is the reply code of the close; 0 if the connection was lost.
    """

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


def malformed(text: str) -> BrokerRefused:
    """Return the error for input that is no valid AMQP, as `text` says."""
    return BrokerRefused(f"the broker sent no valid AMQP: {text}", FrameError.code)
