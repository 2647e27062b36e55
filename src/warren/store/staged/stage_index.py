"""The index of what is staged in one virtual host, by query, batch, partition and attempt, and of its commit
plans.

Only `open_stage_index` performs I/O: a caller writes a change to disk before it changes the index, and
deletes the files that the index returns afterwards.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from warren.store.disk import DeleteFile, Disk, DiskStep, SyncDirectory
from warren.store.segment import StoreFileError
from warren.store.staged import commit_plan as plan_file
from warren.store.staged import stage as stage_file
from warren.store.staged.commit_plan import CommitPlan, open_plan
from warren.store.staged.stage import PART, Stage, open_stage

BatchKey = tuple[str, int]
# (partition, attempt)
AttemptKey = tuple[int, int]


class StageIndex:
    """The stages and plans of one virtual host."""

    __slots__ = ("_next", "by_batch", "byte_count", "plans", "stages", "users")

    def __init__(self, number: int = 0) -> None:
        """An empty index; numbers up to `number` are in use."""
        self._next = number
        # By number; and by query and batch.
        self.stages: dict[int, Stage] = {}
        self.by_batch: dict[BatchKey, dict[AttemptKey, Stage]] = {}
        # For each query the number of stages of each user.
        self.users: dict[str, Counter[str]] = {}
        # By query; one batch of a query is published at a time.
        self.plans: dict[str, CommitPlan] = {}
        # The size of all stage files in bytes.
        self.byte_count = 0

    def new_number(self) -> int:
        """A number that was never used before."""
        self._next += 1
        return self._next

    def add(self, stage: Stage) -> list[DiskStep]:
        """Add `stage`; returns the steps that delete the stage that it replaces."""
        description = stage.description
        places = self.by_batch.setdefault((description.query, description.batch), {})
        place = (description.partition, description.attempt)
        before = places.get(place)
        steps = [] if before is None else self.remove([before])
        # Removing the last stage removes the batch as well.
        self.by_batch.setdefault((description.query, description.batch), places)[place] = stage
        self.stages[stage.number] = stage
        self.users.setdefault(description.query, Counter())[description.user] += 1
        self.byte_count += stage.size
        return steps

    def remove(self, stages: list[Stage]) -> list[DiskStep]:
        """Remove `stages`; returns the steps that delete their files."""
        for stage in stages:
            description = stage.description
            places = self.by_batch[description.query, description.batch]
            del places[description.partition, description.attempt]
            if not places:
                del self.by_batch[description.query, description.batch]
            del self.stages[stage.number]
            users = self.users[description.query]
            users[description.user] -= 1
            if not users[description.user]:
                del users[description.user]
            if not users:
                del self.users[description.query]
            self.byte_count -= stage.size
        return [DeleteFile(stage.name) for stage in stages]

    def end(self, plan: CommitPlan) -> list[DiskStep]:
        """Remove `plan`, which is finished or abandoned; returns the steps that delete it and its stages."""
        del self.plans[plan.query]
        places = self.by_batch.get((plan.query, plan.batch), {})
        # The plan first, since a plan without its stages could not be carried out.
        return [DeleteFile(plan.name), SyncDirectory(), *self.remove(list(places.values()))]

    def is_superseded(self, stage: Stage) -> bool:
        """True if its batch has a plan without `stage`, which must not replace a stage of the plan."""
        description = stage.description
        plan = self.plans.get(description.query)
        return plan is not None and plan.batch == description.batch and stage.number not in plan.stages

    def of(self, query: str, batch: int) -> dict[AttemptKey, Stage]:
        """The stages of `batch` of `query`, by partition and attempt."""
        return self.by_batch.get((query, batch), {})


def open_stage_index(disk: Disk, report: Callable[[StoreFileError], None]) -> StageIndex:
    """Read the index from `disk`; damaged files are kept and passed to `report`. OSError from the disk."""
    names = disk.names()
    disk.perform(
        [DeleteFile(name) for name in names if name.endswith(PART) and _is_own(name.removesuffix(PART))]
    )
    numbers = {suffix: _numbered(names, suffix) for suffix in (stage_file.SUFFIX, plan_file.SUFFIX)}
    stage_index = StageIndex(max([0, *numbers[stage_file.SUFFIX], *numbers[plan_file.SUFFIX]]))
    superseded: list[DiskStep] = []
    for number in numbers[plan_file.SUFFIX]:
        try:
            plan = open_plan(disk, number, names[plan_file.plan_name(number)])
        except StoreFileError as error:
            report(error)
            continue
        stage_index.plans[plan.query] = plan
    for number in numbers[stage_file.SUFFIX]:
        try:
            stage = open_stage(disk, number, names[stage_file.stage_name(number)])
        except StoreFileError as error:
            report(error)
            continue
        if stage_index.is_superseded(stage):
            superseded.append(DeleteFile(stage.name))
        else:
            # A stage with a greater number is newer, and replaces the older one.
            superseded += stage_index.add(stage)
    # A plan may have been renamed just before the process was killed: it must be durable before any of it is
    # published.
    disk.perform([*superseded, SyncDirectory()])
    return stage_index


def _numbered(names: Iterable[str], suffix: str) -> list[int]:
    """The sorted numbers of the files in `names` that end with `suffix`."""
    own = (name for name in names if name.endswith(suffix) and _is_own(name))
    return sorted(int(name.removesuffix(suffix), 16) for name in own)


def _is_own(name: str) -> bool:
    """True if `name` is the name of a stage or a plan."""
    try:
        number = int(name.partition(".")[0], 16)
    except ValueError:
        return False
    return name in (stage_file.stage_name(number), plan_file.plan_name(number))
