"""Refuses commands with regular expressions that are too costly.

They are refused before they reach the metadata, which still reads those in an older log.
"""

from collections.abc import Mapping

from warren.metadata import validation
from warren.metadata.commands import (
    MetadataCommand,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.metadata.policies import UPSTREAM_PATTERN
from warren.model.patterns import TOO_LARGE, is_too_large


def costly_pattern(command: MetadataCommand) -> str | None:
    """The reason why `command` is refused, with RabbitMQ's text for an invalid pattern; None if it is not."""
    for pattern in _patterns(command):
        if is_too_large(pattern):
            return validation.failed([validation.invalid_pattern("pattern", TOO_LARGE, 0)])
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
