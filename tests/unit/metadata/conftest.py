"""Fixtures: metadata with one vhost and one user, and the events that its listeners received."""

from collections.abc import Callable

import pytest

from warren.metadata.commands import MetadataCommand, PutUser, PutVhost, Reply
from warren.metadata.events import Event
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="v"))
    local.apply(PutUser(name="u", password_hash=b"", hashing_algorithm="sha256"))
    return metadata


@pytest.fixture
def apply(metadata: Metadata) -> Callable[[MetadataCommand], Reply]:
    return LocalProposals(metadata, lambda: 0).apply


@pytest.fixture
def received(metadata: Metadata) -> list[Event]:
    events: list[Event] = []
    metadata.listen(events.append)
    return events
