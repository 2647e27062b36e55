"""The index of stages, and what a start finds of it."""

import errno
import random

import pytest
from msgspec.structs import replace
from tests.sim.disk import SimulatedDisk
from tests.unit.store.staged.test_stage import DESCRIPTION, SALT, row

from warren.store.disk import DeleteFile, SyncDirectory
from warren.store.segment import StoreFileError
from warren.store.staged.commit_plan import CommitPlan, write_plan
from warren.store.staged.stage import Stage, StageWriter
from warren.store.staged.stage_index import StageIndex, open_stage_index


def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


def staged(
    there: SimulatedDisk, number: int, *, partition: int = 0, attempt: int = 0, batch: int = 7
) -> Stage:
    description = replace(DESCRIPTION, query="q", batch=batch, partition=partition, attempt=attempt)
    writer = StageWriter(there, number, description, SALT)
    writer.add(row(b"%d" % number))
    return writer.finish()


def opened(there: SimulatedDisk) -> StageIndex:
    damage: list[StoreFileError] = []
    stage_index = open_stage_index(there, damage.append)
    assert not damage
    return stage_index


def plan(number: int, *stages: int) -> CommitPlan:
    return CommitPlan(number=number, query="q", batch=7, user="u", stages=list(stages), rows=len(stages))


def test_a_stage_is_found_by_its_batch_partition_and_attempt() -> None:
    there = disk()
    made = [staged(there, 1), staged(there, 2, partition=1), staged(there, 3, batch=8)]
    stage_index = opened(there)
    assert stage_index.of("q", 7) == {(0, 0): made[0], (1, 0): made[1]}
    assert stage_index.of("q", 8) == {(0, 0): made[2]}
    assert stage_index.of("q", 9) == {}
    assert stage_index.byte_count == sum(stage.size for stage in made)
    assert stage_index.new_number() == 4


def test_staging_again_replaces_the_earlier_stage() -> None:
    there = disk()
    stage_index = StageIndex()
    assert stage_index.add(staged(there, 1)) == []
    again = staged(there, 2)
    assert stage_index.add(again) == [DeleteFile("00000001.stage")]
    assert stage_index.of("q", 7) == {(0, 0): again}
    assert (list(stage_index.stages), stage_index.byte_count) == ([2], again.size)
    # As if the process was killed before the first stage was deleted.
    stage_index = opened(there)
    assert (list(stage_index.stages), list(there.names())) == ([2], ["00000002.stage"])


def test_unfinished_stages_are_deleted_at_a_start() -> None:
    there = disk()
    StageWriter(there, 5, DESCRIPTION, SALT)
    assert opened(there).stages == {}
    assert not there.names()


def test_a_decided_batch_keeps_the_stages_of_its_plan() -> None:
    there = disk()
    staged(there, 1)
    write_plan(there, plan(2, 1))
    # Staged again after the decision, and killed before that was refused.
    staged(there, 3)
    stage_index = opened(there)
    assert stage_index.plans == {"q": plan(2, 1)}
    assert list(stage_index.stages) == [1]
    assert sorted(there.names()) == ["00000001.stage", "00000002.plan"]


def test_a_plan_is_deleted_before_its_stages() -> None:
    there = disk()
    made = plan(3, 1)
    stage_index = StageIndex(3)
    stage_index.add(staged(there, 1))
    stage_index.add(staged(there, 2, attempt=1))
    write_plan(there, made)
    stage_index.plans["q"] = made
    steps = stage_index.end(made)
    assert steps[0] == DeleteFile(made.name)
    there.perform(steps)
    assert not there.names()
    assert (stage_index.plans, stage_index.stages, stage_index.by_batch, stage_index.byte_count) == (
        {},
        {},
        {},
        0,
    )


def test_damaged_files_are_reported_and_left_in_place() -> None:
    there = disk()
    staged(there, 1)
    staged(there, 2, partition=1)
    there.flip_bit("00000001.stage", 3)
    damage: list[StoreFileError] = []
    stage_index = open_stage_index(there, damage.append)
    assert [error.name for error in damage] == ["00000001.stage"]
    assert list(stage_index.stages) == [2]
    assert "00000001.stage" in there.names()
    assert stage_index.new_number() == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_found_at_a_start_survives_a_later_power_cut(seed: int) -> None:
    there = SimulatedDisk(random.Random(seed))
    staged(there, 1)
    there.fault = (SyncDirectory, errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        write_plan(there, plan(2, 1))
    assert opened(there).plans == {"q": plan(2, 1)}
    there.lose_power()
    assert opened(there).plans == {"q": plan(2, 1)}
