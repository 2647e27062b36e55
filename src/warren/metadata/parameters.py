"""Parameters of shovels, federation, plugins and operators, by component and name."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from warren.metadata import validation
from warren.metadata.commands import (
    DONE,
    INTERNAL_USER,
    MISSING,
    OPERATOR,
    ClearGlobalParameter,
    ClearParameter,
    Json,
    Outcome,
    Reply,
    SetGlobalParameter,
    SetParameter,
)
from warren.metadata.events import Listener, ParameterChanged
from warren.metadata.federation_definition import (
    UPSTREAM,
    UPSTREAM_SET,
    upstream_errors,
    upstream_set_errors,
)
from warren.metadata.identity import identity_of
from warren.metadata.parameter_secrets import HiddenPasswordError, unmasked_parameter
from warren.metadata.shovel_definition import SHOVEL, shovel_errors
from warren.metadata.uri_check import VhostAccess
from warren.metadata.users import User

# Parameters in RabbitMQ that Warren stores as objects of their own.
POLICY = "policy"
OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"
VHOST_LIMITS_NAME = "limits"
# The global parameter with the name of the cluster, if it was set.
CLUSTER_NAME = "cluster_name"
# The global parameter with the internal id of the cluster, created at its first start.
CLUSTER_ID = "internal_cluster_id"

# Users with one of these tags set parameters.
SETTING_TAGS = frozenset(("administrator", "policymaker"))
_SEEING_TAG = "administrator"
# In place of an issuer: the user in the metadata who had the name is deleted.
DELETED = "deleted"

PARAMETERS_OF_OTHERS = frozenset((POLICY, OPERATOR_POLICY, VHOST_LIMITS))

# The errors in a parameter with addresses, by its component, its name and its value.
_ERRORS: Mapping[str, Callable[[str, Json, VhostAccess | None], list[str]]] = {
    SHOVEL: shovel_errors,
    UPSTREAM: upstream_errors,
}

_VHOST_LIMITS: dict[str, validation.Check] = {
    "max-connections": validation.integer,
    "max-queues": validation.integer,
}


class Parameters:
    """The parameters of one vhost by component and name."""

    __slots__ = ("_notify", "_users", "_vhost", "by_key")

    def __init__(self, vhost: str, notify: Listener) -> None:
        self._vhost = vhost
        self._notify = notify
        self.by_key: dict[tuple[str, str], Json] = {}
        # Who set a parameter, unless it was the broker itself.
        self._users: dict[tuple[str, str], str] = {}

    def user_of(self, component: str, name: str) -> str:
        """The user who set a parameter last, with whose rights a shovel or a link runs."""
        return self._users.get((component, name), INTERNAL_USER)

    def forget_user(self, name: str) -> None:
        """Have no parameter of the user `name`, who is deleted, belong to a new user of that name."""
        for key in [key for key, user in self._users.items() if user == name]:
            self._users[key] = identity_of(name, DELETED)
            self._notify(ParameterChanged(self._vhost, *key))

    def put(self, command: SetParameter) -> Reply:
        """Set a parameter that was checked."""
        key = command.component, command.name
        self.by_key[key] = command.value
        self._users.pop(key, None)
        if command.user != INTERNAL_USER:
            self._users[key] = command.user
        self._notify(ParameterChanged(self._vhost, command.component, command.name))
        return DONE

    def clear(self, command: ClearParameter) -> Reply:
        """Remove a parameter."""
        key = command.component, command.name
        if key not in self.by_key:
            return MISSING
        del self.by_key[key]
        self._users.pop(key, None)
        self._notify(ParameterChanged(self._vhost, command.component, command.name))
        return DONE


class GlobalParameters:
    """The parameters of the broker by name."""

    __slots__ = ("_notify", "by_name")

    def __init__(self, notify: Listener) -> None:
        self._notify = notify
        self.by_name: dict[str, Json] = {}

    def put(self, command: SetGlobalParameter) -> Reply:
        """Set a parameter."""
        self.by_name[command.name] = command.value
        self._notify(ParameterChanged("", "", command.name))
        return DONE

    def clear(self, command: ClearGlobalParameter) -> Reply:
        """Remove a parameter."""
        if command.name not in self.by_name:
            return MISSING
        del self.by_name[command.name]
        self._notify(ParameterChanged("", "", command.name))
        return DONE


def is_component(name: str) -> bool:
    """True if parameters of the component `name` have an effect, and are checked."""
    return name in PARAMETERS_OF_OTHERS or name == UPSTREAM_SET or name in _ERRORS


def parameter_refusal(command: SetParameter, access: VhostAccess | None = None) -> Reply | None:
    """The refusal if the component is unknown or the value is wrong; None otherwise.

    With `access`, an address of this node must be in a virtual host that it allows.
    """
    if command.component in PARAMETERS_OF_OTHERS:
        return None
    errors_in = _ERRORS.get(command.component)
    if errors_in is not None:
        errors = errors_in(command.name, command.value, access)
    elif command.component == UPSTREAM_SET:
        errors = upstream_set_errors(command.name, command.value)
    else:
        errors = [f"component {command.component} not found"]
    return Reply(Outcome.REFUSED, validation.failed(errors)) if errors else None


def may_see_passwords(user: User | None, identity: str, setter: str) -> bool:
    """True if `user`, with `identity`, may use the passwords of a parameter that `setter` has set.

    Administrators see them in an export, and who has set them knows them. What is hidden from others must not
    be of use to them.
    """
    if user is not None and _SEEING_TAG in user.tags:
        return True
    return identity == OPERATOR or (identity == setter and identity != INTERNAL_USER)


def checked_parameter(
    parameters: Parameters, command: SetParameter, users: Mapping[str, User]
) -> SetParameter | Reply:
    """The parameter to set, with stored passwords in place of hidden ones, or a refusal.

    One of an unknown component is kept as it is: definitions of a broker with other plugins have such.
    """
    if not is_component(command.component):
        return command
    refusal = parameter_refusal(command)
    if refusal is not None:
        return refusal
    component, user = command.component, command.user
    setter = parameters.user_of(component, command.name)
    stored = None
    if may_see_passwords(users.get(user), user, setter):
        stored = parameters.by_key.get((component, command.name))
    try:
        value = unmasked_parameter(component, command.value, stored)
    except HiddenPasswordError as error:
        return Reply(Outcome.REFUSED, validation.failed([str(error)]))
    return command if value is command.value else replace(command, value=value)


def limits_refusal(limits: Json) -> Reply | None:
    """The refusal if `limits` are not valid limits of a vhost; None if they are."""
    errors = validation.fields(VHOST_LIMITS_NAME, limits, _VHOST_LIMITS)
    return Reply(Outcome.REFUSED, validation.failed(errors)) if errors else None


def as_limits(value: Json) -> Mapping[str, Json]:
    """`value` as limits; it must have passed `limits_refusal`."""
    assert isinstance(value, Mapping)
    return value
