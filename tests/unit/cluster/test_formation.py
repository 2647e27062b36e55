"""Whom a blank node asks, when again, when it begins a cluster, and when it gives up."""

import pytest

from warren.cluster.admission import BlankNode
from warren.cluster.formation import (
    AskNode,
    BeginCluster,
    Formation,
    FormationNode,
    FormationPlan,
    FormationStep,
    GiveUp,
    LookUpNodes,
    PauseUntil,
)
from warren.limits_cluster import FORMATION_NODES_MAX, FORMATION_SEED_MS

A, B, C = (FormationNode(name=f"{name}@h", host=name, port=1) for name in "abc")
INTERVAL_MS = 500


def listed(own: FormationNode, **more: object) -> FormationPlan:
    """The three nodes are in the settings, and the first is the seed."""
    fields: dict[str, object] = {"seed": "a@h", "nodes": (A, B, C), "interval_ms": INTERVAL_MS, **more}
    return FormationPlan(own_name=own.name, **fields)  # type: ignore[arg-type]


def looked_up(own: str, **more: object) -> FormationPlan:
    fields: dict[str, object] = {"seed": "", "is_looked_up": True, "interval_ms": INTERVAL_MS, **more}
    return FormationPlan(own_name=own, **fields)  # type: ignore[arg-type]


def blank(node: FormationNode, seed: str = "a@h") -> BlankNode:
    return BlankNode(node.name, seed)


def address(name: str) -> FormationNode:
    """A node of which the DNS tells the address only."""
    return FormationNode(host=name, port=1)


def asked(step: FormationStep) -> FormationNode:
    assert isinstance(step, AskNode)
    return step.node


def test_a_node_asks_the_seed_first_and_then_the_others_in_their_order() -> None:
    formation = Formation(listed(B, seed="c@h"), 0)
    assert asked(formation.next(0)) == C
    formation.heard_nothing("no answer", 2_000)
    assert asked(formation.next(2_000)) == A
    formation.heard_nothing("no answer", 4_000)
    assert formation.next(4_000) == PauseUntil(4_000 + INTERVAL_MS)
    assert asked(formation.next(4_000 + INTERVAL_MS)) == C


def test_a_node_that_is_not_the_seed_never_begins_a_cluster() -> None:
    formation = Formation(listed(B), 0)
    now = 0
    while now < 100 * FORMATION_SEED_MS:
        step = formation.next(now)
        if isinstance(step, PauseUntil):
            now = step.due
            continue
        node = asked(step)
        now += 100
        formation.heard_blank(blank(node), now)


def test_the_seed_begins_a_cluster_when_all_others_are_blank() -> None:
    formation = Formation(listed(A), 0)
    for node in (B, C):
        assert asked(formation.next(0)) == node
        formation.heard_blank(blank(node), 10)
    assert formation.next(10) == BeginCluster()


def test_a_seed_alone_in_its_list_begins_at_once() -> None:
    formation = Formation(listed(A, nodes=(A,)), 0)
    assert formation.next(0) == BeginCluster()


def test_the_seed_waits_for_silent_nodes_until_its_time_is_over() -> None:
    formation = Formation(listed(A), 0)
    formation.next(0)
    formation.heard_blank(blank(B), 10)
    formation.next(10)
    formation.heard_nothing("", 2_010)
    assert formation.next(2_010) == PauseUntil(2_510)
    formation.next(2_510)
    formation.heard_blank(blank(B), 2_520)
    assert asked(formation.next(2_520)) == C
    formation.heard_nothing("", 4_800)
    assert formation.next(4_800) == PauseUntil(FORMATION_SEED_MS)
    assert formation.next(FORMATION_SEED_MS) == BeginCluster()


def test_the_seed_begins_no_cluster_before_it_has_asked_each_node() -> None:
    formation = Formation(listed(A), 0)
    formation.next(0)
    formation.heard_nothing("", 2 * FORMATION_SEED_MS)
    assert asked(formation.next(2 * FORMATION_SEED_MS)) == C


def test_a_seed_that_has_heard_of_a_cluster_begins_none_any_more() -> None:
    formation = Formation(listed(A), 0)
    formation.next(0)
    formation.heard_member("'a@h' is a member of the cluster already", 10)
    formation.next(10)
    formation.heard_blank(blank(C), 20)
    for now in range(INTERVAL_MS, 10 * FORMATION_SEED_MS, INTERVAL_MS):
        while isinstance(step := formation.next(now), AskNode):
            formation.heard_nothing("", now)
        assert step != BeginCluster()


def test_the_seed_waits_for_as_many_blank_nodes_as_are_set() -> None:
    formation = Formation(listed(A, size_hint=2), 0)
    now = 0
    for _ in range(10):
        while isinstance(step := formation.next(now), AskNode):
            formation.heard_nothing("", now)
        assert isinstance(step, PauseUntil)
        assert step.due > now
        now = step.due
    assert now > FORMATION_SEED_MS - INTERVAL_MS
    assert formation.missing().endswith("1 of 2 nodes are there to begin a cluster")
    assert asked(formation.next(now)) == B
    formation.heard_blank(blank(B), now)
    assert formation.next(now) == BeginCluster()


def test_nodes_that_disagree_about_the_seed_begin_no_cluster_and_say_so() -> None:
    formation = Formation(listed(A), 0)
    for node in (B, C):
        formation.next(0)
        formation.heard_blank(blank(node, seed="b@h"), 10)
    assert formation.next(FORMATION_SEED_MS - 1) != BeginCluster()
    assert formation.missing().startswith(
        "'b@h' at b:1: it has no cluster yet, and takes 'b@h' for the seed, which is 'a@h' here: "
        "set cluster_formation.seed to one name on all nodes; 'c@h' at c:1: "
    )


def test_the_least_name_begins_when_as_many_nodes_are_blank_as_there_are_to_be() -> None:
    formation = Formation(looked_up("a@h", size_hint=3), 0)
    assert formation.next(0) == LookUpNodes()
    formation.found([address("x"), address("y")])
    formation.next(0)
    formation.heard_blank(BlankNode("c@h", ""), 10)
    formation.next(10)
    formation.heard_blank(BlankNode("b@h", ""), 20)
    assert formation.next(20) == BeginCluster()


@pytest.mark.parametrize("own", ["b@h", "c@h"])
def test_a_name_that_is_not_the_least_begins_nothing(own: str) -> None:
    formation = Formation(looked_up(own, size_hint=2), 0)
    formation.next(0)
    formation.found([address("x")])
    formation.next(0)
    formation.heard_blank(BlankNode("a@h", ""), 10)
    assert isinstance(formation.next(FORMATION_SEED_MS - 1), PauseUntil | LookUpNodes)


def test_two_addresses_of_one_node_count_once() -> None:
    formation = Formation(looked_up("a@h", size_hint=3), 0)
    formation.next(0)
    formation.found([address("x"), address("y")])
    for _ in range(2):
        formation.next(0)
        formation.heard_blank(BlankNode("b@h", ""), 10)
    assert formation.next(10) != BeginCluster()


def test_the_seed_of_a_dns_name_waits_although_all_that_it_finds_are_blank() -> None:
    """The DNS may not know all nodes yet."""
    formation = Formation(looked_up("a@h", seed="a@h"), 0)
    assert formation.next(0) == LookUpNodes()
    formation.found([])
    assert formation.next(0) == PauseUntil(INTERVAL_MS)
    assert formation.next(INTERVAL_MS) == LookUpNodes()
    formation.found([address("x")])
    assert asked(formation.next(INTERVAL_MS)) == address("x")
    formation.heard_blank(BlankNode("b@h", "a@h"), FORMATION_SEED_MS - 1)
    assert formation.next(FORMATION_SEED_MS - 1) == PauseUntil(FORMATION_SEED_MS)
    assert formation.next(FORMATION_SEED_MS) == BeginCluster()


def test_the_seed_begins_nothing_while_the_dns_does_not_answer() -> None:
    formation = Formation(looked_up("a@h", seed="a@h"), 0)
    for now in range(0, 10 * FORMATION_SEED_MS, FORMATION_SEED_MS):
        assert formation.next(now) == LookUpNodes()
        formation.found_nothing("no such name", now)
        assert isinstance(formation.next(now), PauseUntil)
    assert formation.missing() == "the nodes cannot be looked up: no such name"


def test_a_node_that_was_not_found_again_is_neither_asked_nor_waited_for() -> None:
    formation = Formation(looked_up("a@h", size_hint=2), 0)
    formation.next(0)
    formation.found([address("x")])
    formation.next(0)
    formation.heard_nothing("no answer", 10)
    formation.next(10 + INTERVAL_MS)
    formation.found([address("y")])
    assert asked(formation.next(10 + INTERVAL_MS)) == address("y")
    formation.heard_nothing("no route", 600)
    assert formation.missing() == "y:1: no route; 1 of 2 nodes are there to begin a cluster"


def test_a_node_gives_up_after_its_attempts_and_says_what_it_has_heard() -> None:
    formation = Formation(listed(B, attempts_max=3), 0)
    now = 0
    while not isinstance(step := formation.next(now), GiveUp):
        if isinstance(step, AskNode):
            now += 1_000
            formation.heard_nothing("connection refused", now)
        else:
            assert isinstance(step, PauseUntil)
            now = step.due
    assert step.text == (
        "this node found no cluster in 3 attempts: 'a@h' at a:1: connection refused; "
        "'c@h' at c:1: connection refused"
    )


def test_attempts_that_are_over_soon_are_repeated_until_a_seed_would_have_begun() -> None:
    formation = Formation(listed(B, attempts_max=1), 0)
    now = 0
    while not isinstance(step := formation.next(now), GiveUp):
        if isinstance(step, AskNode):
            formation.heard_nothing("connection refused", now)
        else:
            assert isinstance(step, PauseUntil)
            now = step.due
    assert now >= FORMATION_SEED_MS


def test_lookups_that_fail_are_attempts() -> None:
    formation = Formation(looked_up("b@h", seed="a@h", attempts_max=2), 0)
    for now in (0, FORMATION_SEED_MS):
        assert formation.next(now) == LookUpNodes()
        formation.found_nothing("no such name", now)
    step = formation.next(2 * FORMATION_SEED_MS)
    assert isinstance(step, GiveUp)
    assert step.text.endswith("in 2 attempts: the nodes cannot be looked up: no such name")


def test_a_seed_with_objects_begins_the_cluster_with_them_and_asks_nobody() -> None:
    assert Formation(listed(A, has_objects=True), 0).next(0) == BeginCluster()


def test_another_node_with_objects_does_not_lose_them_by_joining() -> None:
    step = Formation(listed(B, has_objects=True), 0).next(0)
    assert isinstance(step, GiveUp)
    assert "set cluster_formation.seed = b@h on all nodes" in step.text


def test_no_more_nodes_are_asked_than_are_permitted() -> None:
    formation = Formation(looked_up("a@h", seed="a@h"), 0)
    formation.next(0)
    formation.found([address(f"x{number}") for number in range(FORMATION_NODES_MAX + 1)])
    for _ in range(FORMATION_NODES_MAX):
        asked(formation.next(0))
        formation.heard_nothing("", 0)
    assert not isinstance(formation.next(0), AskNode)
