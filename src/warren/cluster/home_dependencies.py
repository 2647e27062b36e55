"""What the home of remote queues needs, as the node sees it that has their clients, and its errors."""

from collections.abc import Callable

from msgspec import Struct

from warren import errors
from warren.cluster.node_channel import NodeChannel
from warren.cluster.queue_traffic import QueueTraffic
from warren.cluster.remote_codec import NO_LEADER
from warren.errors import AmqpError, HomeDown, NotFound
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later
from warren.model.turn import Turn

_ERRORS: dict[int, type[AmqpError]] = {
    error.code: error
    for error in (
        errors.AccessRefused, NotFound, errors.ResourceLocked, errors.PreconditionFailed,
        errors.AmqpNotImplemented,
    )
}  # fmt: skip
_ERRORS[NO_LEADER] = errors.NotLeading


class HomeDependencies(Struct, frozen=True, kw_only=True):
    """What a home needs: the port to its node, and the parts of this one."""

    # The name of the home.
    name: str
    channel: NodeChannel
    metadata: Metadata
    later: Later
    turn: Turn
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # A number for each session, which grows.
    next_generation: Callable[[], int]


def error_of(code: int, text: str) -> AmqpError:
    """The error that a home has answered."""
    return _ERRORS.get(code, errors.InternalError)(text)


def unavailable(traffic: QueueTraffic, node_name: str, vhost: str) -> NotFound:
    """Why the queue of `traffic` cannot be used while its home `node_name` is away."""
    if not traffic.is_durable:
        return NotFound(f"no queue '{traffic.name}' in vhost '{vhost}'")
    return HomeDown(
        f"home node '{node_name}' of durable queue '{traffic.name}' in vhost '{vhost}' is down or"
        " inaccessible"
    )
