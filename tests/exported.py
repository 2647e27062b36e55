"""Definitions documents as the HTTP API puts them together from their sections."""

from warren.metadata.definitions import DefinitionObject, definition_sections, vhost_definition_sections
from warren.metadata.machine import Metadata
from warren.metadata.vhosts import VhostMetadata


def export_definitions(metadata: Metadata, *, version: str) -> DefinitionObject:
    """Everything, as `GET /api/definitions` gives it."""
    sections = {name: list(entries) for name, entries in definition_sections(metadata)}
    return {"rabbit_version": version, "rabbitmq_version": version, **sections}


def export_vhost_definitions(vhost: VhostMetadata, *, version: str) -> DefinitionObject:
    """What is in `vhost`, as `GET /api/definitions/vhost` gives it."""
    sections = {name: list(entries) for name, entries in vhost_definition_sections(vhost)}
    return {"rabbit_version": version, **sections}
