"""Commands that RabbitMQ can carry out and this broker cannot: it has no shovel, federation or quorum queue.

They are refused before they reach the metadata, which goes on reading those that an older log holds.
"""

from collections.abc import Mapping

from warren.metadata import validation
from warren.metadata.commands import Command, PutVhost, SetParameter, SetPolicy
from warren.model.terms import printed_pairs

_COMPONENTS = frozenset(("shovel", "federation-upstream", "federation-upstream-set"))
_POLICY_KEYS = frozenset(("federation-upstream", "federation-upstream-set", "federation-upstream-pattern"))
_QUORUM = "quorum"


def unsupported(command: Command) -> str | None:
    """Why `command` cannot be carried out, in the words of a RabbitMQ without the plugin; None if it can."""
    if isinstance(command, SetParameter) and command.component in _COMPONENTS:
        return validation.failed([f"component {command.component} not found"])
    if isinstance(command, SetPolicy) and isinstance(command.definition, Mapping):
        unknown = {key: value for key, value in command.definition.items() if key in _POLICY_KEYS}
        if unknown:
            return validation.failed([f"{printed_pairs(unknown)} are not recognised policy settings"])
    if isinstance(command, PutVhost) and command.default_queue_type == _QUORUM:
        return f"queue type '{_QUORUM}' is not supported yet: default of vhost '{command.name}'"
    return None
