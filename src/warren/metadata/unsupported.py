"""Refuses commands that are too costly, or need queues of a type that is not supported.

They are refused before they reach the metadata, which still reads those in an older log.
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
from warren.metadata.policies import UPSTREAM_PATTERN
from warren.model.arguments import QUEUE_KINDS, SUPPORTED_KINDS
from warren.model.patterns import TOO_LARGE, is_too_large


def unsupported(command: MetadataCommand) -> str | None:
    """The reason why `command` is refused, with the text of a RabbitMQ without the plugin.

    None if it is not.
    """
    for pattern in _patterns(command):
        if is_too_large(pattern):
            return validation.failed([validation.invalid_pattern("pattern", TOO_LARGE, 0)])
    return _unsupported_type(command) if isinstance(command, PutVhost) else None


def _unsupported_type(command: PutVhost) -> str | None:
    kind = command.default_queue_type
    if kind in QUEUE_KINDS and kind not in SUPPORTED_KINDS:
        return f"queue type '{kind}' is not supported yet: default of vhost '{command.name}'"
    return None


def _patterns(command: MetadataCommand) -> list[str]:
    """The regular expressions in `command`."""
    found: list[object] = []
    if isinstance(command, SetPolicy):
        definition = command.definition
        upstreams = definition.get(UPSTREAM_PATTERN) if isinstance(definition, Mapping) else None
        found = [command.pattern, upstreams]
    elif isinstance(command, SetParameter) and isinstance(command.value, Mapping):
        # RabbitMQ treats policies as parameters.
        found = [command.value.get("pattern")]
    elif isinstance(command, SetPermissions):
        found = [command.configure, command.write, command.read]
    elif isinstance(command, SetTopicPermissions):
        found = [command.write, command.read]
    return [pattern for pattern in found if isinstance(pattern, str)]
