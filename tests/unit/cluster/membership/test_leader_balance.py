"""Leaders of quorum queues are spread over the nodes that can lead them."""

import random

import pytest
from tests.seeds import SEEDS

from warren.cluster.membership.leader_balance import LeaderTransfer, leader_transfers


def test_leaders_move_from_the_node_that_leads_all_to_the_others() -> None:
    candidates = dict.fromkeys(range(6), (1, 2, 3))
    moves = leader_transfers(dict.fromkeys(range(6), 1), candidates)
    assert moves == [LeaderTransfer(0, 2), LeaderTransfer(1, 3), LeaderTransfer(2, 2), LeaderTransfer(3, 3)]


def test_leaders_that_are_spread_stay() -> None:
    assert leader_transfers({1: 1, 2: 2, 3: 1}, dict.fromkeys((1, 2, 3), (1, 2))) == []


def test_a_queue_with_one_replica_stays() -> None:
    assert leader_transfers({1: 1, 2: 1, 3: 1}, {1: (1,), 2: (1,), 3: (1,)}) == []


def test_a_node_that_takes_no_queues_gets_no_leader() -> None:
    moves = leader_transfers({1: 1, 2: 1, 3: 1}, {1: (1, 3), 2: (1,), 3: (1, 3)})
    assert moves == [LeaderTransfer(1, 3)]


@pytest.mark.seeds(SEEDS)
def test_each_move_makes_the_numbers_more_even(seed: int) -> None:
    chance = random.Random(seed)
    nodes = range(1, chance.randrange(3, 7))
    candidates = {queue: chance.sample(nodes, chance.randint(1, len(nodes))) for queue in range(20)}
    leaders = {queue: chance.choice(of) for queue, of in candidates.items()}
    for queue, to in leader_transfers(leaders, candidates):
        led = list(leaders.values())
        assert to in candidates[queue]
        assert led.count(to) + 1 < led.count(leaders[queue])
        leaders[queue] = to
