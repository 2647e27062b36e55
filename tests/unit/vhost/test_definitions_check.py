"""Definitions are checked before they change anything."""

import pytest
from tests.unit.vhost.conftest import LiveVhost

from warren.limits import DEFINITIONS_NAMED_MAX
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PutUser,
    PutVhost,
    SetPermissions,
    SetPolicy,
)
from warren.metadata.definitions_import import DefinitionsError
from warren.vhost.definitions_check import CheckedDefinitions, check_definitions


def test_valid_commands_are_all_kept(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [
        PutVhost(name="w"),
        DeclareExchange(vhost="w", name="x", type="topic"),
        DeclareQueue(vhost="w", name="q", arguments={"x-max-length": 5}),
        Bind(vhost="w", source="x", destination="q", routing_key="#"),
        Bind(vhost="w", source="amq.headers", destination="q", arguments={"x-match": "any"}),
        Bind(vhost="w", source="missing", destination="q"),
    ]
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [])


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (DeclareExchange(vhost="v", name="x", type="nonsense"), "unknown exchange type 'nonsense'"),
        (
            DeclareQueue(vhost="v", name="q", arguments={"x-max-length": -1}),
            "invalid arg 'x-max-length' for queue 'q' in vhost 'v': {value_negative,-1}",
        ),
    ],
)
def test_an_invalid_command_is_named(live: LiveVhost, command: MetadataCommand, text: str) -> None:
    with pytest.raises(DefinitionsError) as caught:
        check_definitions([command], live.metadata)
    assert str(caught.value) == text


def test_queues_of_every_type_are_kept(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [
        DeclareQueue(vhost="v", name="q", durable=True, arguments={"x-queue-type": "quorum"}),
        DeclareQueue(vhost="v", name="s", durable=True, arguments={"x-queue-type": "stream"}),
        PutVhost(name="w", default_queue_type="quorum"),
    ]
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [])


def test_a_pattern_that_is_too_large_is_named(live: LiveVhost) -> None:
    kept = DeclareQueue(vhost="v", name="kept")
    found = check_definitions([policy(0), kept], live.metadata)
    assert found.commands == [kept]
    assert [text.partition(":")[0] for text in found.left_out] == ["policy 'p0' in vhost 'v'"]
    with pytest.raises(DefinitionsError, match="policy 'p0' in vhost 'v'"):
        found.complete()


def policy(number: int) -> SetPolicy:
    """A policy whose pattern is refused, because it is too large."""
    return SetPolicy(vhost="v", name=f"p{number}", pattern="(a{999}){999}", definition={"expires": 1})


def test_what_another_broker_has_declared_for_its_federation_is_kept(live: LiveVhost) -> None:
    purpose = {"x-internal-purpose": "federation"}
    commands: list[MetadataCommand] = [
        DeclareQueue(vhost="v", name="federation: x -> c", durable=True, arguments=purpose),
        DeclareExchange(
            vhost="v", name="federation: x -> c A", type="x-federation-upstream",
            arguments=purpose | {"x-max-hops": 1},
        ),
    ]  # fmt: skip
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [])


def test_the_first_invalid_commands_are_named_and_the_others_counted(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [policy(number) for number in range(DEFINITIONS_NAMED_MAX + 2)]
    with pytest.raises(DefinitionsError) as caught:
        check_definitions(commands, live.metadata).complete()
    assert f"policy 'p{DEFINITIONS_NAMED_MAX - 1}'" in str(caught.value)
    assert str(caught.value).endswith("; and 2 more")


def test_a_binding_that_its_exchange_refuses_is_skipped(live: LiveVhost) -> None:
    live.apply(DeclareExchange(vhost="v", name="old", type="x-consistent-hash"))
    commands: list[MetadataCommand] = [
        DeclareExchange(vhost="v", name="new", type="x-consistent-hash"),
        Bind(vhost="v", source="old", destination="q", routing_key="abc"),
        Bind(vhost="v", source="new", destination="q", routing_key="abc"),
        Bind(vhost="v", source="new", destination="q", routing_key="10"),
        Bind(vhost="v", source="amq.headers", destination="q", arguments={"x-match": "some"}),
    ]
    assert check_definitions(commands, live.metadata).commands == [commands[0], commands[3]]


def test_a_binding_of_a_quorum_queue_to_a_local_random_exchange_is_skipped(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="there", durable=True, arguments={"x-queue-type": "quorum"}))
    commands: list[MetadataCommand] = [
        DeclareExchange(vhost="v", name="near", type="x-local-random"),
        DeclareQueue(vhost="v", name="new", durable=True, arguments={"x-queue-type": "quorum"}),
        DeclareQueue(vhost="v", name="classic", durable=True),
        Bind(vhost="v", source="near", destination="there"),
        Bind(vhost="v", source="near", destination="new"),
        Bind(vhost="v", source="near", destination="amq.fanout", is_to_queue=False),
        Bind(vhost="v", source="near", destination="classic"),
    ]
    assert check_definitions(commands, live.metadata).commands == [*commands[:3], commands[-1]]


def test_a_queue_of_a_document_gets_the_default_type_of_its_virtual_host(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="old", durable=True))
    stream = {"x-queue-type": "stream"}
    commands: list[MetadataCommand] = [
        PutVhost(name="v", default_queue_type="quorum"),
        PutVhost(name="w", default_queue_type="quorum"),
        DeclareQueue(vhost="w", name="plain", durable=True),
        DeclareQueue(vhost="w", name="other", durable=True, arguments=stream),
        DeclareQueue(vhost="w", name="transient"),
        DeclareQueue(vhost="w", name="deleted", durable=True, auto_delete=True),
        DeclareQueue(vhost="v", name="old", durable=True),
        DeclareQueue(vhost="v", name="new", durable=True),
    ]
    queues = [
        one for one in check_definitions(commands, live.metadata).commands if isinstance(one, DeclareQueue)
    ]
    assert {queue.name: queue.arguments for queue in queues} == {
        "plain": {"x-queue-type": "quorum"},
        "other": stream,
        "transient": {},
        "deleted": {},
        "old": {},
        "new": {"x-queue-type": "quorum"},
    }


def test_who_imports_a_new_virtual_host_gets_permissions_there_which_the_document_may_restrict(
    live: LiveVhost,
) -> None:
    live.apply(PutUser(name="al", password_hash=b"", hashing_algorithm=""))
    restricted = SetPermissions(user="al", vhost="w", configure="^a", write="^a", read="^a")
    commands: list[MetadataCommand] = [PutVhost(name="v"), PutVhost(name="w"), restricted]
    granted = SetPermissions(user="al", vhost="w", configure=".*", write=".*", read=".*")
    found = check_definitions(commands, live.metadata, owner="al").commands
    assert found == [*commands[:2], granted, restricted]
    assert check_definitions(commands, live.metadata, owner="nobody").commands == commands
