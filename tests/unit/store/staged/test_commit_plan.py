"""A commit plan takes effect when its file has its final name."""

import random

import pytest
from tests.sim.disk import SimulatedDisk

from warren.store.segment import StoreFileError
from warren.store.staged.commit_plan import CommitPlan, open_plan, write_plan

PLAN = CommitPlan(number=9, query="ü", batch=3, user="u", stages=[4, 2], rows=10)


def test_a_plan_survives_a_power_cut() -> None:
    there = SimulatedDisk(random.Random(0))
    write_plan(there, PLAN)
    there.lose_power()
    assert open_plan(there, 9, there.names()["00000009.plan"]) == PLAN


@pytest.mark.parametrize("place", [0, 8, 30])
def test_a_damaged_plan_is_ignored(place: int) -> None:
    there = SimulatedDisk(random.Random(0))
    write_plan(there, PLAN)
    there.flip_bit(PLAN.name, place)
    with pytest.raises(StoreFileError):
        open_plan(there, 9, there.names()[PLAN.name])
