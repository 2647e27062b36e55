"""What fails in a proof: the network in the shapes of RabbitMQ's Jepsen tests, processes, disks, members."""

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from urllib.parse import quote

from tests.cluster.proof import QUEUE, Proof
from tests.cluster.warren_cluster import WarrenCluster
from tests.integration.faults import Faults
from tests.oracle.cluster.cluster_brokers import full_name

# A break that is shorter than anything notices.
BLIP_S = 0.043
# The disk of this node fails; its messages are in files of this folder.
FAILING, MESSAGES = "a", "vhosts/"
SLOW_MS = 4_000
NO_SPACE = 28

Disturbance = Callable[[Proof, random.Random, float], None]


# --- the network -----------------------------------------------------------------------------------------


def separate(cluster: WarrenCluster, groups: Sequence[Sequence[str]]) -> None:
    """Pass nothing between the groups, and tell nobody."""
    for one, other in combinations(groups, 2):
        for name in one:
            for far in other:
                cluster.stall(name, far)


def random_halves(proof: Proof, chance: random.Random, seconds: float) -> None:
    """A majority and a minority, other ones each time."""
    names = chance.sample(list(proof.cluster.nodes), len(proof.cluster.nodes))
    _for(seconds, proof, [names[: len(names) // 2], names[len(names) // 2 :]])


def halves(proof: Proof, chance: random.Random, seconds: float) -> None:
    """A majority and a minority, always the same."""
    names = list(proof.cluster.nodes)
    _for(seconds, proof, [names[: len(names) // 2], names[len(names) // 2 :]])


def random_node(proof: Proof, chance: random.Random, seconds: float) -> None:
    """One node alone."""
    name = chance.choice(list(proof.cluster.nodes))
    _for(seconds, proof, [[name], [each for each in proof.cluster.nodes if each != name]])


def majorities_ring(proof: Proof, chance: random.Random, seconds: float) -> None:
    """Each node sees a majority, and no two see the same one."""
    names = chance.sample(list(proof.cluster.nodes), len(proof.cluster.nodes))
    near = {frozenset(pair) for pair in pairwise([*names, names[0]])}
    if len(names) == 3:
        # A ring of three is whole: two of them do not see each other.
        near.discard(frozenset(names[:2]))
    for one, other in combinations(names, 2):
        if frozenset((one, other)) not in near:
            proof.cluster.stall(one, other)
    time.sleep(seconds)


def one_way(proof: Proof, chance: random.Random, seconds: float) -> None:
    """Nothing passes from one node to another, and everything back."""
    proof.cluster.proxies.silence(*chance.sample(list(proof.cluster.nodes), 2))
    time.sleep(seconds)


def blips(proof: Proof, chance: random.Random, seconds: float) -> None:
    """Breaks of 43 ms, twice a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        proof.cluster.stall(*chance.sample(list(proof.cluster.nodes), 2))
        time.sleep(BLIP_S)
        proof.cluster.mend()
        time.sleep(0.5)


def _for(seconds: float, proof: Proof, groups: Sequence[Sequence[str]]) -> None:
    separate(proof.cluster, groups)
    time.sleep(seconds)


# --- processes -------------------------------------------------------------------------------------------


def kill(proof: Proof, chance: random.Random, seconds: float) -> None:
    """SIGKILL to one node, which starts again after a while."""
    name = chance.choice(list(proof.cluster.nodes))
    proof.cluster.kill(name)
    time.sleep(seconds)
    proof.cluster.start(name)


def kill_leader(proof: Proof, chance: random.Random, seconds: float) -> None:
    """SIGKILL to the node that leads the queue."""
    cluster = proof.cluster
    name = next(filter(None, (cluster.leader(QUEUE, each) for each in cluster.nodes)), FAILING)
    cluster.kill(name)
    time.sleep(seconds)
    cluster.start(name)


def kill_all(proof: Proof, chance: random.Random, seconds: float) -> None:
    """SIGKILL to all nodes at once."""
    cluster = proof.cluster
    for name in cluster.nodes:
        cluster.kill(name)
    for node in cluster.nodes.values():
        node.begin()
    for node in cluster.nodes.values():
        node.wait_ready()
    time.sleep(seconds)


def stop(proof: Proof, chance: random.Random, seconds: float) -> None:
    """SIGTERM to one node, as in a rolling restart."""
    name = chance.choice(list(proof.cluster.nodes))
    proof.cluster.stop(name)
    proof.cluster.start(name)
    time.sleep(seconds)


def pause(proof: Proof, chance: random.Random, seconds: float) -> None:
    """SIGSTOP to one node for a second or for the whole time."""
    name = chance.choice(list(proof.cluster.nodes))
    proof.cluster.pause(name)
    try:
        time.sleep(chance.choice((1.0, seconds)))
    finally:
        process = proof.cluster.nodes[name].process
        assert process is not None
        process.send_signal(signal.SIGCONT)


# --- disks -----------------------------------------------------------------------------------------------


def failing_disk(faults: Faults) -> Disturbance:
    """The disk of a node is slow, full or hangs."""

    def fail(proof: Proof, chance: random.Random, seconds: float) -> None:
        messages = f"{proof.cluster.nodes[FAILING].data}/{MESSAGES}"
        rule = chance.choice(("fdatasync delay {slow}", "write errno {full}", "fdatasync hang 0"))
        faults.set(f"{rule.format(slow=SLOW_MS, full=NO_SPACE)} {messages}")
        with faults.held():
            time.sleep(seconds)
            faults.set()

    return fail


# --- members ---------------------------------------------------------------------------------------------


def change_members(proof: Proof, chance: random.Random, seconds: float) -> None:
    """A replica is deleted and comes back, and leaders are spread anew, while clients work."""
    cluster = proof.cluster
    name, asked = chance.sample(list(cluster.nodes), 2)
    place = f"/api/queues/quorum/{quote('/', safe='')}/{QUEUE}"
    replica = {"node": full_name(name)}
    cluster.wait(
        lambda: cluster.ask(asked, "DELETE", f"{place}/replicas/delete", replica)[0] in (200, 202, 204),
        f"the replica on {name} is deleted",
    )
    time.sleep(seconds / 2)
    cluster.wait(
        lambda: cluster.ask(asked, "POST", f"{place}/replicas/add", replica)[0] in (200, 202, 204),
        f"the replica on {name} is added",
    )
    cluster.ask(asked, "POST", "/api/rebalance/queues")
    time.sleep(seconds / 2)


# --- together --------------------------------------------------------------------------------------------


def any_of(others: Sequence[Disturbance]) -> Disturbance:
    """One of them after the other, as chance has it."""

    def act(proof: Proof, chance: random.Random, seconds: float) -> None:
        chance.choice(others)(proof, chance, seconds)

    return act


PARTITIONS: Mapping[str, Disturbance] = {
    "random halves": random_halves,
    "halves": halves,
    "majorities ring": majorities_ring,
    "random node": random_node,
}
EVERYTHING = any_of(
    (random_halves, majorities_ring, random_node, one_way, blips, kill, kill_leader, kill_all, stop, pause,
     change_members)
)  # fmt: skip
