"""Leases as JSON."""

from typing import Literal, NotRequired, TypedDict

from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.metadata.identity import shown_name
from warren.metadata.leases import LeaseRecord


class LeaseShape(TypedDict):
    """A lease: messages of a queue that one user holds."""

    lease: str
    vhost: str
    queue: str
    user: str
    key: str
    messages: int
    bytes: int
    granted_at: int
    expires_at: int
    state: Literal["active", "settled", "requeued", "expired"]


class LeaseGrantShape(TypedDict):
    """A lease; its id is null if no message is ready."""

    lease: str | None
    vhost: str
    queue: str
    messages: int
    bytes: int
    user: NotRequired[str]
    key: NotRequired[str]
    granted_at: NotRequired[int]
    expires_at: NotRequired[int]
    state: NotRequired[Literal["active", "settled", "requeued", "expired"]]


for _shape in (LeaseShape, LeaseGrantShape):
    deprecate(_shape, octets="bytes")


def lease_view(vhost: str, lease: LeaseRecord) -> dict[str, object]:
    """A lease of a queue in the virtual host `vhost` as JSON."""
    view = {
        "lease": lease.id,
        "vhost": vhost,
        "queue": lease.queue,
        "user": shown_name(lease.user),
        "key": lease.key,
        "messages": lease.messages,
        "bytes": lease.byte_count,
        "granted_at": lease.granted_at,
        "expires_at": lease.expires_at,
        "state": lease.state.value,
    }
    return with_deprecated(LeaseShape, view)
