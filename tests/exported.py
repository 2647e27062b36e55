"""Definitions documents, put together from their sections as in the HTTP API."""

from warren.metadata.definitions import DefinitionObject, definition_sections, vhost_definition_sections
from warren.metadata.machine import Metadata
from warren.metadata.vhosts import VhostMetadata


def export_definitions(metadata: Metadata, *, version: str) -> DefinitionObject:
    """Return all definitions, as `GET /api/definitions` does."""
    sections = {name: list(entries) for name, entries in definition_sections(metadata)}
    return {"rabbit_version": version, "rabbitmq_version": version, **sections}


def export_vhost_definitions(vhost: VhostMetadata, *, version: str) -> DefinitionObject:
    """Return the definitions of `vhost`, as `GET /api/definitions/vhost` does."""
    sections = {name: list(entries) for name, entries in vhost_definition_sections(vhost)}
    return {"rabbit_version": version, **sections}
