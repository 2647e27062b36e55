"""What is staged in one virtual host: by query and batch, then by partition and attempt; and what is decided.

Only `open_stage_index` waits for the disk: a caller writes a change to disk before it changes the index, and
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
# Partition and attempt.
AttemptKey = tuple[int, int]


class StageIndex:
    """The stages and plans of one virtual host."""

    __slots__ = ("_next", "by_batch", "octets", "plans", "stages", "users")

    def __init__(self, number: int = 0) -> None:
        """An empty one, on which no number up to `number` is used."""
        self._next = number
        # By number; and by what they are for.
        self.stages: dict[int, Stage] = {}
        self.by_batch: dict[BatchKey, dict[AttemptKey, Stage]] = {}
        # Of whom how many stages of a query are there.
        self.users: dict[str, Counter[str]] = {}
        # By query, of which one batch at a time is published.
        self.plans: dict[str, CommitPlan] = {}
        # Of all files of stages.
        self.octets = 0

    def new_number(self) -> int:
        """One that nothing else has, or had."""
        self._next += 1
        return self._next

    def add(self, stage: Stage) -> list[DiskStep]:
        """`stage` is there; answers what takes away the one in whose place it is."""
        description = stage.description
        places = self.by_batch.setdefault((description.query, description.batch), {})
        place = (description.partition, description.attempt)
        before = places.get(place)
        steps = [] if before is None else self.remove([before])
        # The last of them takes the batch with it.
        self.by_batch.setdefault((description.query, description.batch), places)[place] = stage
        self.stages[stage.number] = stage
        self.users.setdefault(description.query, Counter())[description.user] += 1
        self.octets += stage.size
        return steps

    def remove(self, stages: list[Stage]) -> list[DiskStep]:
        """Forget `stages`; answers what takes them away."""
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
            self.octets -= stage.size
        return [DeleteFile(stage.name) for stage in stages]

    def end(self, plan: CommitPlan) -> list[DiskStep]:
        """`plan` is carried out, or given up; answers what takes it away, and all that was staged for it."""
        del self.plans[plan.query]
        places = self.by_batch.get((plan.query, plan.batch), {})
        # The plan first: one without its stages could not be carried out.
        return [DeleteFile(plan.name), SyncDirectory(), *self.remove(list(places.values()))]

    def is_superseded(self, stage: Stage) -> bool:
        """True if its batch was decided without it: it must not take the place of what was decided."""
        description = stage.description
        plan = self.plans.get(description.query)
        return plan is not None and plan.batch == description.batch and stage.number not in plan.stages

    def of(self, query: str, batch: int) -> dict[AttemptKey, Stage]:
        """What is staged of `batch` of `query`."""
        return self.by_batch.get((query, batch), {})


def open_stage_index(disk: Disk, report: Callable[[StoreFileError], None]) -> StageIndex:
    """What is in `disk`; what is damaged stays there, and is told to `report`. OSError from the disk."""
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
            # What has a greater number came later, and is instead of what was in its place.
            superseded += stage_index.add(stage)
    # A plan may have got its name just before its process was killed: nothing of it is published before that
    # survives a power cut.
    disk.perform([*superseded, SyncDirectory()])
    return stage_index


def _numbered(names: Iterable[str], suffix: str) -> list[int]:
    """The numbers of those of `names` that end with `suffix`, in order."""
    own = (name for name in names if name.endswith(suffix) and _is_own(name))
    return sorted(int(name.removesuffix(suffix), 16) for name in own)


def _is_own(name: str) -> bool:
    """Whether a stage or a plan is called `name`: others are none of ours."""
    try:
        number = int(name.partition(".")[0], 16)
    except ValueError:
        return False
    return name in (stage_file.stage_name(number), plan_file.plan_name(number))
