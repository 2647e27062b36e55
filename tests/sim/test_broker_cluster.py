"""Whole brokers as nodes of a cluster, their clients, and everything that fails.

Clients of any node use queues that are on any other: durable ones, ones that end with their home, and
exclusive ones. Nodes crash, lose power, stop for a while, and have disks that stall and fail, and clocks that
jump; the network is cut in every shape, and delays, loses and corrupts; nodes are drained, leave, are
forgotten and join.

At every step no term has two leaders, all nodes have the same metadata at the same index, and a queue is on
its home only. A publish is answered once; a message that comes again is marked; what comes for the first time
is in order; what was returned is nowhere; an exclusive queue is of one connection. When all is as before,
everybody serves in time and all clients are answered; then nothing that was confirmed is missing, and nothing
is left over.
"""

import gc
from collections import Counter

import pytest
from tests.seeds import SEEDS, TEST_S_MAX
from tests.sim.broker_cluster import BrokerCluster
from tests.sim.broker_scenario import BrokerScenario
from tests.sim.cluster_history import ClusterHistory

STEPS = 50
RUNS = max(1, SEEDS * 3 // 10)
# A run takes a second, and the machine may be busy with other work.
RUN_S_MAX = 4
LONG = pytest.mark.timeout(TEST_S_MAX + RUN_S_MAX * RUNS)


def ran(seed: int, *, is_faulty: bool = True, has_changing_members: bool = False) -> ClusterHistory:
    """What happened by a seed; one of five has five nodes."""
    # The one before has disks of 100 MB, in cycles.
    gc.collect()
    node_count = 5 if seed % 5 == 4 else 3
    scenario = BrokerScenario(seed, node_count, has_changing_members=has_changing_members)
    scenario.run(STEPS, is_faulty=is_faulty)
    return scenario.history


@pytest.mark.parametrize("count", [3, 5])
def test_whole_brokers_become_one_cluster(count: int) -> None:
    cluster = BrokerCluster(count)
    cluster.form(count)


@pytest.mark.seeds(max(1, SEEDS // 20))
def test_without_faults_clients_of_a_cluster_are_told_the_truth(seed: int) -> None:
    history = ran(seed, is_faulty=False)
    assert not {"refused", "320"} & history.counts.keys()


@LONG
@pytest.mark.seeds(RUNS)
def test_clients_of_a_cluster_are_told_the_truth_whatever_fails(seed: int) -> None:
    ran(seed)


@LONG
@pytest.mark.seeds(RUNS)
def test_clients_of_a_cluster_are_told_the_truth_while_members_leave_and_join(seed: int) -> None:
    ran(seed, has_changing_members=True)


def test_a_seed_repeats_its_run() -> None:
    first = ran(2, has_changing_members=True).lines
    assert len(first) > 20
    assert ran(2, has_changing_members=True).lines == first


def test_everything_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(24):
        counts += ran(seed, has_changing_members=True).counts
    expected = (
        "confirmed", "refused", "returned", "delivered", "again", "settled", "requeued", "cancelled", "404",
        "405", "320", "leave", "forget", "join",
    )  # fmt: skip
    assert [name for name in expected if not counts[name]] == []
