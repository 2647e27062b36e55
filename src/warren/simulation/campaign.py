"""Many runs of the simulated broker, one per seed, and what they survived together."""

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from warren.simulation.actions import Action, draw
from warren.simulation.history import Tally
from warren.simulation.shrinking import shrink
from warren.simulation.simulation import CLIENT_COUNT, RunOutcome, Simulation
from warren.simulation.topology import Topology
from warren.simulation.violation import Violation

# Calls of a run that reduce its actions, after a violation.
_SHRINK_TRIES_MAX = 300


class BrokenRun(Struct, frozen=True, kw_only=True):
    """A broken promise: the seed, the fewest actions that were found to break it, and what is broken."""

    seed: int
    text: str
    actions: list[Action]


class CampaignTotals(Struct, kw_only=True):
    """What all runs survived."""

    seeds: int = 0
    actions: int = 0
    crashes: int = 0
    restarts: int = 0
    stops: int = 0
    cuts: int = 0
    turns: int = 0
    turn_work_max: int = 0
    virtual_ms: int = 0
    tally: Tally = field(default_factory=Tally)

    def add(self, outcome: RunOutcome, actions: int) -> None:
        """Add one run."""
        self.seeds += 1
        self.actions += actions
        for name in ("crashes", "restarts", "stops", "cuts", "turns", "virtual_ms"):
            setattr(self, name, getattr(self, name) + getattr(outcome, name))
        self.turn_work_max = max(self.turn_work_max, outcome.turn_work_max)
        for name in Tally.__struct_fields__:
            setattr(self.tally, name, getattr(self.tally, name) + getattr(outcome.tally, name))

    def lines(self) -> list[str]:
        """The totals as text."""
        tally = self.tally
        return [
            f"{self.seeds} seeds, {self.actions} actions, {self.virtual_ms / 3_600_000:.1f} simulated hours",
            f"{self.crashes} kills and power cuts, {self.restarts} failures of a disk, {self.stops} stops, "
            f"{self.cuts} cut connections",
            f"{tally.published} messages published, {tally.confirmed} confirmed, "
            f"{tally.delivered} delivered, "
            f"{tally.redelivered} again, {tally.settled} acknowledged or rejected",
            f"{tally.returned} returned, {tally.dead_lettered} delivered behind a chain of dead letters, "
            f"{tally.from_streams} read from streams",
            f"{tally.promised} times a confirmed message had to be there, and it was: lost 0",
            f"{self.turns} turns, of at most {self.turn_work_max} methods and changes",
        ]


def run_seed(topology: Topology, seed: int, action_count: int, totals: CampaignTotals) -> BrokenRun | None:
    """Run one seed, and add it to `totals`; returns what it broke, with as few actions as were found."""
    actions = draw(seed, action_count, CLIENT_COUNT)
    try:
        totals.add(Simulation(topology).run(actions), len(actions))
    except Violation as violation:
        return _shrunk(topology, seed, actions, violation)
    return None


def repeat(topology: Topology, actions: Sequence[Action]) -> str:
    """Run `actions`; returns what they break, or an empty text."""
    try:
        Simulation(topology).run(actions)
    except Violation as violation:
        return str(violation)
    return ""


def run_seeds(
    topology: Topology, first: int, action_count: int, go_on: Callable[[CampaignTotals], bool]
) -> tuple[CampaignTotals, BrokenRun | None]:
    """Run one seed after the other, from `first`, while `go_on`, or until one breaks a promise."""
    totals = CampaignTotals()
    seed = first
    while go_on(totals):
        finding = run_seed(topology, seed, action_count, totals)
        if finding is not None:
            return totals, finding
        seed += 1
    return totals, None


def _shrunk(topology: Topology, seed: int, actions: list[Action], violation: Violation) -> BrokenRun:
    def fails(some: Sequence[Action]) -> bool:
        return bool(repeat(topology, some))

    fewest = shrink(actions, fails, _SHRINK_TRIES_MAX)
    return BrokenRun(seed=seed, text=repeat(topology, fewest) or str(violation), actions=fewest)
