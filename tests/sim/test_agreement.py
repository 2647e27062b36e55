"""The check of what members agree on notices each kind of contradiction."""

from types import SimpleNamespace
from typing import cast

import pytest
from tests.sim.agreement import AgreeingNode, Agreement

from warren.metadata.commands import PutVhost
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import FormCluster
from warren.metadata.proposals import LocalProposals


def member(name: str, *vhosts: str, term: int = 1, leads: bool = False) -> AgreeingNode:
    """A member with one committed entry of `term`, and these virtual hosts at index 1."""
    metadata = Metadata()
    proposals = LocalProposals(metadata, lambda: 0)
    proposals.apply(
        FormCluster(
            cluster_id=bytes(range(16)), name="a@h", host="h", cluster_port=1, incarnation=1, feature_level=1
        )
    )
    for vhost in vhosts:
        proposals.apply(PutVhost(name=vhost))
    metadata.index = 1
    log = SimpleNamespace(term=lambda index: term)
    replica = SimpleNamespace(commit_index=lambda: 1, log=log)
    group = SimpleNamespace(is_leader=leads, leader=(term, 1), replica=replica)
    return cast(
        AgreeingNode, SimpleNamespace(name=name, journal=SimpleNamespace(group=group), metadata=metadata)
    )


def checked(*nodes: AgreeingNode) -> None:
    agreement = Agreement()
    for node in nodes:
        agreement.check(node)


def test_members_that_agree_pass() -> None:
    checked(member("a", "v", leads=True), member("b", "v"), member("a", "v", leads=True))


def test_a_second_leader_of_a_term_is_noticed() -> None:
    with pytest.raises(AssertionError, match="a and b lead term 1"):
        checked(member("a", leads=True), member("b", leads=True))


def test_an_entry_of_another_term_is_noticed() -> None:
    with pytest.raises(AssertionError, match="entry 1 has term 1 in a, 2 in b"):
        checked(member("a"), member("b", term=2))


def test_other_metadata_at_an_index_are_noticed() -> None:
    with pytest.raises(AssertionError, match="b and a differ at 1"):
        checked(member("a", "v"), member("b", "w"))
