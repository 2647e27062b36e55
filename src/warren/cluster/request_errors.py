"""The errors of requests about queues of another node, and how they pass to the node that asks."""

from warren import errors
from warren.cluster.queue_traffic import QueueTraffic
from warren.cluster.remote_codec import HOME_BEHIND, NO_LEADER
from warren.errors import AmqpError, HomeDown, NotFound, NotLeading

_ERRORS: dict[int, type[AmqpError]] = {
    error.code: error
    for error in (
        errors.AccessRefused, NotFound, errors.ResourceLocked, errors.PreconditionFailed,
        errors.AmqpNotImplemented,
    )
}  # fmt: skip
_ERRORS[NO_LEADER] = NotLeading


def code_of(error: AmqpError) -> int:
    """The code of FAILED for `error` of a home."""
    if isinstance(error, NotLeading):
        return NO_LEADER
    return HOME_BEHIND if isinstance(error, HomeDown) else error.code


def error_of(code: int, text: str, traffic: QueueTraffic | None, *, node_name: str, vhost: str) -> AmqpError:
    """The error that the home `node_name` has answered to a request about the queue of `traffic`, if any."""
    if code == HOME_BEHIND and traffic is not None:
        return _inaccessible(traffic, node_name, vhost)
    return _ERRORS.get(code, errors.InternalError)(text)


def unavailable(traffic: QueueTraffic, node_name: str, vhost: str) -> NotFound:
    """Why the queue of `traffic` cannot be used while its home `node_name` is away."""
    if not traffic.is_durable:
        return NotFound(f"no queue '{traffic.name}' in vhost '{vhost}'")
    return _inaccessible(traffic, node_name, vhost)


def _inaccessible(traffic: QueueTraffic, node_name: str, vhost: str) -> HomeDown:
    kind = "durable queue" if traffic.is_durable else "queue"
    return HomeDown(
        f"home node '{node_name}' of {kind} '{traffic.name}' in vhost '{vhost}' is down or inaccessible"
    )
