"""Bounds on the number of objects: additions beyond them are refused, changes are not, and old logs are
replayed.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from warren.metadata import bounds
from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    MetadataCommand,
    Outcome,
    PutUser,
    PutVhost,
    Reply,
    SetGlobalParameter,
    SetParameter,
    SetPermissions,
    SetPolicy,
    SetTopicPermissions,
)
from warren.metadata.machine import Metadata

Apply = Callable[[MetadataCommand], Reply]
Make = Callable[[int], MetadataCommand]

POLICY = {"pattern": "^a", "definition": {"max-length": 5}}
MAKERS: dict[str, tuple[str, int, Make]] = {
    "policies in vhost 'v'": (
        "POLICIES_MAX",
        0,
        lambda n: SetPolicy(vhost="v", name=f"{n}", pattern="", definition={"max-length": 5}),
    ),
    "operator policies in vhost 'v'": (
        "POLICIES_MAX",
        0,
        lambda n: SetPolicy(
            vhost="v", name=f"{n}", pattern="", definition={"max-length": 5}, is_operator=True
        ),
    ),
    "operator policies in vhost 'v', as a parameter": (
        "POLICIES_MAX",
        0,
        lambda n: SetParameter(vhost="v", component="operator_policy", name=f"{n}", value=POLICY),
    ),
    "parameters in vhost 'v'": (
        "PARAMETERS_MAX",
        0,
        lambda n: SetParameter(vhost="v", component="federation-upstream-set", name=f"{n}", value=[]),
    ),
    "queues in vhost 'v'": ("QUEUES_MAX", 0, lambda n: DeclareQueue(vhost="v", name=f"{n}")),
    "exchanges in vhost 'v'": (
        "EXCHANGES_MAX",
        7,
        lambda n: DeclareExchange(vhost="v", name=f"{n}", type="direct"),
    ),
    "bindings in vhost 'v'": (
        "BINDINGS_MAX",
        0,
        lambda n: Bind(
            vhost="v", source="amq.topic", destination="amq.fanout", is_to_queue=False, routing_key=f"{n}"
        ),
    ),
    "users": (
        "USERS_MAX",
        1,
        lambda n: PutUser(name=f"{n}", password_hash=b"", hashing_algorithm="sha256"),
    ),
    "virtual hosts": ("VHOSTS_MAX", 1, lambda n: PutVhost(name=f"{n}")),
    "topic permissions of user 'u' in vhost 'v'": (
        "TOPIC_PERMISSIONS_MAX",
        0,
        lambda n: SetTopicPermissions(user="u", vhost="v", exchange=f"{n}", write="", read=""),
    ),
    "global parameters": ("GLOBAL_PARAMETERS_MAX", 0, lambda n: SetGlobalParameter(name=f"{n}", value=n)),
}


@pytest.mark.parametrize("what", MAKERS)
def test_objects_beyond_a_bound_are_refused_and_existing_ones_may_change(
    what: str, apply: Apply, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound, there, make = MAKERS[what]
    most = there + 2
    monkeypatch.setattr(bounds, bound, most)
    done = (Outcome.DONE, Outcome.EXISTING)
    assert [apply(make(number)).outcome for number in range(2)] == [Outcome.DONE] * 2
    refused = apply(make(2))
    text = f"the limit of {most} {what.partition(',')[0]} is reached"
    assert (refused.outcome, refused.text) == (Outcome.REFUSED, text)
    assert apply(make(1)).outcome in done
    # A log with more objects was written by a version without these bounds.
    replayed = CommandContext(index=metadata.index + 1, now=0, is_accepted=True)
    assert metadata.apply(make(2), replayed).outcome is Outcome.DONE
    assert apply(make(2)).outcome in done
    assert apply(make(3)).outcome is Outcome.REFUSED


def test_numbers_beyond_those_that_an_operator_sets_are_refused(apply: Apply, metadata: Metadata) -> None:
    predeclared = len(metadata.vhosts.by_name["v"].topology.exchanges)
    metadata.bounds = bounds.ConfiguredBounds(vhosts=2, queues=1, exchanges=2 * predeclared + 1)
    commands = (
        PutVhost(name="w"),
        DeclareQueue(vhost="v", name="q"),
        DeclareExchange(vhost="w", name="e", type="fanout"),
    )
    assert [apply(command).outcome for command in commands] == [Outcome.DONE] * 3
    assert [apply(command).outcome for command in commands] == [Outcome.EXISTING] * 3
    refused = [apply(replace(command, name="other")) for command in commands]
    assert [reply.text for reply in refused] == [
        "cannot create vhost 'other': vhost limit of 2 is reached",
        "queue limit in cluster (1) is reached",
        f"exchange limit of {2 * predeclared + 1} is reached",
    ]


def test_permissions_of_all_users_share_one_bound(apply: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PERMISSIONS_MAX", 1)
    apply(PutVhost(name="w"))
    for make, kind in (
        (lambda vhost: SetPermissions(user="u", vhost=vhost, configure="", write="", read=""), ""),
        (lambda vhost: SetTopicPermissions(user="u", vhost=vhost, exchange="", write="", read=""), "topic "),
    ):
        assert [apply(make("v")).outcome for _ in range(2)] == [Outcome.DONE] * 2
        assert apply(make("w")).text == f"the limit of 1 {kind}permissions is reached"


def test_a_command_for_a_missing_vhost_says_so(apply: Apply) -> None:
    for _, _, make in MAKERS.values():
        command = make(0)
        if getattr(command, "vhost", None) == "v" and not isinstance(command, SetTopicPermissions):
            elsewhere = type(command)(**{**{n: getattr(command, n) for n in command.__slots__}, "vhost": "w"})
            assert apply(elsewhere).outcome is Outcome.MISSING
