"""Virtual hosts: what describes one, and what is in it."""

from collections.abc import Mapping

from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    ClearParameter,
    ClearPolicy,
    Json,
    PutVhost,
    RememberRemoved,
    RemoveVhost,
    Reply,
    SetParameter,
    SetPolicy,
    SetVhostLimits,
)
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.events import (
    Listener,
    PoliciesChanged,
    VhostAdded,
    VhostDescribed,
    VhostLimitsChanged,
    VhostRemoved,
)
from warren.metadata.parameters import (
    OPERATOR_POLICY,
    POLICY,
    VHOST_LIMITS,
    Parameters,
    as_limits,
    limits_refusal,
)
from warren.metadata.policies import Policies, Policy, checked_policy
from warren.metadata.queues_per_node import QueuesPerNode
from warren.metadata.users import natural_limit

_NO_POLICIES = (None, None)


def protection_refusal(name: str) -> str:
    """RabbitMQ 4's text about the deletion of the protected virtual host `name`."""
    return f"Refusing to delete virtual host '{name}' because it is protected from deletion"


class VhostMetadata:
    """One virtual host."""

    __slots__ = (
        "_notify",
        "default_queue_type",
        "description",
        "limits",
        "name",
        "operator_policies",
        "parameters",
        "policies",
        "protected_from_deletion",
        "tags",
        "topology",
        "tracing",
    )

    def __init__(self, name: str, notify: Listener, per_node: QueuesPerNode) -> None:
        self.name = name
        self._notify = notify
        self.description = ""
        self.tags: tuple[str, ...] = ()
        self.default_queue_type: str | None = None
        self.tracing = False
        self.protected_from_deletion = False
        self.limits: Mapping[str, Json] = {}
        self.topology = DeclaredTopology(name, notify, per_node)
        self.policies = Policies()
        self.operator_policies = Policies()
        self.parameters = Parameters(name, notify)

    def limit(self, name: str) -> int | None:
        """`max-connections` or `max-queues`; None if there is no such limit."""
        return natural_limit(self.limits, name)

    @property
    def has_policies(self) -> bool:
        """True if there is any policy or operator policy."""
        return bool(self.policies.by_name or self.operator_policies.by_name)

    def policies_of(self, name: str, kind: str) -> tuple[Policy | None, Policy | None]:
        """The policy and the operator policy of `name`, an `exchange` or a queue of that kind."""
        if not self.has_policies:
            return _NO_POLICIES
        return self.policies.match(name, kind), self.operator_policies.match(name, kind)

    def describe(self, command: PutVhost) -> None:
        """Set the properties that `command` has."""
        self.description = command.description
        self.tags = command.tags
        self.default_queue_type = command.default_queue_type
        self.tracing = command.tracing
        self.protected_from_deletion = command.protected_from_deletion

    def set_limits(self, command: SetVhostLimits) -> Reply:
        """Replace the limits."""
        refusal = limits_refusal(command.limits)
        if refusal is not None:
            return refusal
        self.limits = command.limits
        self._notify(VhostLimitsChanged(self.name))
        return DONE

    def set_policy(self, command: SetPolicy) -> Reply:
        """Create or replace a policy."""
        policy = checked_policy(command)
        if isinstance(policy, Reply):
            return policy
        self._policies(is_operator=command.is_operator).put(policy)
        self._notify(PoliciesChanged(self.name))
        return DONE

    def clear_policy(self, command: ClearPolicy) -> Reply:
        """Remove a policy."""
        if not self._policies(is_operator=command.is_operator).remove(command.name):
            return MISSING
        self._notify(PoliciesChanged(self.name))
        return DONE

    def set_parameter(self, command: SetParameter) -> Reply:
        """Set a parameter; limits and policies, which are parameters to RabbitMQ, go where they belong."""
        if command.component == VHOST_LIMITS:
            # RabbitMQ exports cleared limits as an empty list.
            value = {} if command.value == [] else command.value
            refusal = limits_refusal(value)
            return refusal or self.set_limits(SetVhostLimits(vhost=self.name, limits=as_limits(value)))
        if command.component in (POLICY, OPERATOR_POLICY) and isinstance(command.value, Mapping):
            return self.set_policy(
                SetPolicy(
                    vhost=self.name,
                    name=command.name,
                    pattern=command.value.get("pattern"),
                    definition=command.value.get("definition"),
                    priority=command.value.get("priority"),
                    apply_to=command.value.get("apply-to"),
                    is_operator=command.component == OPERATOR_POLICY,
                )
            )
        return self.parameters.put(command)

    def clear_parameter(self, command: ClearParameter) -> Reply:
        """Remove a parameter, limits or a policy."""
        if command.component == VHOST_LIMITS:
            return self.set_limits(SetVhostLimits(vhost=self.name, limits={}))
        if command.component in (POLICY, OPERATOR_POLICY):
            is_operator = command.component == OPERATOR_POLICY
            return self.clear_policy(ClearPolicy(vhost=self.name, name=command.name, is_operator=is_operator))
        return self.parameters.clear(command)

    def _policies(self, *, is_operator: bool) -> Policies:
        return self.operator_policies if is_operator else self.policies


class Vhosts:
    """All virtual hosts by name."""

    __slots__ = ("_notify", "_per_node", "by_name", "removed")

    def __init__(self, notify: Listener, per_node: QueuesPerNode) -> None:
        self._notify = notify
        self._per_node = per_node
        self.by_name: dict[str, VhostMetadata] = {}
        # Names of deleted virtual hosts whose files may still exist; listeners are not notified of these.
        self.removed: dict[str, None] = {}

    def put(self, command: PutVhost) -> Reply:
        """Create a vhost, or update the properties of an existing one."""
        vhost = self.by_name.get(command.name)
        if vhost is not None:
            vhost.describe(command)
            self._notify(VhostDescribed(command.name))
            return EXISTING
        self.removed.pop(command.name, None)
        vhost = self.by_name[command.name] = VhostMetadata(command.name, self._notify, self._per_node)
        vhost.describe(command)
        self._notify(VhostAdded(command.name))
        return DONE

    def remove(self, command: RemoveVhost) -> Reply:
        """Remove a vhost; the permissions are the machine's to remove."""
        vhost = self.by_name.pop(command.name, None)
        if vhost is None:
            return MISSING
        for queue in vhost.topology.queues.values():
            self._per_node.remove(queue)
        self.removed[command.name] = None
        self._notify(VhostRemoved(command.name))
        return DONE

    def remember_removed(self, command: RememberRemoved) -> Reply:
        """Some were removed before."""
        for name in command.names:
            if name not in self.by_name:
                self.removed[name] = None
        return DONE
