"""queue.declare, delete and purge: texts and order of checks as measured with RabbitMQ 3.10.8."""

from typing import Any

import pytest
from tests.unit.vhost.conftest import LiveVhost, ran

from warren.errors import (
    AccessRefused,
    AmqpError,
    InternalError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from warren.metadata.commands import DONE, ClearPermissions, DeclareQueue, PutVhost, SetVhostLimits
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp, SetMemberDraining
from warren.model.names import QueueName
from warren.vhost.queue_service import DeclaredQueue, check_redeclared
from warren.vhost.requester import Owner, Requester
from warren.wire.methods import QueueDeclare, QueueDelete, QueuePurge
from warren.wire.table import Value

LOCKED = (
    "cannot obtain exclusive access to locked queue '{}' in vhost 'v'. It could be originally declared on "
    "another connection or the exclusive property value does not match that of the original declaration."
)


def declare(live: LiveVhost, name: str, who: Requester | None = None, **fields: Any) -> DeclaredQueue:
    method = QueueDeclare(queue=name, **fields)
    return ran(live.queue_service.declare_queue(who or live.requester(), method))


def delete(live: LiveVhost, name: str, who: Requester | None = None, **fields: bool) -> int:
    return ran(live.queue_service.delete_queue(who or live.requester(), QueueDelete(queue=name, **fields)))


def purge(live: LiveVhost, name: str, who: Requester | None = None) -> int:
    return ran(live.queue_service.purge_queue(who or live.requester(), QueuePurge(queue=name)))


def error(kind: type[AmqpError], call: Any, *arguments: Any, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        call(*arguments, **fields)
    return caught.value.message


def test_a_queue_is_created_once_and_a_redeclaration_returns_its_counts(live: LiveVhost) -> None:
    assert declare(live, "q", arguments={"x-max-length": 5}) == DeclaredQueue("q", 0, 0)
    assert live.queues["q"].settings.length_max == 5
    live.queues["q"].message_count = 3
    live.queues["q"].consumer_count = 1
    assert declare(live, "q", arguments={"x-max-length": 5}) == DeclaredQueue("q", 3, 1)
    assert live.queues["q"].touched == 1
    assert declare(live, "q", passive=True, durable=True) == DeclaredQueue("q", 3, 1)
    assert declare(live, "q", passive=True, no_wait=True) == DeclaredQueue("q", 0, 0)


def test_a_queue_without_a_name_gets_one_and_becomes_the_last_declared(live: LiveVhost) -> None:
    who = live.requester()
    state = declare(live, "", who)
    assert state.name == "amq.gen-_____________________w"
    assert who.queue("") == state.name
    declare(live, "other", who)
    assert who.queue("") == "other"
    assert who.queue("named") == "named"


def test_a_generated_name_begins_with_the_prefix_that_is_asked_for(live: LiveVhost) -> None:
    asked: dict[str, Value] = {"x-name-prefix": "my\napp", "x-max-length": 5}
    name = declare(live, "", arguments=asked).name
    assert name == "myapp-_____________________w"
    # It belongs to the declaration, not to the queue.
    assert declare(live, name, arguments={"x-max-length": 5}).name == name
    assert declare(live, name, arguments=asked | {"x-name-prefix": 5}).name == name
    for none in ("", "\r", 5, None):
        generated = declare(live, "", arguments={"x-name-prefix": none}).name
        assert generated == "amq.gen-_____________________w"


def test_a_prefix_of_generated_names_is_neither_reserved_nor_longer_than_64_bytes(live: LiveVhost) -> None:
    longest = "ä" * 32
    assert declare(live, "", arguments={"x-name-prefix": longest}).name.startswith(longest + "-")
    text = error(PreconditionFailed, declare, live, "", arguments={"x-name-prefix": longest + "x"})
    assert text == f"Queue name prefix '{longest}x' exceeds the 64-byte limit"
    text = error(AccessRefused, declare, live, "", arguments={"x-name-prefix": "amq.retained."})
    assert text == "queue name prefix 'amq.retained.' contains reserved prefix 'amq.*'"
    assert declare(live, "q", arguments={"x-name-prefix": longest + "x"}).name == "q"


def test_an_empty_name_without_a_declared_queue_is_not_found(live: LiveVhost) -> None:
    for call in (delete, purge):
        assert error(NotFound, call, live, "") == "no previously declared queue"
    assert error(NotFound, declare, live, "", passive=True) == "no queue '' in vhost 'v'"


def test_line_ends_are_stripped_except_when_purging(live: LiveVhost) -> None:
    assert declare(live, "q\n2\r").name == "q2"
    assert error(NotFound, purge, live, "q\n2") == "no queue 'q\n2' in vhost 'v'"
    assert delete(live, "q\n2") == 0
    assert live.queues == {}


def test_reserved_names_are_refused_before_permissions(live: LiveVhost) -> None:
    live.user("low", "", "", "")
    text = error(AccessRefused, declare, live, "amq.x", live.requester("low"))
    assert text == "queue name 'amq.x' contains reserved prefix 'amq.*'"
    assert error(NotFound, declare, live, "amq.foo", passive=True) == "no queue 'amq.foo' in vhost 'v'"


def test_an_inequivalent_redeclaration_is_refused_property_by_property(live: LiveVhost) -> None:
    declare(live, "q2", arguments={"x-max-length": 5})
    of = "for queue 'q2' in vhost 'v': received"
    assert error(PreconditionFailed, declare, live, "q2", durable=True, auto_delete=True) == (
        f"inequivalent arg 'durable' {of} 'true' but current is 'false'"
    )
    assert error(PreconditionFailed, declare, live, "q2", auto_delete=True) == (
        f"inequivalent arg 'auto_delete' {of} 'true' but current is 'false'"
    )
    assert error(PreconditionFailed, declare, live, "q2") == (
        f"inequivalent arg 'x-max-length' {of} none but current is the value '5' of type 'long'"
    )
    assert error(ResourceLocked, declare, live, "q2", exclusive=True) == LOCKED.format("q2")


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_queue_may_be_declared_again_with_another_consumer_timeout_and_keeps_the_first(
    live: LiveVhost, kind: str
) -> None:
    own: dict[str, Value] = {"x-queue-type": kind}
    declare(live, "q2", durable=True, arguments=own | {"x-consumer-timeout": 60_000})
    settings = live.queues["q2"].settings
    for other in ({}, {"x-consumer-timeout": 70_000}, {"x-consumer-timeout": "text"}):
        assert declare(live, "q2", durable=True, arguments=own | other).name == "q2"
    assert live.queues["q2"].settings == settings


def test_an_exclusive_queue_is_locked_for_other_connections(live: LiveVhost) -> None:
    mine, other = live.requester(), live.requester(connection="c2")
    declare(live, "excl", mine, exclusive=True, durable=True)
    declare(live, "excl", mine, exclusive=True, durable=False)
    for call in (delete, purge):
        assert error(ResourceLocked, call, live, "excl", other) == LOCKED.format("excl")
    assert error(ResourceLocked, declare, live, "excl", other, passive=True) == LOCKED.format("excl")
    assert error(ResourceLocked, declare, live, "excl", other, exclusive=True) == LOCKED.format("excl")
    assert error(ResourceLocked, declare, live, "excl", mine) == LOCKED.format("excl")
    assert declare(live, "excl", mine, passive=True).name == "excl"
    assert delete(live, "excl", mine) == 0


def test_exclusive_queues_are_deleted_with_their_connection(live: LiveVhost) -> None:
    for name, connection in (("a", "c1"), ("b", "c1"), ("c", "c2")):
        declare(live, name, live.requester(connection=connection), exclusive=True)
    queues = list(live.queues.values())
    ran(live.queue_service.remove_exclusive(Owner("c1")))
    ran(live.queue_service.remove_exclusive(Owner("nobody")))
    assert list(live.queues) == ["c"]
    assert [queue.is_deleted for queue in queues] == [True, True, False]


@pytest.mark.parametrize("name", ["mine", "theirs"])
def test_declaring_and_deleting_require_configure_existing_or_not(live: LiveVhost, name: str) -> None:
    declare(live, "mine")
    live.user("low", "^other", ".*", ".*")
    for call in (declare, delete):
        assert error(AccessRefused, call, live, name, live.requester("low")) == (
            f"access to queue '{name}' in vhost 'v' refused for user 'low'"
        )


def test_a_generated_name_requires_configure(live: LiveVhost) -> None:
    live.user("low", "^q", "", "")
    assert error(AccessRefused, declare, live, "", live.requester("low")) == (
        "access to queue 'amq.gen-_____________________w' in vhost 'v' refused for user 'low'"
    )


def test_purging_requires_read_before_the_queue_is_looked_up(live: LiveVhost) -> None:
    live.user("low", ".*", ".*", "^r")
    low = live.requester("low")
    assert error(AccessRefused, purge, live, "nope", low).startswith("access to queue 'nope'")
    assert error(NotFound, purge, live, "rnope", low) == "no queue 'rnope' in vhost 'v'"
    declare(live, "r")
    live.queues["r"].message_count = 4
    assert purge(live, "r", low) == 4


def test_a_passive_declaration_requires_any_permission(live: LiveVhost) -> None:
    declare(live, "theirs")
    for patterns in (("^t", "", ""), ("", "^t", ""), ("", "", "^t")):
        live.user("low", *patterns)
        assert declare(live, "theirs", live.requester("low"), passive=True).name == "theirs"
    live.user("low", "x", "x", "x")
    assert error(AccessRefused, declare, live, "theirs", live.requester("low"), passive=True) == (
        "access to queue 'theirs' in vhost 'v' refused for user 'low'"
    )


def test_a_dead_letter_exchange_requires_read_on_the_queue_and_write_on_itself(live: LiveVhost) -> None:
    arguments = {"x-dead-letter-exchange": "amq.direct", "x-message-ttl": -1}
    live.user("low", ".*", ".*", "")
    low = live.requester("low")
    assert error(AccessRefused, declare, live, "q", low, arguments=arguments) == (
        "access to queue 'q' in vhost 'v' refused for user 'low'"
    )
    live.user("low", ".*", "", ".*")
    assert error(AccessRefused, declare, live, "q", low, arguments=arguments) == (
        "access to exchange 'amq.direct' in vhost 'v' refused for user 'low'"
    )
    assert error(AccessRefused, declare, live, "q", low, arguments={"x-dead-letter-exchange": ""}) == (
        "access to exchange 'amq.default' in vhost 'v' refused for user 'low'"
    )
    assert "{value_negative,-1}" in error(PreconditionFailed, declare, live, "q", arguments=arguments)


def test_invalid_arguments_are_checked_after_permissions_and_only_for_new_queues(live: LiveVhost) -> None:
    live.user("low", "^x", "", "")
    bad = {"x-queue-type": "banana"}
    error(AccessRefused, declare, live, "q", live.requester("low"), arguments=bad)
    assert error(PreconditionFailed, declare, live, "q", arguments=bad) == (
        "invalid arg 'x-queue-type' for queue 'q' in vhost 'v': \"unsupported queue type 'banana'\""
    )
    declare(live, "q")
    assert "inequivalent arg 'x-queue-type'" in error(PreconditionFailed, declare, live, "q", arguments=bad)


def test_the_queue_limit_of_a_vhost_is_checked_first_for_new_queues(live: LiveVhost) -> None:
    declare(live, "l1")
    live.apply(SetVhostLimits(vhost="v", limits={"max-queues": 1}))
    assert error(PreconditionFailed, declare, live, "l2", arguments={"x-dead-letter-exchange": 5}) == (
        "cannot declare queue 'l2': queue limit in vhost 'v' (1) is reached"
    )
    assert declare(live, "l1").name == "l1"


def test_deleting_returns_the_message_count_and_missing_queues_are_no_error(live: LiveVhost) -> None:
    declare(live, "q")
    queue = live.queues["q"]
    queue.message_count = 2
    queue.consumer_count = 1
    in_vhost = "queue 'q' in vhost 'v'"
    assert (
        error(PreconditionFailed, delete, live, "q", if_empty=True, if_unused=True) == f"{in_vhost} not empty"
    )
    assert error(PreconditionFailed, delete, live, "q", if_unused=True) == f"{in_vhost} in use"
    assert delete(live, "q") == 2
    assert queue.is_deleted
    assert delete(live, "q", if_empty=True, if_unused=True) == 0


def test_quorum_queues_are_checked_and_then_declared(live: LiveVhost) -> None:
    quorum = {"x-queue-type": "quorum"}
    assert error(PreconditionFailed, declare, live, "q", arguments=quorum) == (
        "invalid property 'non-durable' for queue 'q' in vhost 'v'"
    )
    assert error(PreconditionFailed, declare, live, "", arguments=quorum, durable=True) == (
        "Cannot declare a server-named queue for type rabbit_quorum_queue"
    )
    assert declare(live, "q", arguments=quorum, durable=True).name == "q"
    assert error(PreconditionFailed, declare, live, "q", durable=True) == (
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost 'v': "
        "received none but current is the value 'quorum' of type 'longstr'"
    )


def test_the_default_queue_type_of_a_vhost_is_used_where_possible(live: LiveVhost) -> None:
    live.apply(PutVhost(name="v", default_queue_type="quorum"))
    declare(live, "transient")
    declare(live, "exclusive", exclusive=True, durable=True)
    declare(live, "durable", durable=True)
    declare(live, "classic", durable=True, arguments={"x-queue-type": "classic"})
    live.apply(PutVhost(name="v", default_queue_type="classic"))
    declare(live, "said")
    vhost = live.metadata.vhost("v")
    assert vhost is not None
    queues = vhost.topology.queues
    assert queues["said"].arguments == {"x-queue-type": "classic"}
    assert [queues[name].kind for name in ("transient", "exclusive", "durable", "classic")] == [
        "classic", "classic", "quorum", "classic"
    ]  # fmt: skip


def test_an_empty_queue_type_asks_for_the_default_type(live: LiveVhost) -> None:
    empty = {"x-queue-type": "", "x-expires": 60_000}
    declare(live, "classic", durable=True, arguments=empty)
    declare(live, "classic", durable=True, arguments={"x-expires": 60_000})
    live.apply(PutVhost(name="v", default_queue_type="quorum"))
    declare(live, "quorum", durable=True, arguments=empty)
    declare(live, "transient", arguments=empty)
    vhost = live.metadata.vhost("v")
    assert vhost is not None
    queues = vhost.topology.queues
    assert [queues[name].kind for name in ("classic", "quorum", "transient")] == [
        "classic", "quorum", "classic"
    ]  # fmt: skip
    assert queues["classic"].arguments == {"x-expires": 60_000}


def test_a_queue_can_be_consumed_by_users_with_read_permission(live: LiveVhost) -> None:
    who = live.requester()
    declare(live, "q", who, exclusive=True)
    assert live.queue_service.live_queue(who, "q") is live.queues["q"]
    assert error(NotFound, live.queue_service.live_queue, who, "nope") == "no queue 'nope' in vhost 'v'"
    other = live.requester(connection="c2")
    assert error(ResourceLocked, live.queue_service.live_queue, other, "q") == LOCKED.format("q")
    live.apply(ClearPermissions(user="guest", vhost="v"))
    error(AccessRefused, live.queue_service.live_queue, who, "q")


def test_a_queue_whose_creation_failed_is_reported_instead_of_waited_for(live: LiveVhost) -> None:
    declare(live, "q")
    del live.queues["q"]
    assert "see the log for the reason" in error(InternalError, declare, live, "q")


def test_a_queue_is_placed_by_its_locator_and_its_home_is_no_part_of_its_declaration(live: LiveVhost) -> None:
    declare(live, "alone", durable=True)
    topology = live.metadata.vhosts.by_name["v"].topology
    assert topology.queues["alone"].home == 1
    for command in (
        FormCluster(cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=1, feature_level=1),
        AdmitMember(name="b", host="h", cluster_port=1, incarnation=1, feature_level=1),
        MemberUp(id=2, incarnation=1, host="h", cluster_port=1, feature_level=1),
    ):
        assert live.apply(command) is DONE
    arguments = {"x-queue-master-locator": "min-masters"}
    declare(live, "placed", durable=True, arguments=arguments)
    declare(live, "exclusive", exclusive=True, arguments=arguments)
    declare(live, "local", durable=True)
    assert [topology.queues[name].home for name in ("placed", "exclusive", "local")] == [2, 1, 1]
    # The member with the fewest queues would be another one now.
    assert live.metadata.homes == {1: 3, 2: 1}
    live.apply(SetMemberDraining(id=2, is_draining=True))
    assert declare(live, "placed", durable=True, arguments=arguments) == DeclaredQueue("placed", 0, 0)
    assert topology.queues["placed"].home == 2


def test_a_quorum_queue_has_replicas_on_several_members_and_leads_where_its_locator_says(
    live: LiveVhost,
) -> None:
    topology = live.metadata.vhosts.by_name["v"].topology
    quorum = {"x-queue-type": "quorum"}
    declare(live, "alone", durable=True, arguments=quorum)
    assert (
        live.apply(
            FormCluster(
                cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=1, feature_level=1
            )
        )
        is DONE
    )
    for id, name in ((2, "b"), (3, "c"), (4, "d")):
        admit = AdmitMember(name=name, host="h", cluster_port=1, incarnation=1, feature_level=1)
        assert live.apply(admit) is DONE
        up = MemberUp(id=id, incarnation=1, host="h", cluster_port=1, feature_level=1)
        assert live.apply(up) is DONE
    declare(live, "local", durable=True, arguments=quorum)
    declare(live, "balanced", durable=True, arguments={**quorum, "x-queue-leader-locator": "balanced"})
    declare(live, "two", durable=True, arguments={**quorum, "x-quorum-initial-group-size": 2})
    declare(live, "one", durable=True, arguments={**quorum, "x-quorum-initial-group-size": 1})
    declare(live, "classic", durable=True)
    found = {name: [node for node, _ in queue.members] for name, queue in topology.queues.items()}
    assert found == {
        "alone": [], "local": [1, 2, 3], "balanced": [2, 4, 3], "two": [1, 4], "one": [], "classic": [],
    }  # fmt: skip
    # What was chosen is no part of the declaration.
    assert declare(live, "local", durable=True, arguments=quorum) == DeclaredQueue("local", 0, 0)


RELAXED = {"x-queue-type": "quorum", "x-max-length": 5}


@pytest.mark.parametrize(
    ("asked", "is_relaxed", "refused"),
    [
        ({"x-queue-type": "classic", "x-max-length": 5}, True, ""),
        ({"x-queue-type": "classic", "x-max-length": 5, "x-max-priority": 3}, True, ""),
        ({"x-queue-type": "classic", "x-max-length": 5}, False, "x-queue-type"),
        ({"x-queue-type": "classic", "x-max-length": 6}, True, "x-max-length"),
        ({"x-queue-type": "classic"}, True, "x-max-length"),
        ({"x-queue-type": "stream", "x-max-length": 5}, True, "x-queue-type"),
        ({"x-max-length": 5}, True, "x-queue-type"),
    ],
)
def test_with_relaxed_checks_a_quorum_queue_can_be_declared_again_as_a_classic_one(
    live: LiveVhost, asked: dict[str, Value], is_relaxed: bool, refused: str
) -> None:
    declare(live, "q", durable=True, arguments=RELAXED)
    command = DeclareQueue(vhost="v", name="q", durable=not is_relaxed or bool(refused), arguments=asked)
    record = live.metadata.vhosts.by_name["v"].topology.queues["q"]
    if not refused:
        check_redeclared(QueueName("v", "q"), record, command, is_relaxed=is_relaxed)
        return
    text = error(
        PreconditionFailed, check_redeclared, QueueName("v", "q"), record, command, is_relaxed=is_relaxed
    )
    assert text.startswith(f"inequivalent arg '{refused}' for queue 'q' in vhost 'v'")
