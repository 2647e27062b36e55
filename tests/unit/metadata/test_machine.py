"""The metadata machine: commands change related objects together, and listeners receive the events."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exported import export_definitions

from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    Bind,
    ClearGlobalParameter,
    ClearParameter,
    ClearPermissions,
    ClearPolicy,
    ClearTopicPermissions,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteExchange,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    Outcome,
    PauseQueue,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    RenewLease,
    Reply,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
    SetUserLimits,
    SetUserTags,
    SetVhostLimits,
    Unbind,
)
from warren.metadata.declared_topology import DeclaredTopology
from warren.metadata.definitions_import import import_commands
from warren.metadata.events import (
    Event,
    PermissionsChanged,
    PoliciesChanged,
    QueueDeclared,
    QueueDeleted,
    UserChanged,
    UserRemoved,
    VhostAdded,
    VhostDescribed,
    VhostLimitsChanged,
    VhostRemoved,
)
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission, TopicPermission
from warren.metadata.proposals import LocalProposals

Apply = Callable[[MetadataCommand], Reply]


def grant(configure: str = ".*") -> SetPermissions:
    return SetPermissions(user="u", vhost="v", configure=configure, write="w", read="r")


def refused(reply: Reply) -> str:
    assert reply.outcome is Outcome.REFUSED
    return reply.text


def test_a_vhost_is_created_once_and_its_description_can_change(
    apply: Apply, metadata: Metadata, received: list[Event]
) -> None:
    assert apply(PutVhost(name="w", description="one")) is DONE
    assert apply(PutVhost(name="w", description="two", tags=("a",), default_queue_type="quorum")) is EXISTING
    vhost = metadata.vhost("w")
    assert vhost is not None
    assert (vhost.description, vhost.tags, vhost.default_queue_type) == ("two", ("a",), "quorum")
    assert received == [VhostAdded("w"), VhostDescribed("w")]


def test_a_command_for_a_missing_vhost_is_answered_with_missing(apply: Apply) -> None:
    reply = apply(DeclareQueue(vhost="nowhere", name="q"))
    assert (reply.outcome, reply.text) == (Outcome.MISSING, "no such vhost 'nowhere'")
    assert apply(RemoveVhost(name="nowhere")) is MISSING


def test_permissions_require_the_user_and_the_vhost(apply: Apply) -> None:
    reply = apply(SetPermissions(user="nobody", vhost="v", configure="", write="", read=""))
    assert (reply.outcome, reply.text) == (Outcome.MISSING, "no such user 'nobody'")
    reply = apply(ClearPermissions(user="u", vhost="nowhere"))
    assert (reply.outcome, reply.text) == (Outcome.MISSING, "no such vhost 'nowhere'")


def test_permissions_are_regular_expressions(apply: Apply, metadata: Metadata) -> None:
    assert apply(grant()) is DONE
    assert "missing )" in refused(apply(grant("(")))
    assert metadata.permissions.get("u", "v") == Permission(".*", "w", "r")
    assert metadata.permissions.get("u", "w") is None
    assert apply(ClearPermissions(user="u", vhost="v")) is DONE
    assert metadata.permissions.get("u", "v") is None


def test_every_change_of_permissions_advances_their_generation(apply: Apply, metadata: Metadata) -> None:
    before = metadata.permissions.generation
    apply(grant())
    apply(grant())
    apply(SetTopicPermissions(user="u", vhost="v", exchange="amq.topic", write="a", read="b"))
    assert metadata.permissions.generation == before + 3


def test_topic_permissions_are_stored_per_exchange(apply: Apply, metadata: Metadata) -> None:
    for exchange in ("one", "two", "three"):
        apply(SetTopicPermissions(user="u", vhost="v", exchange=exchange, write="a", read="b"))
    assert metadata.permissions.get_topic("u", "v", "two") == TopicPermission("a", "b")
    apply(ClearTopicPermissions(user="u", vhost="v", exchange="two"))
    assert metadata.permissions.get_topic("u", "v", "two") is None
    apply(ClearTopicPermissions(user="u", vhost="v"))
    assert metadata.permissions.topics_by_user_and_vhost == {}
    refused(apply(SetTopicPermissions(user="u", vhost="v", exchange="x", write="(", read="b")))


def test_permissions_are_deleted_with_their_user_and_with_their_vhost(
    apply: Apply, metadata: Metadata, received: list[Event]
) -> None:
    apply(PutVhost(name="w"))
    apply(grant())
    apply(SetPermissions(user="u", vhost="w", configure="", write="", read=""))
    apply(SetTopicPermissions(user="u", vhost="v", exchange="x", write="a", read="b"))
    del received[:]
    assert apply(RemoveVhost(name="v")) is DONE
    assert received == [VhostRemoved("v"), PermissionsChanged("u", "v")]
    assert list(metadata.permissions.by_user_and_vhost) == [("u", "w")]
    assert apply(RemoveUser(name="u")) is DONE
    assert metadata.permissions.by_user_and_vhost == {}
    assert received[2:] == [UserRemoved("u"), PermissionsChanged("u", "w")]
    assert apply(RemoveUser(name="u")) is MISSING


def test_changing_a_user_keeps_limits_that_are_not_given(
    apply: Apply, metadata: Metadata, received: list[Event]
) -> None:
    assert apply(SetUserLimits(name="u", limits={"max-connections": 5, "max-channels": -1})) is DONE
    assert apply(SetUserTags(name="u", tags=("management",))) is DONE
    apply(PutUser(name="u", password_hash=b"new", hashing_algorithm="sha512", tags=("administrator",)))
    user = metadata.users.by_name["u"]
    assert (user.password_hash, user.tags) == (b"new", ("administrator",))
    assert (user.limit("max-connections"), user.limit("max-channels")) == (5, None)
    assert received == [UserChanged("u")] * 3
    assert apply(SetUserTags(name="nobody", tags=())) is MISSING
    assert apply(SetUserLimits(name="nobody", limits={})) is MISSING


def test_limits_are_numbers_with_known_names(apply: Apply, metadata: Metadata, received: list[Event]) -> None:
    assert apply(SetVhostLimits(vhost="v", limits={"max-queues": 1})) is DONE
    assert received == [VhostLimitsChanged("v")]
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert (vhost.limit("max-queues"), vhost.limit("max-connections")) == (1, None)
    assert refused(apply(SetVhostLimits(vhost="v", limits={"max-queues": "x"}))) == (
        'Validation failed\n\nmax-queues should be a number, actually was <<"x">>\n'
    )
    assert refused(apply(SetUserLimits(name="u", limits={"max-fun": 1}))) == (
        'Unrecognised terms [{<<"max-fun">>,1}] in user-limits'
    )


def test_limits_and_operator_policies_can_be_set_as_parameters(apply: Apply, metadata: Metadata) -> None:
    apply(SetParameter(vhost="v", component="vhost-limits", name="limits", value={"max-queues": 7}))
    value = {"pattern": "^a", "definition": {"expires": 5}, "priority": 1, "apply-to": "queues"}
    assert apply(SetParameter(vhost="v", component="operator_policy", name="o", value=value)) is DONE
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert vhost.limit("max-queues") == 7
    apply(SetParameter(vhost="v", component="vhost-limits", name="limits", value=[]))
    assert vhost.limit("max-queues") is None
    assert vhost.operator_policies.by_name["o"].definition == {"expires": 5}
    assert apply(ClearParameter(vhost="v", component="operator_policy", name="o")) is DONE
    assert apply(ClearParameter(vhost="v", component="vhost-limits", name="limits")) is DONE
    assert vhost.limit("max-queues") is None
    assert vhost.operator_policies.by_name == {}


def test_parameters_of_unknown_components_are_kept_and_others_are_checked(apply: Apply) -> None:
    assert apply(SetParameter(vhost="v", component="nonsense", name="n", value=1)) is DONE
    assert "Validation failed" in refused(
        apply(SetParameter(vhost="v", component="shovel", name="n", value=1))
    )
    component = "federation-upstream-set"
    assert apply(SetParameter(vhost="v", component=component, name="s", value=[])) is DONE
    assert apply(ClearParameter(vhost="v", component=component, name="s")) is DONE
    assert apply(ClearParameter(vhost="v", component=component, name="s")) is MISSING


def test_global_parameters_are_stored(apply: Apply, metadata: Metadata) -> None:
    assert apply(SetGlobalParameter(name="g", value={"a": [1]})) is DONE
    assert metadata.global_parameters.by_name == {"g": {"a": [1]}}
    assert apply(ClearGlobalParameter(name="g")) is DONE
    assert apply(ClearGlobalParameter(name="g")) is MISSING


def test_a_listener_of_one_vhost_receives_no_events_of_others(apply: Apply, metadata: Metadata) -> None:
    apply(PutVhost(name="w"))
    events: list[Event] = []
    metadata.listen(events.append, vhost="w")
    apply(DeclareQueue(vhost="v", name="q"))
    apply(SetPolicy(vhost="w", name="p", pattern="", definition={"max-length": 1}))
    apply(SetUserTags(name="u", tags=()))
    assert events == [PoliciesChanged("w")]
    metadata.ignore(events.append, vhost="w")
    apply(ClearPolicy(vhost="w", name="p"))
    assert len(events) == 1


def test_a_listener_may_unsubscribe_while_it_is_called(apply: Apply, metadata: Metadata) -> None:
    reported: list[str] = []

    def once(_: Event) -> None:
        reported.append("once")
        metadata.ignore(once)

    metadata.listen(once)
    metadata.listen(lambda _: reported.append("always"))
    apply(SetUserTags(name="u", tags=()))
    apply(SetUserTags(name="u", tags=()))
    assert reported == ["once", "always", "always"]


def test_a_failing_listener_leaves_the_machine_usable(apply: Apply, metadata: Metadata) -> None:
    def fail(_: Event) -> None:
        raise RuntimeError

    metadata.listen(fail)
    with pytest.raises(RuntimeError):
        apply(DeclareQueue(vhost="v", name="q"))
    metadata.ignore(fail)
    assert metadata.apply(DeclareQueue(vhost="v", name="q"), CommandContext(index=9, now=1)) is EXISTING
    assert metadata.index == 9


names = st.sampled_from(("a", "b", "c"))
vhosts = st.sampled_from(("v", "w"))
arguments = st.dictionaries(
    names, st.one_of(st.booleans(), st.integers(-5, 5), st.text("xy", max_size=2)), max_size=2
)

any_command: st.SearchStrategy[MetadataCommand] = st.one_of(
    st.builds(PutVhost, name=vhosts, description=names),
    st.builds(RemoveVhost, name=vhosts),
    st.builds(PutUser, name=names, password_hash=st.binary(max_size=4), hashing_algorithm=st.just("x")),
    st.builds(RemoveUser, name=names),
    st.builds(SetPermissions, user=names, vhost=vhosts, configure=names, write=names, read=names),
    st.builds(SetPolicy, vhost=vhosts, name=names, pattern=names, definition=st.just({"expires": 5})),
    st.builds(
        DeclareExchange,
        vhost=vhosts,
        name=names,
        type=st.just("direct"),
        auto_delete=st.booleans(),
        durable=st.booleans(),
        arguments=arguments,
    ),
    st.builds(DeleteExchange, vhost=vhosts, name=names, if_unused=st.booleans()),
    st.builds(
        DeclareQueue,
        vhost=vhosts,
        name=names,
        durable=st.booleans(),
        owner=st.sampled_from((None, None, "c")),
    ),
    st.builds(DeleteQueue, vhost=vhosts, name=names),
    st.builds(PauseQueue, vhost=vhosts, name=names, is_paused=st.booleans()),
    st.builds(
        GrantLease,
        vhost=vhosts,
        lease=st.builds(
            LeaseRecord,
            id=names,
            queue=names,
            user=names,
            key=names,
            places=st.just((0, 2)),
            messages=st.just(2),
            byte_count=st.just(9),
            granted_at=st.just(1),
            expires_at=st.just(5),
        ),
    ),
    st.builds(RenewLease, vhost=vhosts, id=names, expires_at=st.integers(0)),
    st.builds(EndLease, vhost=vhosts, id=names, state=st.sampled_from([*LeaseState][1:])),
    st.builds(
        Bind,
        vhost=vhosts,
        source=names,
        destination=names,
        is_to_queue=st.booleans(),
        routing_key=names,
        arguments=arguments,
    ),
    st.builds(
        Unbind, vhost=vhosts, source=names, destination=names, is_to_queue=st.booleans(), routing_key=names
    ),
    st.builds(DeleteEphemeral, node=st.just(1), incarnation=st.integers(1, 3), count_max=st.integers(1, 9)),
)
scripts = st.lists(any_command, max_size=60).map(lambda script: [PutVhost(name="v"), *script])


def carried_out(script: list[MetadataCommand]) -> Metadata:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for command in script:
        local.apply(command)
    return metadata


def encoded(metadata: Metadata) -> str:
    return json.dumps(export_definitions(metadata, version="3.10.8"))


@given(scripts)
def test_equal_commands_make_equal_bytes(script: list[MetadataCommand]) -> None:
    assert encoded(carried_out(script)) == encoded(carried_out(script))


@given(scripts)
def test_importing_an_export_makes_equal_bytes(script: list[MetadataCommand]) -> None:
    document = encoded(carried_out(script))
    commands_again = import_commands(json.loads(document), lambda password: password.encode())
    assert encoded(carried_out(commands_again)) == document


@given(scripts)
def test_both_ends_of_every_binding_exist_and_list_it(script: list[MetadataCommand]) -> None:
    for vhost in carried_out(script).vhosts.by_name.values():
        check(vhost.topology)


def check(topology: DeclaredTopology) -> None:
    bindings = list(topology.bindings())
    for binding in bindings:
        assert binding.source in topology.exchanges
        if binding.is_to_queue:
            assert binding.destination in topology.queues
            assert binding in topology.bindings_to_queue(binding.destination)
        else:
            assert binding.destination in topology.exchanges
            assert binding in topology.bindings_to_exchange(binding.destination)
        assert topology.has_binding(binding)
    ends = [b for name in topology.queues for b in topology.bindings_to_queue(name)]
    ends += [b for name in topology.exchanges for b in topology.bindings_to_exchange(name)]
    assert sorted(ends) == sorted(bindings)


def test_a_listener_receives_only_events_of_its_classes(apply: Apply, metadata: Metadata) -> None:
    of_all: list[Event] = []
    of_one: list[Event] = []
    metadata.listen(of_all.append, (QueueDeleted,))
    metadata.listen(of_one.append, (QueueDeclared,), vhost="v")
    apply(DeclareQueue(vhost="v", name="q"))
    apply(DeleteQueue(vhost="v", name="q"))
    assert [type(event) for event in of_all] == [QueueDeleted]
    assert [type(event) for event in of_one] == [QueueDeclared]


def test_a_listener_that_is_added_later_is_called_after_the_others(apply: Apply, metadata: Metadata) -> None:
    reported: list[str] = []
    metadata.listen(lambda _: reported.append("first"))
    apply(DeclareQueue(vhost="v", name="a"))
    metadata.listen(lambda _: reported.append("second"))
    apply(DeclareQueue(vhost="v", name="b"))
    assert reported == ["first", "first", "second"]
