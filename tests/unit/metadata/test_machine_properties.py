"""Whatever commands come: the same ones make the same bytes, and both ends of a binding exist."""

import json

from hypothesis import given
from hypothesis import strategies as st

from warren.metadata.commands import (
    Bind,
    Command,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    ForgetTransient,
    PutUser,
    PutVhost,
    RemoveUser,
    RemoveVhost,
    SetPermissions,
    SetPolicy,
    Unbind,
)
from warren.metadata.definitions import exported
from warren.metadata.definitions_import import imported
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.topology import Topology

names = st.sampled_from(("a", "b", "c"))
vhosts = st.sampled_from(("v", "w"))
arguments = st.dictionaries(
    names, st.one_of(st.booleans(), st.integers(-5, 5), st.text("xy", max_size=2)), max_size=2
)

commands: st.SearchStrategy[Command] = st.one_of(
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
    st.just(ForgetTransient()),
)
scripts = st.lists(commands, max_size=60).map(lambda script: [PutVhost(name="v"), *script])


def carried_out(script: list[Command]) -> Metadata:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    for command in script:
        local.apply(command)
    return metadata


def octets(metadata: Metadata) -> str:
    return json.dumps(exported(metadata, version="3.10.8"))


@given(scripts)
def test_the_same_commands_make_the_same_bytes(script: list[Command]) -> None:
    assert octets(carried_out(script)) == octets(carried_out(script))


@given(scripts)
def test_importing_an_export_makes_the_same_bytes(script: list[Command]) -> None:
    document = octets(carried_out(script))
    commands_again = imported(json.loads(document), lambda password: password.encode())
    assert octets(carried_out(commands_again)) == document


@given(scripts)
def test_both_ends_of_every_binding_exist_and_know_it(script: list[Command]) -> None:
    for vhost in carried_out(script).vhosts.by_name.values():
        check(vhost.topology)


def check(topology: Topology) -> None:
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
