"""What is written to the log: only what a replay, which checks less, may repeat."""

import pytest

from warren.journal.durability import durable_commands
from warren.metadata.commands import DeclareQueue, MetadataCommand, PutVhost, SetParameter
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals

SET = "federation-upstream-set"


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="v"))
    local.apply(DeclareQueue(vhost="v", name="q", durable=True))
    return metadata


@pytest.mark.parametrize("component", ["shovel", "federation-upstream", SET, "nosuch"])
def test_a_parameter_that_will_be_refused_is_not_written(metadata: Metadata, component: str) -> None:
    command = SetParameter(vhost="v", component=component, name="n", value={"nosuch": 1})
    assert durable_commands(metadata, command) == []


def test_a_parameter_that_will_be_accepted_is_written(metadata: Metadata) -> None:
    command = SetParameter(vhost="v", component=SET, name="n", value=[])
    assert durable_commands(metadata, command) == [command]


def test_what_is_beyond_a_bound_is_not_written(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    command: MetadataCommand = DeclareQueue(vhost="v", name="r", durable=True)
    assert durable_commands(metadata, command) == [command]
    monkeypatch.setattr("warren.metadata.bounds.QUEUES_MAX", 1)
    assert durable_commands(metadata, command) == []
