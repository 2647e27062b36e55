"""What the metadata tells its listeners after each command: past facts, in the order in which they came."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord


@dataclass(frozen=True, slots=True)
class VhostAdded:
    """A vhost exists; its default exchanges do too, without events of their own."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostDescribed:
    """What describes a vhost may be otherwise, and whether it is traced."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostRemoved:
    """A vhost is gone, and all that was in it, without events of their own."""

    vhost: str


@dataclass(frozen=True, slots=True)
class ExchangeDeclared:
    """An exchange exists."""

    vhost: str
    exchange: ExchangeRecord


@dataclass(frozen=True, slots=True)
class ExchangeDeleted:
    """An exchange is gone; its bindings went before it."""

    vhost: str
    exchange: ExchangeRecord


@dataclass(frozen=True, slots=True)
class QueueDeclared:
    """A queue exists."""

    vhost: str
    queue: QueueRecord


@dataclass(frozen=True, slots=True)
class QueuePaused:
    """A queue hands nothing out, or does so again."""

    vhost: str
    queue: QueueRecord
    is_paused: bool


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """Somebody has a lease."""

    vhost: str
    lease: LeaseRecord


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """A lease ends at another time."""

    vhost: str
    id: str


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    """A lease, as it was, has come to the end `state`."""

    vhost: str
    lease: LeaseRecord
    state: LeaseState


@dataclass(frozen=True, slots=True)
class QueueDeleted:
    """A queue is gone, and its leases with it; its bindings went before it."""

    vhost: str
    queue: QueueRecord


@dataclass(frozen=True, slots=True)
class BindingAdded:
    """A binding exists."""

    vhost: str
    binding: BindingRecord


@dataclass(frozen=True, slots=True)
class BindingRemoved:
    """A binding is gone."""

    vhost: str
    binding: BindingRecord


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """What policies say about queues and exchanges of a vhost may have changed."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostLimitsChanged:
    """The limits of a vhost are others."""

    vhost: str


@dataclass(frozen=True, slots=True)
class ParameterChanged:
    """A parameter of a vhost was set or cleared; the vhost of a global one is empty."""

    vhost: str
    component: str
    name: str


@dataclass(frozen=True, slots=True)
class UserChanged:
    """A user was put, or has other tags or limits."""

    user: str


@dataclass(frozen=True, slots=True)
class UserRemoved:
    """A user is gone."""

    user: str


@dataclass(frozen=True, slots=True)
class PermissionsChanged:
    """What a user may do in a vhost may have changed."""

    user: str
    vhost: str


Event: TypeAlias = (
    VhostAdded
    | VhostDescribed
    | VhostRemoved
    | ExchangeDeclared
    | ExchangeDeleted
    | QueueDeclared
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
)
Listener: TypeAlias = Callable[[Event], None]
