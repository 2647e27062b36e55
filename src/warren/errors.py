"""The reply codes of AMQP 0-9-1 as exception classes; the class determines what an error closes.

An error is raised where the fact is known and caught in two places: `Channel.handle` and
`Connection.receive`. The reply text is the name of the code, ` - ` and the message, as in RabbitMQ.
"""

from collections.abc import Awaitable, Callable


class AmqpError(Exception):
    """A protocol exception (0-9-1 §1.2); `message` explains it, `code` and `name` classify it."""

    code = 541
    name = "INTERNAL_ERROR"

    def __init__(self, message: str = "", *, method_index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        # class id << 16 | method id of the failing method; 0 means no method, None the method being handled.
        self.method_index = method_index

    @property
    def reply_text(self) -> str:
        """The reply-text of the close method, as RabbitMQ forms it."""
        return f"{self.name} - {self.message}" if self.message else self.name


class ChannelException(AmqpError):
    """A soft error: closes the channel that caused it; the connection stays open."""


class ConnectionException(AmqpError):
    """A hard error: closes the connection."""


class ContentTooLarge(ChannelException):
    """311: the content is larger than the peer accepts."""

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
    """403: access is not permitted."""

    code = 403
    name = "ACCESS_REFUSED"


class Undecided(AccessRefused):
    """403 until somebody has waited for the decision of a web server whether access is permitted."""

    def __init__(
        self, message: str, decide: Callable[[], Awaitable[None]], forget: Callable[[], None]
    ) -> None:
        """`decide` gets the decision for the next attempt; `forget` ends the attempts."""
        super().__init__(message)
        self.decide = decide
        self.forget = forget


class NotFound(ChannelException):
    """404: the exchange, queue or consumer does not exist."""

    code = 404
    name = "NOT_FOUND"


class HomeDown(NotFound):
    """404: the queue exists, and the node that has it is down or inaccessible."""


class ResourceLocked(ChannelException):
    """405: an exclusive queue belongs to another connection."""

    code = 405
    name = "RESOURCE_LOCKED"


class PreconditionFailed(ChannelException):
    """406: the object exists with other properties, or an argument is not permitted."""

    code = 406
    name = "PRECONDITION_FAILED"


class ConnectionForced(ConnectionException):
    """320: an operator or a limit closes the connection."""

    code = 320
    name = "CONNECTION_FORCED"


class InvalidPath(ConnectionException):
    """402: the virtual host path is invalid."""

    code = 402
    name = "INVALID_PATH"


class LoginRefused(ConnectionException):
    """403: the credentials are invalid, or not accepted from this address."""

    code = 403
    name = "ACCESS_REFUSED"
    # The user name that the client claimed.
    user = ""


class FrameError(ConnectionException):
    """501: the received bytes are not a valid frame, method or content header."""

    code = 501
    name = "FRAME_ERROR"


class AmqpSyntaxError(ConnectionException):
    """502: a field has an illegal value."""

    code = 502
    name = "SYNTAX_ERROR"


class CommandInvalid(ConnectionException):
    """503: the method is unknown, or not valid in the current state."""

    code = 503
    name = "COMMAND_INVALID"


class ChannelNumberError(ConnectionException):
    """504: the channel is not open, or is already open."""

    code = 504
    name = "CHANNEL_ERROR"


class UnexpectedFrame(ConnectionException):
    """505: a frame of another type was expected."""

    code = 505
    name = "UNEXPECTED_FRAME"


class ResourceError(ConnectionException):
    """506: the server does not have enough resources."""

    code = 506
    name = "RESOURCE_ERROR"


class NotAllowed(ConnectionException):
    """530: prohibited by the configuration or by a limit."""

    code = 530
    name = "NOT_ALLOWED"


class AmqpNotImplemented(ConnectionException):
    """540: the method is in the specification, but neither RabbitMQ nor Warren implements it."""

    code = 540
    name = "NOT_IMPLEMENTED"


class InternalError(ConnectionException):
    """541: an internal error of the server."""

    code = 541
    name = "INTERNAL_ERROR"


class NotLeading(InternalError):
    """541: the leader of a quorum queue has changed, or nobody leads it: the next one has to be asked."""


class LeaderTimeout(InternalError):
    """541: nobody has led a quorum queue, or its leader has not answered, for too long."""


class MetadataTimeout(InternalError):
    """541: no majority of the members of the cluster has agreed on something in time."""

    def __init__(self, message: str, *, may_take_effect: bool = False) -> None:
        """`may_take_effect` is True if the members may have been sent what they have not agreed on yet."""
        super().__init__(message)
        self.may_take_effect = may_take_effect
