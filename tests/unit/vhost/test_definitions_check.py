"""Definitions are checked before they change anything."""

import pytest
from tests.exported import export_definitions
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
from warren.metadata.users import PasswordHash
from warren.vhost.definitions_check import CheckedDefinitions, check_definitions, check_document


def test_valid_commands_are_all_kept(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [
        PutVhost(name="w"),
        DeclareExchange(vhost="w", name="x", type="topic"),
        DeclareQueue(vhost="w", name="q", arguments={"x-max-length": 5}),
        Bind(vhost="w", source="x", destination="q", routing_key="#"),
        Bind(vhost="w", source="amq.headers", destination="q", arguments={"x-match": "any"}),
    ]
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [], [])


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            DeclareExchange(vhost="v", name="x", type="nonsense"),
            "exchange 'x' in vhost 'v': unknown exchange type 'nonsense'",
        ),
        (
            DeclareQueue(vhost="v", name="q", arguments={"x-max-length": -1}),
            "queue 'q' in vhost 'v': "
            "invalid arg 'x-max-length' for queue 'q' in vhost 'v': {value_negative,-1}",
        ),
    ],
)
def test_an_invalid_command_is_named(live: LiveVhost, command: MetadataCommand, text: str) -> None:
    found = check_definitions([command], live.metadata)
    assert (found.commands, found.refused, found.left_out) == ([], [command], [text])


def test_what_exists_is_kept_whatever_its_arguments_in_the_document(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="q"))
    live.apply(DeclareExchange(vhost="v", name="x", type="fanout"))
    commands: list[MetadataCommand] = [
        DeclareExchange(vhost="v", name="x", type="nonsense"),
        DeclareQueue(vhost="v", name="q", arguments={"x-max-length": -1}),
    ]
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [], [])


def test_queues_of_every_type_are_kept(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [
        DeclareQueue(vhost="v", name="q", durable=True, arguments={"x-queue-type": "quorum"}),
        DeclareQueue(vhost="v", name="s", durable=True, arguments={"x-queue-type": "stream"}),
        PutVhost(name="w", default_queue_type="quorum"),
    ]
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [], [])


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
    assert check_definitions(commands, live.metadata) == CheckedDefinitions(commands, [], [], [])


def test_the_first_invalid_commands_are_named_and_the_others_counted(live: LiveVhost) -> None:
    commands: list[MetadataCommand] = [policy(number) for number in range(DEFINITIONS_NAMED_MAX + 2)]
    with pytest.raises(DefinitionsError) as caught:
        check_definitions(commands, live.metadata).complete()
    assert f"policy 'p{DEFINITIONS_NAMED_MAX - 1}'" in str(caught.value)
    assert str(caught.value).endswith("; and 2 more")


def test_a_binding_that_its_exchange_refuses_is_skipped(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="q"))
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


def test_a_queue_of_a_document_gets_the_default_type_of_the_node_if_its_virtual_host_has_none(
    live: LiveVhost,
) -> None:
    live.apply(DeclareQueue(vhost="v", name="old", durable=True))
    commands: list[MetadataCommand] = [
        PutVhost(name="w", default_queue_type="stream"),
        DeclareQueue(vhost="w", name="other", durable=True),
        DeclareQueue(vhost="v", name="old", durable=True),
        DeclareQueue(vhost="v", name="new", durable=True),
        DeclareQueue(vhost="v", name="transient"),
    ]
    found = check_definitions(commands, live.metadata, default_type="quorum").commands
    assert {
        one.name: one.arguments.get("x-queue-type") for one in found if isinstance(one, DeclareQueue)
    } == {
        "other": "stream",
        "old": None,
        "new": "quorum",
        "transient": None,
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


def test_a_binding_without_one_of_its_ends_is_skipped_and_named(live: LiveVhost) -> None:
    live.apply(DeclareQueue(vhost="v", name="amq.gen-1", owner="c"))
    commands: list[MetadataCommand] = [
        DeclareQueue(vhost="v", name="q"),
        Bind(vhost="v", source="amq.topic", destination="amq.gen-1", routing_key="a"),
        Bind(vhost="v", source="amq.topic", destination="prefix-1", routing_key="a"),
        Bind(vhost="v", source="amq.topic", destination="gone", routing_key="a", is_to_queue=False),
        Bind(vhost="v", source="gone", destination="q", routing_key="a"),
        Bind(vhost="v", source="", destination="q", routing_key="q"),
    ]
    found = check_definitions(commands, live.metadata)
    assert found.commands == [commands[0], commands[-1]]
    topic = "binding from exchange 'amq.topic' to"
    assert found.warnings == [
        f"{topic} queue 'amq.gen-1' with key 'a' in vhost 'v': skipped: "
        "a queue that the server has named is not imported",
        f"{topic} queue 'prefix-1' with key 'a' in vhost 'v': skipped: no queue 'prefix-1'",
        f"{topic} exchange 'gone' with key 'a' in vhost 'v': skipped: no exchange 'gone'",
        "binding from exchange 'gone' to queue 'q' with key 'a' in vhost 'v': skipped: no exchange 'gone'",
    ]


def test_every_entry_of_a_document_that_cannot_be_declared_is_named(live: LiveVhost) -> None:
    good = {"name": "good", "vhost": "v"}
    document = {
        "permissions": [{"user": "no", "vhost": "v", "configure": "", "write": "", "read": ""}],
        "policies": [{"vhost": "v", "name": "p", "pattern": "(", "definition": {"max-length": 5}}],
        "queues": [
            good,
            {"name": "gone", "vhost": "w"},
            {"name": "loose", "vhost": "v", "durable": "yes"},
            {"name": "bad", "vhost": "v", "arguments": {"x-max-length": -1}},
        ],
    }
    found = check_document(document, live.metadata, no_hash)
    assert [command.name for command in found.commands if isinstance(command, DeclareQueue)] == ["good"]
    assert [text.split(": ")[0] for text in found.left_out] == [
        "queue 'loose' in vhost 'v'",
        "queue 'bad' in vhost 'v'",
        "permissions of user 'no' in vhost 'v'",
        "policy 'p' in vhost 'v'",
        "queue 'gone' in vhost 'w'",
    ]
    with pytest.raises(DefinitionsError, match=r"nothing was imported.* no such user 'no'"):
        found.complete()


def test_parameters_of_components_that_are_unknown_are_kept_named_and_exported(live: LiveVhost) -> None:
    entry = {"vhost": "v", "component": "mqtt", "name": "m", "value": {"port": [1]}}
    found = check_document({"parameters": [entry]}, live.metadata, no_hash)
    assert found.warnings == [
        "parameter 'm' of component 'mqtt' in vhost 'v': "
        "it is kept without effect, as Warren has no component 'mqtt'"
    ]
    for command in found.complete():
        live.apply(command)
    assert export_definitions(live.metadata, version="4.4.1")["parameters"] == [entry]


def no_hash(password: str) -> PasswordHash:
    return PasswordHash(password.encode(), "rot13")
