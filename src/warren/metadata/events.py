"""The events of the metadata: what a command has changed, in order, as sent to listeners."""

from collections.abc import Callable
from typing import TypeAlias, get_args

from msgspec import Struct

from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, MemberRecord, QueueRecord


class VhostAdded(Struct, frozen=True):
    """A vhost was created; its default exchanges exist too, without events of their own."""

    vhost: str


class VhostDescribed(Struct, frozen=True):
    """The description of a vhost, or whether it is traced, may have changed."""

    vhost: str


class VhostRemoved(Struct, frozen=True):
    """A vhost was removed with all its objects, without events of their own."""

    vhost: str


class ExchangeDeclared(Struct, frozen=True):
    """An exchange was created."""

    vhost: str
    exchange: ExchangeRecord


class ExchangeDeleted(Struct, frozen=True):
    """An exchange was deleted; the events of its bindings came before."""

    vhost: str
    exchange: ExchangeRecord


class QueueDeclared(Struct, frozen=True):
    """A queue was created."""

    vhost: str
    queue: QueueRecord


class QueueMembersChanged(Struct, frozen=True):
    """Other nodes than `before` have a replica of a quorum queue, or are to have one."""

    vhost: str
    queue: QueueRecord
    before: QueueRecord


class QueuePaused(Struct, frozen=True):
    """A queue was paused or resumed."""

    vhost: str
    queue: QueueRecord
    is_paused: bool


class LeaseGranted(Struct, frozen=True):
    """A lease was granted."""

    vhost: str
    lease: LeaseRecord


class LeaseRenewed(Struct, frozen=True):
    """The expiry of a lease was changed."""

    vhost: str
    id: str


class LeaseEnded(Struct, frozen=True):
    """A lease, as it was, has ended with `state`."""

    vhost: str
    lease: LeaseRecord
    state: LeaseState


class QueueDeleted(Struct, frozen=True):
    """A queue was deleted with its leases; the events of its bindings came before."""

    vhost: str
    queue: QueueRecord


class BindingAdded(Struct, frozen=True):
    """A binding was added."""

    vhost: str
    binding: BindingRecord


class BindingRemoved(Struct, frozen=True):
    """A binding was removed."""

    vhost: str
    binding: BindingRecord


class PoliciesChanged(Struct, frozen=True):
    """The policies for queues and exchanges of a vhost may have changed."""

    vhost: str


class VhostLimitsChanged(Struct, frozen=True):
    """The limits of a vhost were changed."""

    vhost: str


class ParameterChanged(Struct, frozen=True):
    """A parameter of a vhost was set or cleared; the vhost of a global one is empty."""

    vhost: str
    component: str
    name: str


class UserChanged(Struct, frozen=True):
    """A user was created or replaced, or has other tags or limits."""

    user: str


class UserRemoved(Struct, frozen=True):
    """A user was removed."""

    user: str


class PermissionsChanged(Struct, frozen=True):
    """The permissions of a user in a vhost may have changed."""

    user: str
    vhost: str


class MemberChanged(Struct, frozen=True):
    """A member of the cluster was added or has changed; `before` is what it was, None if it is new."""

    member: MemberRecord
    before: MemberRecord | None


class MemberRemoved(Struct, frozen=True):
    """A member, as it was, has left the cluster, or was forgotten; the queues whose home it was stay."""

    member: MemberRecord
    is_forgotten: bool


Event: TypeAlias = (
    VhostAdded
    | VhostDescribed
    | VhostRemoved
    | ExchangeDeclared
    | ExchangeDeleted
    | QueueDeclared
    | QueueMembersChanged
    | QueuePaused
    | LeaseGranted
    | LeaseRenewed
    | LeaseEnded
    | QueueDeleted
    | BindingAdded
    | BindingRemoved
    | PoliciesChanged
    | VhostLimitsChanged
    | ParameterChanged
    | UserChanged
    | UserRemoved
    | PermissionsChanged
    | MemberChanged
    | MemberRemoved
)
ALL_EVENTS: tuple[type[Event], ...] = get_args(Event)
Listener: TypeAlias = Callable[[Event], None]
