"""Every reply code of AMQP 0-9-1 as a class that knows what it closes: a channel or a connection.

Raised where the fact is known, caught in two places: `Channel.handle` and `Connection.receive`.
The text on the wire is the code's name, ` - ` and the message, as RabbitMQ writes it.
"""


class AmqpError(Exception):
    """A protocol exception (0-9-1 §1.2); `message` explains it, `code` and `name` classify it."""

    code = 541
    name = "INTERNAL_ERROR"

    def __init__(self, message: str = "", *, method_index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        # class id << 16 | method id of the method to blame; 0 blames none, None the one being handled.
        self.method_index = method_index

    @property
    def reply_text(self) -> str:
        """The reply-text of the close method, as RabbitMQ forms it."""
        return f"{self.name} - {self.message}" if self.message else self.name


class ChannelException(AmqpError):
    """Soft: the channel that caused it is closed, its connection lives."""


class ConnectionException(AmqpError):
    """Hard: the connection is closed."""


class ContentTooLarge(ChannelException):
    """311: the content is larger than the peer takes."""

    code = 311
    name = "CONTENT_TOO_LARGE"


class NoRoute(ChannelException):
    """312: a mandatory message found no queue (only in basic.return)."""

    code = 312
    name = "NO_ROUTE"


class NoConsumers(ChannelException):
    """313: an immediate message found no consumer (only in basic.return)."""

    code = 313
    name = "NO_CONSUMERS"


class AccessRefused(ChannelException):
    """403: the user may not do this, or nobody may."""

    code = 403
    name = "ACCESS_REFUSED"


class NotFound(ChannelException):
    """404: the exchange, queue or consumer does not exist."""

    code = 404
    name = "NOT_FOUND"


class ResourceLocked(ChannelException):
    """405: an exclusive queue belongs to another connection."""

    code = 405
    name = "RESOURCE_LOCKED"


class PreconditionFailed(ChannelException):
    """406: what exists or is allowed differs from what was asked."""

    code = 406
    name = "PRECONDITION_FAILED"


class ConnectionForced(ConnectionException):
    """320: an operator, or a limit, ends the connection."""

    code = 320
    name = "CONNECTION_FORCED"


class InvalidPath(ConnectionException):
    """402: the virtual host path is not valid."""

    code = 402
    name = "INVALID_PATH"


class LoginRefused(ConnectionException):
    """403: the credentials are wrong, or not for this place."""

    code = 403
    name = "ACCESS_REFUSED"
    # Who it was said to be.
    user = ""


class FrameError(ConnectionException):
    """501: the bytes are not a frame, a method or a content header."""

    code = 501
    name = "FRAME_ERROR"


class AmqpSyntaxError(ConnectionException):
    """502: a field holds an illegal value."""

    code = 502
    name = "SYNTAX_ERROR"


class CommandInvalid(ConnectionException):
    """503: the method is unknown here, or comes at the wrong time."""

    code = 503
    name = "COMMAND_INVALID"


class ChannelNumberError(ConnectionException):
    """504: the channel is not open, or open already."""

    code = 504
    name = "CHANNEL_ERROR"


class UnexpectedFrame(ConnectionException):
    """505: a frame of another kind was due."""

    code = 505
    name = "UNEXPECTED_FRAME"


class ResourceError(ConnectionException):
    """506: the server has not enough resources."""

    code = 506
    name = "RESOURCE_ERROR"


class NotAllowed(ConnectionException):
    """530: forbidden by the configuration or a limit."""

    code = 530
    name = "NOT_ALLOWED"


class AmqpNotImplemented(ConnectionException):
    """540: the specification has it, RabbitMQ and Warren have not."""

    code = 540
    name = "NOT_IMPLEMENTED"


class InternalError(ConnectionException):
    """541: the server is at fault."""

    code = 541
    name = "INTERNAL_ERROR"
