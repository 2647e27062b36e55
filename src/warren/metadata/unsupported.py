"""Commands that are refused for what they cost, or because there is no shovel, federation or quorum queue.

They are refused before they reach the metadata, which goes on reading those that an older log holds.
"""

from collections.abc import Mapping

from warren.metadata import validation
from warren.metadata.commands import (
    MetadataCommand,
    PutVhost,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.model.erlang_terms import printed_pairs
from warren.model.patterns import TOO_LARGE, is_too_large

_COMPONENTS = frozenset(("shovel", "federation-upstream", "federation-upstream-set"))
_POLICY_KEYS = frozenset(("federation-upstream", "federation-upstream-set", "federation-upstream-pattern"))
_QUORUM = "quorum"


def unsupported(command: MetadataCommand) -> str | None:
    """Why `command` cannot be carried out, in the words of a RabbitMQ without the plugin; None if it can."""
    for pattern in _patterns(command):
        if is_too_large(pattern):
            return validation.failed([validation.invalid_pattern("pattern", TOO_LARGE, 0)])
    if isinstance(command, SetParameter) and command.component in _COMPONENTS:
        return validation.failed([f"component {command.component} not found"])
    if isinstance(command, SetPolicy) and isinstance(command.definition, Mapping):
        unknown = {key: value for key, value in command.definition.items() if key in _POLICY_KEYS}
        if unknown:
            return validation.failed([f"{printed_pairs(unknown)} are not recognised policy settings"])
    if isinstance(command, PutVhost) and command.default_queue_type == _QUORUM:
        return f"queue type '{_QUORUM}' is not supported yet: default of vhost '{command.name}'"
    return None


def _patterns(command: MetadataCommand) -> list[str]:
    """The regular expressions that `command` has."""
    found: list[object] = []
    if isinstance(command, SetPolicy):
        found = [command.pattern]
    elif isinstance(command, SetParameter) and isinstance(command.value, Mapping):
        # Policies are parameters to RabbitMQ.
        found = [command.value.get("pattern")]
    elif isinstance(command, SetPermissions):
        found = [command.configure, command.write, command.read]
    elif isinstance(command, SetTopicPermissions):
        found = [command.write, command.read]
    return [pattern for pattern in found if isinstance(pattern, str)]
