"""Which commands need not be synced before they are applied: what they do does not survive a restart."""

import random

import pytest
from tests.sim.metadata_commands import any_command
from tests.sim.test_journal import NEXT_RUN, described

from warren.journal.volatility import is_certain, is_volatile
from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteExclusiveQueues,
    DeleteQueue,
    MetadataCommand,
    PauseQueue,
    PutVhost,
    Unbind,
)
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster

MADE: tuple[MetadataCommand, ...] = (
    PutVhost(name="v"),
    DeclareQueue(vhost="v", name="durable", durable=True),
    DeclareQueue(vhost="v", name="transient"),
    DeclareQueue(vhost="v", name="own", durable=True, owner="c"),
    DeclareQueue(vhost="v", name="bound", owner="d"),
    DeclareQueue(vhost="v", name="far", owner="e"),
    DeclareExchange(vhost="v", name="kept", type="fanout", durable=True),
    DeclareExchange(vhost="v", name="lasting", type="fanout", durable=True, auto_delete=True),
    DeclareExchange(vhost="v", name="passing", type="fanout", auto_delete=True),
    Bind(vhost="v", source="kept", destination="own"),
    Bind(vhost="v", source="lasting", destination="bound"),
    Bind(vhost="v", source="lasting", destination="passing", is_to_queue=False),
    Bind(vhost="v", source="passing", destination="far"),
    Bind(vhost="v", source="kept", destination="durable"),
)


def made(commands: tuple[MetadataCommand, ...] = MADE) -> Metadata:
    metadata = Metadata()
    for index, command in enumerate(commands, 1):
        metadata.apply(command, CommandContext(index=index, now=0))
    return metadata


@pytest.mark.parametrize(
    "command",
    [
        DeclareQueue(vhost="v", name="new"),
        DeclareQueue(vhost="v", name="new", durable=True, owner="c"),
        DeclareQueue(vhost="v", name="durable", durable=True),
        DeclareQueue(vhost="nowhere", name="new", durable=True),
        DeclareExchange(vhost="v", name="new", type="fanout"),
        Bind(vhost="v", source="kept", destination="transient"),
        Bind(vhost="v", source="kept", destination="durable"),
        Bind(vhost="v", source="nothing", destination="durable"),
        Unbind(vhost="v", source="kept", destination="own"),
        PauseQueue(vhost="v", name="transient"),
        DeleteQueue(vhost="v", name="transient"),
        DeleteQueue(vhost="v", name="own"),
        DeleteQueue(vhost="v", name="nothing"),
        DeleteExchange(vhost="v", name="kept", if_unused=True),
        DeleteExclusiveQueues(vhost="v", owner="c", count_max=9),
        DeleteExclusiveQueues(vhost="v", owner="nobody", count_max=9),
    ],
)
def test_what_leaves_nothing_after_a_restart_is_volatile(command: MetadataCommand) -> None:
    assert is_volatile(made(), command)


@pytest.mark.parametrize(
    "command",
    [
        PutVhost(name="w"),
        DeclareQueue(vhost="v", name="new", durable=True),
        DeclareExchange(vhost="v", name="new", type="fanout", durable=True),
        Bind(vhost="v", source="lasting", destination="durable"),
        Unbind(vhost="v", source="kept", destination="durable"),
        PauseQueue(vhost="v", name="durable"),
        DeleteQueue(vhost="v", name="durable"),
        # A durable auto-delete exchange can lose its last binding.
        DeleteQueue(vhost="v", name="bound"),
        DeleteQueue(vhost="v", name="far"),
        DeleteExchange(vhost="v", name="passing"),
        DeleteExclusiveQueues(vhost="v", owner="d", count_max=9),
        DeleteExclusiveQueues(vhost="v", owner="e", count_max=9),
        Unbind(vhost="v", source="lasting", destination="bound"),
    ],
)
def test_what_may_leave_something_is_not_volatile(command: MetadataCommand) -> None:
    assert not is_volatile(made(), command)


@pytest.mark.parametrize(
    "command",
    [
        DeclareQueue(vhost="v", name="durable", durable=True),
        DeclareExchange(vhost="v", name="kept", type="fanout", durable=True),
        Bind(vhost="v", source="kept", destination="durable"),
        Unbind(vhost="v", source="kept", destination="durable", routing_key="not bound"),
        DeleteQueue(vhost="v", name="nothing"),
        DeleteExchange(vhost="v", name="nothing"),
    ],
)
def test_an_answer_that_a_refused_command_could_make_untrue_is_not_certain(command: MetadataCommand) -> None:
    assert is_volatile(made(), command)
    assert not is_certain(made(), command)


@pytest.mark.parametrize(
    "command",
    [
        DeclareQueue(vhost="v", name="new"),
        DeclareQueue(vhost="v", name="new", durable=True, owner="c"),
        DeclareQueue(vhost="nowhere", name="new", durable=True),
        DeclareExchange(vhost="v", name="new", type="fanout"),
        Bind(vhost="v", source="kept", destination="transient"),
        Unbind(vhost="v", source="kept", destination="own"),
        DeleteQueue(vhost="v", name="transient"),
        DeleteExclusiveQueues(vhost="v", owner="c", count_max=9),
        DeleteEphemeral(node=1, incarnation=2, count_max=9),
    ],
)
def test_an_answer_about_what_ends_with_this_run_is_certain(command: MetadataCommand) -> None:
    assert is_volatile(made(), command)
    assert is_certain(made(), command)


def test_with_another_member_nothing_is_volatile() -> None:
    members: tuple[MetadataCommand, ...] = (
        FormCluster(cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=1, feature_level=1),
        AdmitMember(name="b", host="h", cluster_port=1, incarnation=1, feature_level=1),
    )
    declare = DeclareQueue(vhost="v", name="new")
    assert is_volatile(made((*MADE, members[0])), declare)
    for command in (declare, DeleteEphemeral(node=1, incarnation=2, count_max=9)):
        assert not is_volatile(made((*MADE, *members)), command)


@pytest.mark.seeds(100)
def test_a_restart_before_and_after_a_volatile_command_finds_the_same(seed: int) -> None:
    chance = random.Random(seed)
    history: list[MetadataCommand] = [PutVhost(name="v"), PutVhost(name="w")]
    metadata = made(tuple(history))
    for _ in range(60):
        command = any_command(chance)
        if is_volatile(metadata, command):
            without, behind = (described(made((*history, *more, NEXT_RUN))) for more in ((), (command,)))
            assert behind == without, command
        metadata.apply(command, CommandContext(index=metadata.index + 1, now=0))
        history.append(command)
