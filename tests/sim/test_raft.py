"""Replicas that agree on a log while power, network and members change, driven by seeds.

Elections, partitions, messages that are lost, repeated and reordered, crashes that lose unsynced and torn
writes, compaction, snapshots, reads, and changes of the members, singly and by joint configurations. What
holds at each step is listed in `raft_group`; in the end everything works again, and a new entry reaches every
voter.
"""

import random
from collections.abc import Sequence

import pytest
from tests.seeds import SEEDS
from tests.sim.raft_group import Action, RaftSimulation

from warren.replication.raft import replica
from warren.replication.raft.raft_settings import RaftSettings

STEPS = 400
# Runs for each seed of other simulations: 5,000 compiled, and 1,000 of them interpreted, take half a minute
# and a quarter of one.
COMPILED, INTERPRETED = 25, 5
# Rounds of ticks and deliveries in which a group that works again must commit.
ROUNDS = 120
USUAL = {
    "deliver": 40, "lose": 2, "repeat": 2, "tick": 12, "write": 20, "apply": 12, "propose": 8, "compact": 1,
    "start": 4, "heal": 1, "read": 2,
}  # fmt: skip
# Weights of what goes wrong, of which each seed has one row: nothing, elections, partitions, crashes, members
# or all of it.
PROFILES = (
    {},
    {"campaign": 4, "transfer": 2, "hand over": 1, "forget": 1, "ended": 1, "lost": 2, "failed": 1},
    {"cut": 2, "isolate": 2, "campaign": 1},
    {"crash": 3, "campaign": 1},
    {"change": 3, "replace": 2, "campaign": 1, "transfer": 1, "crash": 1},
    {
        "change": 2,
        "replace": 1,
        "campaign": 2,
        "cut": 1,
        "isolate": 1,
        "crash": 2,
        "transfer": 1,
        "failed": 1,
    },
)


def settings_of(seed: int) -> RaftSettings:
    """Return settings with small bounds; some groups have no pre-votes and leases, or never hand over."""
    is_cautious = seed % 4 != 3
    return RaftSettings(
        election_ticks=3, pre_vote=is_cautious, check_quorum=is_cautious,
        append_bytes_max=(40, 100, 400)[seed // 6 % 3], in_flight_messages_max=1 + seed % 5,
        uncommitted_bytes_max=400, hand_over_before_removal=seed // 8 % 4 != 3,
        slow_storage_ticks=(3, 6, 0)[seed // 6 % 3],
    )  # fmt: skip


def actions_of(seed: int, steps: int = STEPS) -> list[Action]:
    """Return the actions of a seed."""
    chance = random.Random(seed)
    weights = USUAL | PROFILES[seed % len(PROFILES)]
    names = chance.choices(list(weights), weights.values(), k=steps)
    return [Action(name, chance.randrange(5), chance.randrange(1000)) for name in names]


def fails(seed: int, actions: Sequence[Action], *, is_settled: bool = True) -> str:
    """Return why a run fails, empty if it does not."""
    simulation = RaftSimulation(seed, settings_of(seed))
    try:
        for action in actions:
            simulation.perform(action)
        if is_settled and not simulation.settle(ROUNDS):
            return "nothing is committed after everything works again"
    except AssertionError as error:
        return str(error) or "an assertion of the core"
    return ""


def shrink(seed: int, actions: list[Action]) -> list[Action]:
    """Return few of the actions with which the run still fails."""
    size = len(actions) // 2
    while size:
        begin = 0
        while begin < len(actions):
            fewer = actions[:begin] + actions[begin + size :]
            if fails(seed, fewer):
                actions = fewer
            else:
                begin += size
        size //= 2
    return actions


@pytest.mark.seeds(SEEDS * (INTERPRETED if replica.__file__.endswith(".py") else COMPILED))
def test_replicas_agree_and_commit_nothing_that_can_be_lost(seed: int) -> None:
    actions = actions_of(seed)
    if reason := fails(seed, actions):
        fewer = shrink(seed, actions)
        steps = "\n".join(f"{action.name} {action.one} {action.other}" for action in fewer)
        pytest.fail(f"{reason}; with {len(fewer)} actions: {fails(seed, fewer)}\n{steps}")
