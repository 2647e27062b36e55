"""The events of the metadata: what a command has changed, in order, as sent to listeners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.records import BindingRecord, ExchangeRecord, QueueRecord


@dataclass(frozen=True, slots=True)
class VhostAdded:
    """A vhost was created; its default exchanges exist too, without events of their own."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostDescribed:
    """The description of a vhost, or whether it is traced, may have changed."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostRemoved:
    """A vhost was removed with all its objects, without events of their own."""

    vhost: str


@dataclass(frozen=True, slots=True)
class ExchangeDeclared:
    """An exchange was created."""

    vhost: str
    exchange: ExchangeRecord


@dataclass(frozen=True, slots=True)
class ExchangeDeleted:
    """An exchange was deleted; the events of its bindings came before."""

    vhost: str
    exchange: ExchangeRecord


@dataclass(frozen=True, slots=True)
class QueueDeclared:
    """A queue was created."""

    vhost: str
    queue: QueueRecord


@dataclass(frozen=True, slots=True)
class QueuePaused:
    """A queue was paused or resumed."""

    vhost: str
    queue: QueueRecord
    is_paused: bool


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """A lease was granted."""

    vhost: str
    lease: LeaseRecord


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The expiry of a lease was changed."""

    vhost: str
    id: str


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    """A lease, as it was, has ended with `state`."""

    vhost: str
    lease: LeaseRecord
    state: LeaseState


@dataclass(frozen=True, slots=True)
class QueueDeleted:
    """A queue was deleted with its leases; the events of its bindings came before."""

    vhost: str
    queue: QueueRecord


@dataclass(frozen=True, slots=True)
class BindingAdded:
    """A binding was added."""

    vhost: str
    binding: BindingRecord


@dataclass(frozen=True, slots=True)
class BindingRemoved:
    """A binding was removed."""

    vhost: str
    binding: BindingRecord


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """The policies for queues and exchanges of a vhost may have changed."""

    vhost: str


@dataclass(frozen=True, slots=True)
class VhostLimitsChanged:
    """The limits of a vhost were changed."""

    vhost: str


@dataclass(frozen=True, slots=True)
class ParameterChanged:
    """A parameter of a vhost was set or cleared; the vhost of a global one is empty."""

    vhost: str
    component: str
    name: str


@dataclass(frozen=True, slots=True)
class UserChanged:
    """A user was created or replaced, or has other tags or limits."""

    user: str


@dataclass(frozen=True, slots=True)
class UserRemoved:
    """A user was removed."""

    user: str


@dataclass(frozen=True, slots=True)
class PermissionsChanged:
    """The permissions of a user in a vhost may have changed."""

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
