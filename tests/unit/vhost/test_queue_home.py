"""The member that gets a new queue: by RabbitMQ's locators, among those that are up and not drained."""

from collections.abc import Callable, Mapping

import pytest

from warren.metadata.commands import DeclareQueue, MetadataCommand, PutVhost, SetPolicy
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberDown,
    MemberUp,
    RemoveMember,
    SetMemberDraining,
)
from warren.metadata.proposals import LocalProposals
from warren.vhost.queue_home import CLIENT_LOCAL, NO_LOCATORS, QueueLocators, queue_home
from warren.wire.table import Value

FORM = FormCluster(cluster_id=b"c" * 16, name="n1", host="h", cluster_port=1, incarnation=1, feature_level=1)
MASTER, LEADER = "x-queue-master-locator", "x-queue-leader-locator"


class Cluster:
    """The metadata of `count` members, all of which are up."""

    def __init__(self, count: int = 3) -> None:
        self.metadata = Metadata()
        self.apply(PutVhost(name="v"))
        self.apply(FORM)
        for id in range(2, count + 1):
            name = f"n{id}"
            self.apply(AdmitMember(name=name, host="h", cluster_port=1, incarnation=1, feature_level=1))
            self.apply(MemberUp(id=id, incarnation=1, host="h", cluster_port=1, feature_level=1))

    def apply(self, command: MetadataCommand, node: int = 1) -> None:
        LocalProposals(self.metadata, lambda: 0, Incarnation(node, 1)).apply(command)

    def declare(self, *homes: int) -> None:
        """Declare a queue on each of `homes`."""
        for home in homes:
            name = f"q{self.metadata.next_number}"
            self.apply(DeclareQueue(vhost="v", name=name, durable=True, home=home))

    def home(
        self,
        arguments: Mapping[str, Value] | None = None,
        *,
        owner: str | None = None,
        drawn: int = 0,
        locators: QueueLocators = NO_LOCATORS,
    ) -> int:
        vhost = self.metadata.vhost("v")
        assert vhost is not None
        command = DeclareQueue(vhost="v", name="new", owner=owner, arguments=arguments or {})
        return queue_home(
            self.metadata, vhost, command, lambda size: drawn.to_bytes(size, "big"), locators=locators
        )


def policy(definition: Mapping[str, str]) -> SetPolicy:
    return SetPolicy(vhost="v", name="p", pattern="^new", definition=definition)


@pytest.mark.parametrize(
    "arguments", [{}, {MASTER: "client-local"}, {LEADER: "client-local"}, {MASTER: "nonsense"}, {MASTER: 7}]
)
def test_a_queue_stays_with_its_client_unless_a_locator_says_otherwise(
    arguments: Mapping[str, Value],
) -> None:
    cluster = Cluster()
    cluster.declare(1, 1, 1)
    assert cluster.home(arguments) == CLIENT_LOCAL


@pytest.mark.parametrize(
    "arguments", [{MASTER: "min-masters"}, {LEADER: "balanced"}, {LEADER: "least-leaders"}]
)
def test_the_member_with_the_fewest_queues_is_chosen_of_equal_ones_the_first(
    arguments: Mapping[str, Value],
) -> None:
    cluster = Cluster()
    for expected in (1, 2, 3, 1):
        home = cluster.home(arguments)
        assert home == expected
        cluster.declare(home)
    cluster.declare(2)
    assert cluster.home(arguments) == 3


def test_any_member_is_chosen_by_the_octets_that_are_drawn() -> None:
    cluster = Cluster()
    for name in (MASTER, LEADER):
        homes = [cluster.home({name: "random"}, drawn=drawn) for drawn in range(6)]
        assert homes == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    "gone",
    [MemberDown(id=2, incarnation=1), SetMemberDraining(id=2, is_draining=True), RemoveMember(id=2)],
)
def test_a_member_that_is_down_or_drained_is_not_chosen(gone: MetadataCommand) -> None:
    cluster = Cluster()
    cluster.declare(1, 1, 3)
    cluster.apply(gone)
    assert cluster.home({MASTER: "min-masters"}) == 3
    assert {cluster.home({MASTER: "random"}, drawn=drawn) for drawn in range(9)} == {1, 3}


def test_a_queue_stays_with_its_client_if_no_member_can_be_chosen() -> None:
    cluster = Cluster(count=2)
    for id in (1, 2):
        cluster.apply(SetMemberDraining(id=id, is_draining=True))
    for locator in ("min-masters", "random"):
        assert cluster.home({MASTER: locator}) == CLIENT_LOCAL


def test_an_exclusive_queue_stays_with_its_connection() -> None:
    cluster = Cluster()
    cluster.declare(1)
    for locator in ("min-masters", "random"):
        assert cluster.home({MASTER: locator}, owner="1.1.1", drawn=1) == CLIENT_LOCAL


def test_with_one_member_nothing_is_chosen_and_no_octet_drawn() -> None:
    def draw(size: int) -> bytes:
        raise AssertionError(size)

    undrawn: Callable[[int], bytes] = draw
    cluster = Cluster(count=1)
    alone = Metadata()
    LocalProposals(alone, lambda: 0).apply(PutVhost(name="v"))
    for metadata in (alone, cluster.metadata):
        vhost = metadata.vhost("v")
        assert vhost is not None
        for locator in ("min-masters", "random"):
            command = DeclareQueue(vhost="v", name="new", arguments={MASTER: locator})
            assert queue_home(metadata, vhost, command, undrawn) == CLIENT_LOCAL


def test_a_policy_has_a_locator_and_precedes_the_argument() -> None:
    cluster = Cluster()
    cluster.declare(1)
    cluster.apply(policy({"queue-master-locator": "min-masters"}))
    assert cluster.home() == 2
    # As in RabbitMQ 4.3.6.
    assert cluster.home({MASTER: "client-local"}) == 2
    # A locator for leaders precedes one for masters, wherever it is.
    assert cluster.home({LEADER: "client-local"}) == CLIENT_LOCAL
    cluster.apply(policy({"queue-leader-locator": "random", "queue-master-locator": "client-local"}))
    assert cluster.home({MASTER: "client-local"}, drawn=2) == 3
    assert cluster.home({LEADER: "client-local"}, drawn=2) == 3


def test_a_locator_for_masters_is_for_classic_queues_only() -> None:
    cluster = Cluster()
    cluster.declare(1)
    quorum = {"x-queue-type": "quorum"}
    assert cluster.home({**quorum, MASTER: "min-masters"}) == CLIENT_LOCAL
    assert cluster.home({**quorum, LEADER: "balanced"}) == 2
    cluster.apply(policy({"queue-leader-locator": "balanced"}))
    assert cluster.home(quorum) == 2


def test_the_settings_of_the_node_decide_for_queues_without_a_locator() -> None:
    cluster = Cluster()
    cluster.declare(1, 1, 2)
    fewest = QueueLocators(master="min-masters")
    assert cluster.home(locators=fewest) == 3
    assert cluster.home({"x-queue-type": "quorum"}, locators=fewest) == CLIENT_LOCAL
    assert cluster.home({MASTER: "client-local"}, locators=fewest) == CLIENT_LOCAL
    assert cluster.home(owner="c", locators=fewest) == CLIENT_LOCAL
    cluster.apply(policy({"queue-master-locator": "client-local"}))
    assert cluster.home(locators=fewest) == CLIENT_LOCAL


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum"}, {"x-queue-type": "stream"}])
@pytest.mark.parametrize("locator", ["balanced", "least-leaders"])
def test_the_setting_for_leaders_decides_for_queues_of_every_type(
    arguments: Mapping[str, Value], locator: str
) -> None:
    cluster = Cluster()
    cluster.declare(1, 2)
    locators = QueueLocators(leader=locator, master="client-local")
    assert cluster.home(arguments, locators=locators) == 3
