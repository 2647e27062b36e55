"""Each command causes the audit events that RabbitMQ emits."""

import pytest

from warren.metadata import commands, member_commands
from warren.metadata.commands import CommandContext, MetadataCommand, Reply
from warren.metadata.events import Event
from warren.metadata.machine import Metadata
from warren.session.events.audit_events import _EVENTS_OF_COMMAND, _TOPOLOGY_COMMANDS, AuditEvents
from warren.session.events.event_publisher import EventPublisher
from warren.wire.table import Table, encode_table

USER = commands.PutUser(name="u", password_hash=b"secret", hashing_algorithm="x", tags=("management",))
POLICY = commands.SetPolicy(vhost="v", name="p", pattern="^a", definition={"max-length": 10}, priority=1)
FACTS = {"apply-to": "all", "priority": 1, "definition": {"max-length": 10}, "pattern": "^a"}


class EventRecorder:
    """The events since it was created, or since they were last read."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        event_publisher = EventPublisher(lambda: None, lambda _: None, node_name="n")
        self._changes = AuditEvents(self.metadata, event_publisher)
        self._reported: list[tuple[str, Table]] = []
        self.apply(commands.PutVhost(name="v"))
        self.metadata.observer = self._observe

    def _observe(
        self, command: MetadataCommand, context: CommandContext, reply: Reply, events: tuple[Event, ...]
    ) -> None:
        self._reported += self._changes.audit_events(command, reply, events)

    def apply(self, *asked: MetadataCommand) -> list[tuple[str, Table]]:
        """Apply the command; returns the events that it caused."""
        for command in asked:
            self.metadata.apply(command, CommandContext(index=1, now=0))
        audit_events, self._reported = self._reported, []
        for _, facts in audit_events:
            assert encode_table(facts)
        return audit_events


def test_a_user_is_created_changed_and_deleted() -> None:
    audit_events = EventRecorder()
    assert audit_events.apply(USER) == [
        ("user.created", {"name": "u"}),
        ("user.tags.set", {"tags": ["management"], "name": "u"}),
    ]
    assert [key for key, _ in audit_events.apply(USER)] == ["user.password.changed", "user.tags.set"]
    limits = commands.SetUserLimits(name="u", limits={"max-channels": 10})
    assert audit_events.apply(limits, commands.SetUserLimits(name="u", limits={})) == [
        ("user.limits.set", {"max-channels": 10, "username": "u", "name": "limits"}),
        ("user.limits.cleared", {"username": "u", "name": "limits"}),
    ]
    assert audit_events.apply(commands.RemoveUser(name="u")) == [("user.deleted", {"name": "u"})]


def test_permissions_emit_events_and_are_deleted_with_their_vhost() -> None:
    audit_events = EventRecorder()
    audit_events.apply(USER)
    allowed = commands.SetPermissions(user="u", vhost="v", configure="c", write="w", read="r")
    where = {"vhost": "v", "user": "u"}
    assert audit_events.apply(allowed) == [
        ("permission.created", {"read": "r", "write": "w", "configure": "c", **where})
    ]
    topic = commands.SetTopicPermissions(user="u", vhost="v", exchange="e", write="w", read="r")
    assert audit_events.apply(topic, commands.ClearTopicPermissions(user="u", vhost="v", exchange="e")) == [
        ("topic.permission.created", {"read": "r", "write": "w", "exchange": "e", **where}),
        ("topic.permission.deleted", {"exchange": "e", **where}),
    ]
    assert audit_events.apply(commands.RemoveVhost(name="v")) == [
        ("permission.deleted", where),
        ("vhost.deleted", {"name": "v"}),
    ]


@pytest.mark.parametrize("is_operator", [False, True])
def test_policies_emit_events(is_operator: bool) -> None:
    audit_events = EventRecorder()
    policy = commands.SetPolicy(
        vhost="v", name="p", pattern="^a", definition={"max-length": 10}, priority=1, is_operator=is_operator
    )
    keys = [
        key
        for key, _ in audit_events.apply(
            policy, commands.ClearPolicy(vhost="v", name="p", is_operator=is_operator)
        )
    ]
    if is_operator:
        assert keys == ["parameter.set", "policy.set", "parameter.cleared", "operator.policy.cleared"]
    else:
        assert keys == ["policy.set", "policy.cleared"]
    assert audit_events.apply(POLICY) == [("policy.set", {**FACTS, "vhost": "v", "name": "p"})]


def test_limits_and_parameters_emit_events() -> None:
    audit_events = EventRecorder()
    limits = commands.SetVhostLimits(vhost="v", limits={"max-queues": 3})
    assert [key for key, _ in audit_events.apply(limits, commands.SetVhostLimits(vhost="v", limits={}))] == [
        "parameter.set", "vhost.limits.set", "parameter.cleared", "vhost.limits.cleared",
    ]  # fmt: skip
    assert audit_events.apply(
        commands.SetGlobalParameter(name="g", value={"a": 1}), commands.ClearGlobalParameter(name="g")
    ) == [
        ("parameter.set", {"value": {"a": 1}, "name": "g", "component": "global"}),
        ("parameter.cleared", {"name": "g", "component": "global"}),
    ]


def test_events_contain_no_passwords_of_parameters() -> None:
    value = {"uri": "amqp://u:secret@h"}
    command = commands.SetParameter(vhost="v", component="federation-upstream", name="n", value=value)
    ((_, facts),) = EventRecorder().apply(command)
    assert facts["value"] == {"uri": "amqp://u:***@h"}
    assert "secret" not in repr(command)


def test_a_vhost_is_created_with_its_exchanges_and_can_change_its_description() -> None:
    audit_events = EventRecorder()
    found = audit_events.apply(commands.PutVhost(name="w", description="d", tags=("a", "b")))
    assert [key for key, _ in found] == ["exchange.created"] * 7 + ["vhost.created"]
    assert found[-1][1] == {
        "tags": ["a", "b"],
        "description": "d",
        "cluster_state": {"n": "running"},
        "tracing": False,
        "metadata": '#{description => <<"d">>,tags => [a,b]}',
        "default_queue_type": "undefined",
        "name": "w",
    }
    assert [key for key, _ in audit_events.apply(commands.PutVhost(name="w"))] == ["vhost.updated"]


def test_queues_and_bindings_emit_events_including_dependent_deletions() -> None:
    audit_events = EventRecorder()
    queue = commands.DeclareQueue(vhost="v", name="q", owner="1.1.7", arguments={"x-max-length": 5})
    assert audit_events.apply(queue) == [
        (
            "queue.created",
            {
                "exclusive": True,
                "owner_pid": "<n.0.7.0>",
                "arguments": ['{<<"x-max-length">>,long,5}'],
                "auto_delete": False,
                "durable": False,
                "name": "q",
                "vhost": "v",
            },
        )
    ]
    assert audit_events.apply(queue) == []
    bind = commands.Bind(vhost="v", source="e", destination="q", routing_key="k")
    exchange = commands.DeclareExchange(vhost="v", name="e", type="topic")
    assert [key for key, _ in audit_events.apply(POLICY, exchange, bind)] == [
        "policy.set", "exchange.created", "binding.created",
    ]  # fmt: skip
    gone = audit_events.apply(commands.DeleteQueue(vhost="v", name="q"))
    assert [key for key, _ in gone] == ["binding.deleted", "queue.deleted"]
    assert gone[0][1]["source_name"] == "e"
    assert audit_events.apply(commands.DeleteExchange(vhost="v", name="e")) == [
        ("exchange.deleted", {"name": "e", "vhost": "v"})
    ]


def test_refused_commands_emit_no_event() -> None:
    audit_events = EventRecorder()
    audit_events.apply(USER)
    refused = commands.SetPermissions(user="u", vhost="v", configure="(", write="", read="")
    assert (
        audit_events.apply(
            refused, commands.RemoveUser(name="nobody"), commands.DeleteQueue(vhost="v", name="x")
        )
        == []
    )


def test_every_command_has_an_event() -> None:
    known = {
        *_EVENTS_OF_COMMAND,
        *_TOPOLOGY_COMMANDS,
        commands.PutVhost,
        commands.RemoveVhost,
        commands.PutUser,
    }
    abstract = {commands.MetadataCommand, commands.VhostCommand, commands.PermissionCommand}
    # A snapshot restores what was told when it was done.
    restoring = {member_commands.RestoreMembers, member_commands.RestoreAppliedProposals}
    found = {
        value
        for module in (commands, member_commands)
        for value in vars(module).values()
        if isinstance(value, type)
    }
    kinds = {kind for kind in found if issubclass(kind, MetadataCommand)}
    assert kinds - abstract - restoring == known


def test_changes_of_the_members_are_told() -> None:
    audit_events = EventRecorder()
    formed = member_commands.FormCluster(
        cluster_id=bytes(16), name="a@h", host="h", cluster_port=1, incarnation=1, feature_level=1
    )
    admitted = member_commands.AdmitMember(
        name="b@h", host="h", cluster_port=2, incarnation=1, feature_level=1
    )
    assert audit_events.apply(formed, admitted, member_commands.RemoveMember(id=2)) == [
        ("cluster.formed", {"name": "a@h", "host": "h", "cluster_port": 1}),
        ("cluster.member.admitted", {"name": "b@h", "host": "h", "cluster_port": 2}),
        ("cluster.member.removed", {"id": 2, "is_forgotten": False}),
    ]


def test_other_members_of_a_quorum_queue_are_told_by_their_names() -> None:
    audit_events = EventRecorder()
    cluster = [
        member_commands.FormCluster(
            cluster_id=bytes(16), name="a@h", host="h", cluster_port=1, incarnation=1, feature_level=1
        ),
        *(
            member_commands.AdmitMember(name=name, host="h", cluster_port=2, incarnation=1, feature_level=1)
            for name in ("b@h", "c@h")
        ),
        member_commands.MemberUp(id=2, incarnation=1, host="h", cluster_port=2, feature_level=1),
        commands.PutVhost(name="v"),
        commands.DeclareQueue(
            vhost="v", name="q", durable=True, arguments={"x-queue-type": "quorum"}, members=(2, 3)
        ),
        commands.LeadQueue(vhost="v", queue="q", number=1, node=2),
    ]
    audit_events.apply(*cluster)
    change = commands.ChangeQueueMembers(vhost="v", queue="q", number=1, added=(1,), removed=(2,))
    told = [
        ("queue.members.changed", {"name": "q", "vhost": "v", "members": ["c@h", "a@h"]}),
        ("queue.members.changed", {"name": "q", "vhost": "v", "members": ["a@h"]}),
    ]
    assert audit_events.apply(change, commands.RemoveReplicas(node=3, count_max=9)) == told
    # The last member of a queue may have left.
    assert audit_events.apply(commands.RemoveReplicas(node=1, count_max=9)) == []
