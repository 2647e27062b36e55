"""Limits on metadata objects, most of them on their number: a command beyond one is refused with a text that
names it.

An operator may set lower ones, those of the node that leads the metadata apply.

Existing objects are not checked: a log from before the limits is read as it is, and its objects can be
changed and deleted.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from warren.limits_metadata import (
    BINDINGS_MAX,
    CLUSTER_MEMBERS_MAX,
    EXCHANGES_MAX,
    GLOBAL_PARAMETERS_MAX,
    PARAMETERS_MAX,
    PERMISSIONS_MAX,
    POLICIES_MAX,
    QUEUES_MAX,
    TOPIC_PERMISSIONS_MAX,
    USERS_MAX,
    VHOSTS_MAX,
)
from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PutUser,
    PutVhost,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.metadata.declared_topology import binding_of
from warren.metadata.member_checks import member_refusal
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.metadata.parameters import OPERATOR_POLICY, PARAMETERS_OF_OTHERS, POLICY, GlobalParameters
from warren.metadata.permissions import Permissions
from warren.metadata.users import Users
from warren.metadata.vhosts import VhostMetadata, Vhosts


class ConfiguredBounds(Struct, frozen=True, kw_only=True):
    """The limits that an operator sets on the objects of all virtual hosts; None is no limit."""

    vhosts: int | None = None
    queues: int | None = None
    exchanges: int | None = None


class ExistingMetadata(Protocol):
    """The objects that exist before a command is applied."""

    bounds: ConfiguredBounds
    users: Users
    vhosts: Vhosts
    permissions: Permissions
    global_parameters: GlobalParameters
    members: ClusterMembers

    def vhost(self, name: str) -> VhostMetadata | None:
        """The virtual host `name`; None if it does not exist."""


Check = Callable[[ExistingMetadata, MetadataCommand], str | None]


def beyond_bounds(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    """The reason why `command` would exceed a limit; None if it does not."""
    check = _CHECKS.get(type(command))
    return None if check is None else check(metadata, command)


def _is_full(what: str, known: Mapping[str, object], name: str, most: int) -> str | None:
    return f"the limit of {most} {what} is reached" if name not in known and len(known) >= most else None


def _total(metadata: ExistingMetadata, what: str) -> int:
    """The number of `queues` or `exchanges` of all virtual hosts."""
    return sum(len(getattr(vhost.topology, what)) for vhost in metadata.vhosts.by_name.values())


def _policy(metadata: ExistingMetadata, vhost: str, name: str, *, is_operator: bool) -> str | None:
    found = metadata.vhost(vhost)
    if found is None:
        return None
    policies = found.operator_policies if is_operator else found.policies
    what = "operator policies" if is_operator else "policies"
    return _is_full(f"{what} in vhost '{vhost}'", policies.by_name, name, POLICIES_MAX)


def _set_policy(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, SetPolicy)
    return _policy(metadata, command.vhost, command.name, is_operator=command.is_operator)


def _set_parameter(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, SetParameter)
    if command.component not in PARAMETERS_OF_OTHERS:
        found = metadata.vhost(command.vhost)
        known = {} if found is None else found.parameters.by_key
        is_new = (command.component, command.name) not in known
        is_full = is_new and len(known) >= PARAMETERS_MAX
        what = f"parameters in vhost '{command.vhost}'"
        return f"the limit of {PARAMETERS_MAX} {what} is reached" if is_full else None
    if command.component not in (POLICY, OPERATOR_POLICY):
        return None
    is_operator = command.component == OPERATOR_POLICY
    return _policy(metadata, command.vhost, command.name, is_operator=is_operator)


def _declare_queue(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, DeclareQueue)
    found = metadata.vhost(command.vhost)
    most = metadata.bounds.queues
    is_new = found is not None and command.name not in found.topology.queues
    if most is not None and is_new and _total(metadata, "queues") >= most:
        return f"queue limit in cluster ({most}) is reached"
    # No text is made for each of very many declarations.
    if found is None or len(found.topology.queues) < QUEUES_MAX:
        return None
    return _is_full(f"queues in vhost '{command.vhost}'", found.topology.queues, command.name, QUEUES_MAX)


def _declare_exchange(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, DeclareExchange)
    found = metadata.vhost(command.vhost)
    if found is None:
        return None
    most = metadata.bounds.exchanges
    is_new = command.name not in found.topology.exchanges
    if most is not None and is_new and _total(metadata, "exchanges") >= most:
        return f"exchange limit of {most} is reached"
    what = f"exchanges in vhost '{command.vhost}'"
    return _is_full(what, found.topology.exchanges, command.name, EXCHANGES_MAX)


def _bind(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, Bind)
    found = metadata.vhost(command.vhost)
    if found is None or found.topology.binding_count < BINDINGS_MAX:
        return None
    if found.topology.has_binding(binding_of(command)):
        return None
    return f"the limit of {BINDINGS_MAX} bindings in vhost '{command.vhost}' is reached"


def _put_user(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, PutUser)
    return _is_full("users", metadata.users.by_name, command.name, USERS_MAX)


def _put_vhost(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, PutVhost)
    most, known = metadata.bounds.vhosts, metadata.vhosts.by_name
    if most is not None and command.name not in known and len(known) >= most:
        return f"cannot create vhost '{command.name}': vhost limit of {most} is reached"
    return _is_full("virtual hosts", known, command.name, VHOSTS_MAX)


def _set_permissions(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, SetPermissions)
    known = metadata.permissions.by_user_and_vhost
    if len(known) < PERMISSIONS_MAX or (command.user, command.vhost) in known:
        return None
    return f"the limit of {PERMISSIONS_MAX} permissions is reached"


def _set_topic_permissions(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, SetTopicPermissions)
    all_of_them = metadata.permissions.topics_by_user_and_vhost
    known = all_of_them.get((command.user, command.vhost))
    if known is None:
        is_full = len(all_of_them) >= PERMISSIONS_MAX
        return f"the limit of {PERMISSIONS_MAX} topic permissions is reached" if is_full else None
    what = f"topic permissions of user '{command.user}' in vhost '{command.vhost}'"
    return _is_full(what, known, command.exchange, TOPIC_PERMISSIONS_MAX)


def _set_global_parameter(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, SetGlobalParameter)
    known = metadata.global_parameters.by_name
    return _is_full("global parameters", known, command.name, GLOBAL_PARAMETERS_MAX)


def _admit_member(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, AdmitMember)
    if len(metadata.members.by_id) >= CLUSTER_MEMBERS_MAX:
        return f"the limit of {CLUSTER_MEMBERS_MAX} members is reached"
    return member_refusal(command)


def _describe_member(metadata: ExistingMetadata, command: MetadataCommand) -> str | None:
    assert isinstance(command, FormCluster | MemberUp)
    return member_refusal(command)


_CHECKS: dict[type[MetadataCommand], Check] = {
    SetPolicy: _set_policy,
    SetParameter: _set_parameter,
    DeclareQueue: _declare_queue,
    DeclareExchange: _declare_exchange,
    Bind: _bind,
    PutUser: _put_user,
    PutVhost: _put_vhost,
    SetPermissions: _set_permissions,
    SetTopicPermissions: _set_topic_permissions,
    SetGlobalParameter: _set_global_parameter,
    AdmitMember: _admit_member,
    FormCluster: _describe_member,
    MemberUp: _describe_member,
}
