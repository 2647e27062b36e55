"""Import plans, compared with the result of the import."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exported import export_definitions

from warren.limits import PLAN_RELEASED_PER_TURN, PLANNED_PER_TURN
from warren.metadata.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    PutUser,
    PutVhost,
    SetParameter,
)
from warren.metadata.definition_entries import DefinitionKey, definition_key_of
from warren.metadata.definitions_import import import_commands
from warren.metadata.import_plan import ImportPlan, PlanAction
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import PasswordHash
from warren.wire.table import Int32

SECTIONS = (
    "users", "vhosts", "permissions", "topic_permissions", "global_parameters", "policies", "parameters",
    "queues", "exchanges", "bindings",
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c"])
VHOSTS = st.sampled_from(["v", "w"])
FLAGS = st.booleans()
KINDS = st.sampled_from(["fanout", "topic"])
ARGUMENTS = st.sampled_from([{}, {"x-max-length": 5}, {"x-max-length": 6}])


def hashed(password: str) -> PasswordHash:
    return PasswordHash(password.encode(), "rabbit_password_hashing_sha256")


def entries(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries(fields), max_size=3)


DOCUMENTS = st.fixed_dictionaries(
    {
        "users": entries(name=NAMES, password_hash=st.sampled_from(["YQ==", "Yg=="]), tags=st.just([])),
        "vhosts": entries(name=VHOSTS, description=NAMES),
        "permissions": entries(user=NAMES, vhost=VHOSTS, configure=NAMES, write=NAMES, read=NAMES),
        "topic_permissions": entries(user=NAMES, vhost=VHOSTS, exchange=NAMES, write=NAMES, read=NAMES),
        "global_parameters": entries(name=NAMES, value=st.integers(0, 2)),
        "policies": entries(
            vhost=VHOSTS,
            name=NAMES,
            pattern=NAMES,
            definition=st.sampled_from([{"expires": 5}, {"expires": 6}]),
        ),
        "parameters": entries(
            vhost=VHOSTS,
            component=st.just("vhost-limits"),
            name=st.just("limits"),
            value=st.sampled_from([{"max-queues": 5}, {}, []]),
        ),
        "queues": entries(vhost=VHOSTS, name=NAMES, durable=FLAGS, auto_delete=FLAGS, arguments=ARGUMENTS),
        "exchanges": entries(vhost=VHOSTS, name=NAMES, type=KINDS, durable=FLAGS),
        "bindings": entries(
            vhost=VHOSTS,
            source=NAMES,
            destination=NAMES,
            routing_key=NAMES,
            arguments=ARGUMENTS,
            destination_type=st.sampled_from(["queue", "exchange"]),
        ),
    }
)


def planned(
    metadata: Metadata, commands: Iterable[MetadataCommand], *, prune: bool = False, vhost: str | None = None
) -> ImportPlan:
    plan = ImportPlan(metadata, commands, vhost=vhost, pruned=SECTIONS if prune else ())
    for _ in plan.steps():
        pass
    return plan


def metadata_of(*commands: MetadataCommand) -> Metadata:
    metadata = Metadata()
    for command in commands:
        LocalProposals(metadata, lambda: 0).apply(command)
    return metadata


def carry_out(metadata: Metadata, plan: ImportPlan) -> None:
    for item in plan.items:
        if item.command is not None:
            LocalProposals(metadata, lambda: 0).apply(item.command)


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_after_an_import_the_plan_is_empty(first: dict[str, Any], second: dict[str, Any]) -> None:
    metadata = metadata_of(*import_commands(first, hashed))
    commands = import_commands(second, hashed)
    plan = planned(metadata, commands)
    straight = metadata_of(*import_commands(first, hashed), *commands)
    carry_out(metadata, plan)
    blocked = {item.key for item in plan.items if item.action is PlanAction.BLOCKED}
    again = planned(metadata, commands)
    assert {item.key for item in again.items} <= blocked
    assert export_definitions(metadata, version="0") == export_definitions(straight, version="0")


@given(DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_importing_an_export_changes_and_prunes_nothing(document: dict[str, Any]) -> None:
    metadata = metadata_of(*import_commands(document, hashed))
    plan = planned(
        metadata, import_commands(export_definitions(metadata, version="3.10.8"), hashed), prune=True
    )
    assert plan.items == []
    assert plan.is_empty


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_pruning_leaves_only_the_objects_of_the_document(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    metadata = metadata_of(*import_commands(first, hashed))
    commands = import_commands(second, hashed)
    carry_out(metadata, planned(metadata, commands, prune=True))
    wanted = {definition_key_of(command) for command in commands}
    left = import_commands(export_definitions(metadata, version="3.10.8"), hashed)
    assert {definition_key_of(command) for command in left} <= wanted


BASE = (
    PutVhost(name="v"),
    PutUser(name="u", password_hash=b"secret", hashing_algorithm="x"),
    DeclareExchange(vhost="v", name="x", type="topic", durable=True),
    DeclareQueue(vhost="v", name="q", durable=True, arguments={"x-max-length": Int32(5)}),
    Bind(vhost="v", source="x", destination="q", arguments={"n": Int32(1)}),
)


def test_the_integer_type_of_an_argument_does_not_make_a_difference() -> None:
    metadata = metadata_of(*BASE)
    same = [
        DeclareQueue(vhost="v", name="q", durable=True, arguments={"x-max-length": 5}),
        Bind(vhost="v", source="x", destination="q", arguments={"n": 1}),
    ]
    plan = planned(metadata, same)
    assert (plan.items, plan.kept) == ([], 2)


def test_a_change_that_an_import_cannot_make_is_blocked_with_both_values() -> None:
    metadata = metadata_of(*BASE)
    (item,) = planned(metadata, [DeclareQueue(vhost="v", name="q", arguments={"x-max-length": 6})]).items
    assert (item.action, item.command) == (PlanAction.BLOCKED, None)
    assert item.before == {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}}
    assert item.after == {"durable": False, "auto_delete": False, "arguments": {"x-max-length": 6}}


def test_a_plan_contains_no_password_hash() -> None:
    metadata = metadata_of(*BASE)
    changed = PutUser(name="u", password_hash=b"other", hashing_algorithm="x", tags=("t",))
    (item,) = planned(metadata, [changed]).items
    assert item.action is PlanAction.CHANGE
    assert item.after == {"tags": ["t"], "limits": {}, "password": "another"}
    assert item.before == {"tags": [], "limits": {}}


def test_objects_deleted_together_with_another_are_not_listed() -> None:
    metadata = metadata_of(*BASE)
    items = planned(metadata, [PutVhost(name="v"), BASE[1], BASE[2]], prune=True).items
    assert [(item.action, item.key) for item in items] == [
        (PlanAction.DELETE, DefinitionKey("queues", "v", "q"))
    ]
    items = planned(metadata, [BASE[1]], prune=True).items
    assert [item.key for item in items] == [DefinitionKey("vhosts", "", "v")]


def test_spared_objects_are_not_pruned() -> None:
    metadata = metadata_of(*BASE)
    plan = ImportPlan(
        metadata, BASE[:1], vhost=None, pruned=["users"], spared={DefinitionKey("users", "", "u")}
    )
    assert [item for _ in plan.steps() for item in plan.items] == []


def test_entries_that_depend_on_missing_objects_are_blocked() -> None:
    commands = import_commands(
        {
            "permissions": [{"user": "n", "vhost": "v", "configure": "", "write": "", "read": ""}],
            "queues": [{"vhost": "none", "name": "q"}],
            "policies": [{"vhost": "v", "name": "p", "pattern": "(", "definition": {"expires": 1}}],
            "bindings": [
                {"vhost": "v", "source": s, "destination": d, "destination_type": "queue", "routing_key": ""}
                for s, d in (("x", "none"), ("none", "q"), ("amq.topic", "q"))
            ],
        },
        hashed,
    )
    items = planned(metadata_of(*BASE), commands).items
    reasons = [item.reason for item in items if item.action is PlanAction.BLOCKED]
    assert reasons[0] == "no user 'n'"
    assert "not a valid regular expression" in reasons[1] or "regular" in reasons[1]
    assert reasons[2:] == ["no vhost 'none'", "no queue 'none'", "no exchange 'none'"]
    assert [item.key.name for item in items if item.action is PlanAction.CREATE] == ["amq.topic"]


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("policies", {"name": "p", "pattern": "a{1000}" * 50, "definition": {"expires": 1}}),
        ("policies", {"name": "p", "pattern": "a", "definition": {"expires": 0}}),
        ("permissions", {"user": "u", "configure": "(", "write": "", "read": ""}),
        ("topic_permissions", {"user": "u", "exchange": "x", "write": "(", "read": ""}),
        ("parameters", {"component": "shovel", "name": "s", "value": {"src-uri": 5}}),
    ],
)
@pytest.mark.parametrize("vhost", ["v", "new"])
def test_a_plan_blocks_what_cannot_be_applied(section: str, entry: dict[str, Any], vhost: str) -> None:
    document = {"vhosts": [{"name": "new"}], section: [{"vhost": vhost, **entry}]}
    metadata = metadata_of(*BASE)
    commands = import_commands(document, hashed)
    items = planned(metadata, commands).items
    assert [(item.key.section, item.action) for item in items] == [
        ("vhosts", PlanAction.CREATE),
        (section, PlanAction.BLOCKED),
    ]
    assert items[-1].reason


def test_what_depends_on_a_blocked_entry_is_blocked_as_well() -> None:
    document = {
        "queues": [{"vhost": "none", "name": "q"}],
        "exchanges": [{"vhost": "none", "name": "y", "type": "direct"}],
        "bindings": [
            {
                "vhost": "none",
                "source": "y",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "",
            }
        ],
    }
    items = planned(metadata_of(*BASE), import_commands(document, hashed)).items
    assert [item.action for item in items] == [PlanAction.BLOCKED] * 3


def test_pruning_a_protected_virtual_host_is_blocked_and_names_it() -> None:
    metadata = metadata_of(*BASE, PutVhost(name="ledger", protected_from_deletion=True))
    (item,) = (item for item in planned(metadata, [], prune=True).items if item.key.name == "ledger")
    assert item.action is PlanAction.BLOCKED
    assert item.reason == "Refusing to delete virtual host 'ledger' because it is protected from deletion"


def test_a_large_plan_is_computed_in_steps() -> None:
    queues = [DeclareQueue(vhost="v", name=f"q{number}") for number in range(PLANNED_PER_TURN * 4)]
    plan = ImportPlan(metadata_of(*BASE), queues, vhost="v", pruned=["queues"])
    assert len(list(plan.steps())) >= 5
    assert len(plan.items) == len(queues) + 1


def test_a_large_plan_is_released_in_steps() -> None:
    metadata = Metadata()
    commands: list[MetadataCommand] = [
        PutVhost(name=f"v{at}") for at in range(PLAN_RELEASED_PER_TURN * 2 + 1)
    ]
    plan = ImportPlan(metadata, commands, vhost=None, pruned=())
    for _ in plan.steps():
        pass
    assert len(plan.items) == len(commands)
    assert sum(1 for _ in plan.end()) == 3
    assert not plan.items


def shovel_with(uri: str, **more: object) -> SetParameter:
    ends = {"src-uri": uri, "src-queue": "q", "dest-uri": "amqp://", "dest-queue": "r"}
    return SetParameter(vhost="v", component="shovel", name="s", value={**ends, **more}, user="al")


def test_a_hidden_password_that_is_stored_is_no_change() -> None:
    metadata = metadata_of(*BASE, shovel_with("amqp://u:secret@h"))
    plan = planned(metadata, [shovel_with("amqp://u:***@h")])
    assert (plan.items, plan.kept) == ([], 1)
    (item,) = planned(metadata, [shovel_with("amqp://u:***@h", **{"ack-mode": "no-ack"})]).items
    assert item.action is PlanAction.CHANGE
    assert item.after is not None
    assert item.before is not None
    assert item.after["value"]["src-uri"] == item.before["value"]["src-uri"]  # type: ignore[index]


def test_a_hidden_password_of_another_host_is_blocked_with_the_reason() -> None:
    metadata = metadata_of(*BASE, shovel_with("amqp://u:secret@h"))
    (item,) = planned(metadata, [shovel_with("amqp://u:***@elsewhere")]).items
    assert (item.action, item.command) == (PlanAction.BLOCKED, None)
    assert (
        "src-uri: the password is hidden, and none that you may see is known for this user, host and"
        in item.reason
    )
