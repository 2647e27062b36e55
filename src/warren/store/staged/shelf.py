"""What is staged in one virtual host: by query and batch, then by partition and attempt; and what is decided.

Nothing here waits for the disk but `open_shelf`: whoever changes the shelf has written already what it says,
or deletes afterwards what it answers.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from warren.store.disk import Delete, Disk, Step, SyncDirectory
from warren.store.segment import SegmentError
from warren.store.staged import plan as plan_file
from warren.store.staged import stage as stage_file
from warren.store.staged.plan import Plan, open_plan
from warren.store.staged.stage import PART, Stage, open_stage

Batch = tuple[str, int]
# Partition and attempt.
Place = tuple[int, int]


class Shelf:
    """The stages and plans of one virtual host."""

    __slots__ = ("_next", "by_batch", "octets", "plans", "stages", "users")

    def __init__(self, number: int = 0) -> None:
        """An empty one, on which no number up to `number` is used."""
        self._next = number
        # By number; and by what they are for.
        self.stages: dict[int, Stage] = {}
        self.by_batch: dict[Batch, dict[Place, Stage]] = {}
        # Of whom how many stages of a query are there.
        self.users: dict[str, Counter[str]] = {}
        # By query, of which one batch at a time is published.
        self.plans: dict[str, Plan] = {}
        # Of all files of stages.
        self.octets = 0

    def new_number(self) -> int:
        """One that nothing else has, or had."""
        self._next += 1
        return self._next

    def add(self, stage: Stage) -> list[Step]:
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

    def remove(self, stages: list[Stage]) -> list[Step]:
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
        return [Delete(stage.name) for stage in stages]

    def end(self, plan: Plan) -> list[Step]:
        """`plan` is carried out, or given up; answers what takes it away, and all that was staged for it."""
        del self.plans[plan.query]
        places = self.by_batch.get((plan.query, plan.batch), {})
        # The plan first: one without its stages could not be carried out.
        return [Delete(plan.name), SyncDirectory(), *self.remove(list(places.values()))]

    def is_too_late(self, stage: Stage) -> bool:
        """True if its batch was decided without it: it must not take the place of what was decided."""
        description = stage.description
        plan = self.plans.get(description.query)
        return plan is not None and plan.batch == description.batch and stage.number not in plan.stages

    def of(self, query: str, batch: int) -> dict[Place, Stage]:
        """What is staged of `batch` of `query`."""
        return self.by_batch.get((query, batch), {})


def open_shelf(disk: Disk, report: Callable[[SegmentError], None]) -> Shelf:
    """What is in `disk`; what is damaged stays there, and is told to `report`. OSError from the disk."""
    names = disk.names()
    disk.perform([Delete(name) for name in names if name.endswith(PART) and _is_own(name.removesuffix(PART))])
    numbers = {suffix: _numbered(names, suffix) for suffix in (stage_file.SUFFIX, plan_file.SUFFIX)}
    shelf = Shelf(max([0, *numbers[stage_file.SUFFIX], *numbers[plan_file.SUFFIX]]))
    superseded: list[Step] = []
    for number in numbers[plan_file.SUFFIX]:
        try:
            plan = open_plan(disk, number, names[plan_file.plan_name(number)])
        except SegmentError as error:
            report(error)
            continue
        shelf.plans[plan.query] = plan
    for number in numbers[stage_file.SUFFIX]:
        try:
            stage = open_stage(disk, number, names[stage_file.stage_name(number)])
        except SegmentError as error:
            report(error)
            continue
        if shelf.is_too_late(stage):
            superseded.append(Delete(stage.name))
        else:
            # What has a greater number came later, and is instead of what was in its place.
            superseded += shelf.add(stage)
    # A plan may have got its name just before its process was killed: nothing of it is published before that
    # survives a power cut.
    disk.perform([*superseded, SyncDirectory()])
    return shelf


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
