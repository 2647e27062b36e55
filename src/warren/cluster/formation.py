"""Forming a cluster: whom a blank node asks to admit it, and when it begins a cluster itself.

All but one of the nodes only ask, until a member admits them. That one is the *seed*: the node that the
settings name, or, where they say only how many nodes there are to be, the one with the least name of all of
them. The seed begins a cluster when it knows that none of the others has one, or has asked long enough.
Since no other node ever begins one, it does not matter in which order nodes start, which of them reach each
other, and how often they are restarted.

    blank ─ asks the others in turn, the seed first ─▶ a member admits it ─────────────▶ member
      └──── is the seed: the others are blank, or silent for FORMATION_SEED_MS ──────▶ begins a cluster

A node that has heard of a cluster begins none any more, whatever follows.
"""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from warren.cluster.admission import AdmissionAnswer, BlankNode
from warren.limits_cluster import FORMATION_NODES_MAX, FORMATION_SEED_MS


class FormationNode(Struct, frozen=True, kw_only=True):
    """A node that may be asked, and where it listens; the DNS does not tell its name."""

    name: str = ""
    host: str
    port: int

    def __str__(self) -> str:
        """How it is named in logs."""
        address = f"{self.host}:{self.port}"
        return f"'{self.name}' at {address}" if self.name else address


class FormationPlan(Struct, frozen=True, kw_only=True):
    """What the settings say about the forming of a cluster."""

    own_name: str
    # Empty: the node with the least name, once `size_hint` nodes are known.
    seed: str
    # Empty if they are looked up.
    nodes: tuple[FormationNode, ...] = ()
    # True if the nodes are looked up, before each round.
    is_looked_up: bool = False
    # How many nodes, with this one, must be known to be in no cluster before one begins.
    size_hint: int | None = None
    # Rounds after which the node gives up; None: never.
    attempts_max: int | None = None
    interval_ms: int
    # True if this node has objects that it would lose by joining a cluster.
    has_objects: bool = False

    @property
    def is_seed(self) -> bool:
        """True if this node is the one that the settings name."""
        return self.seed == self.own_name

    def blank_answer(self) -> AdmissionAnswer:
        """What this node answers to others while it is in no cluster."""
        if self.is_seed:
            reason = "it is the seed, and begins one when it has asked the others"
        elif self.seed:
            reason = f"it is not the seed, which is '{self.seed}'"
        else:
            reason = "it does not know all nodes yet"
        return AdmissionAnswer(
            refusal=f"'{self.own_name}' has no cluster yet; {reason}",
            blank=BlankNode(self.own_name, self.seed),
        )


class AskNode(Struct, frozen=True):
    """Ask this node to admit this one; `heard_blank`, `heard_member` or `heard_nothing` follows."""

    node: FormationNode


class LookUpNodes(Struct, frozen=True):
    """Look up the nodes; `found` or `found_nothing` follows."""


class PauseUntil(Struct, frozen=True):
    """Nothing is to be done until `due`."""

    due: int


class BeginCluster(Struct, frozen=True):
    """Begin a cluster with this node as its first member."""


class GiveUp(Struct, frozen=True):
    """This node does not become a member; the text says why, and what to do."""

    text: str


FormationStep: TypeAlias = AskNode | LookUpNodes | PauseUntil | BeginCluster | GiveUp


class Formation:
    """One blank node on its way into a cluster. Times are milliseconds of a clock that is never set."""

    def __init__(self, plan: FormationPlan, now: int) -> None:
        """`next` tells the first step."""
        self._plan = plan
        self._began_at = now
        self._nodes = _in_order(plan, plan.nodes)
        # True if `_nodes` are those of the coming round.
        self._is_found = not plan.is_looked_up
        # True if the nodes were looked up at least once.
        self._is_known = not plan.is_looked_up
        self._lookup_failure = ""
        # Those that were not asked yet in this round.
        self._waiting: list[FormationNode] = []
        self._rounds = 0
        self._due = now
        # What each node has answered last, and what came instead of an answer.
        self._blank: dict[FormationNode, BlankNode] = {}
        self._reasons: dict[FormationNode, str] = {}
        # True since a node has proved that it is in a cluster.
        self._is_cluster_known = False

    def next(self, now: int) -> FormationStep:
        """Return what is to be done."""
        if self._plan.has_objects:
            return self._with_objects()
        if self._may_begin(now):
            return BeginCluster()
        if self._waiting:
            return AskNode(self._waiting[0])
        if now < self._due:
            return PauseUntil(self._due)
        attempts_max = self._plan.attempts_max
        is_long = now - self._began_at >= FORMATION_SEED_MS
        if attempts_max is not None and self._rounds >= attempts_max and is_long:
            return GiveUp(f"this node found no cluster in {self._rounds} attempts: {self.missing()}")
        if not self._is_found:
            return LookUpNodes()
        self._rounds += 1
        self._waiting = list(self._nodes)
        self._is_found = not self._plan.is_looked_up
        self._pause(now)
        return self.next(now)

    def found(self, nodes: Sequence[FormationNode]) -> None:
        """Take the nodes that were looked up."""
        self._nodes = _in_order(self._plan, nodes)
        self._is_found = self._is_known = True
        self._lookup_failure = ""
        known = set(self._nodes)
        self._blank = {node: blank for node, blank in self._blank.items() if node in known}
        self._reasons = {node: reason for node, reason in self._reasons.items() if node in known}

    def found_nothing(self, reason: str, now: int) -> None:
        """Note that the nodes could not be looked up: that is an attempt, too."""
        self._rounds += 1
        self._lookup_failure = reason
        self._pause(now)

    def heard_blank(self, blank: BlankNode, now: int) -> None:
        """The node that was asked is in no cluster either."""
        node = self._asked(now)
        self._blank[node] = blank
        self._reasons[node] = "it has no cluster yet"
        if blank.seed != self._plan.seed:
            ours, theirs = self._plan.seed or "the least name", blank.seed or "the least name"
            self._reasons[node] = (
                f"it has no cluster yet, and takes '{theirs}' for the seed, which is '{ours}' here: "
                "set cluster_formation.seed to one name on all nodes"
            )

    def heard_member(self, reason: str, now: int) -> None:
        """The node that was asked is in a cluster; it refuses, or has not answered in time."""
        node = self._asked(now)
        self._is_cluster_known = True
        self._blank.pop(node, None)
        self._reasons[node] = reason

    def heard_nothing(self, reason: str, now: int) -> None:
        """The node that was asked has not proved itself in time."""
        node = self._asked(now)
        self._blank.pop(node, None)
        self._reasons[node] = reason or "no answer"

    def missing(self) -> str:
        """Say what this node waits for: what there is instead of a cluster, for the log."""
        if self._lookup_failure:
            return f"the nodes cannot be looked up: {self._lookup_failure}"
        reasons = [f"{node}: {self._reasons[node]}" for node in self._nodes if node in self._reasons]
        if not reasons:
            reasons = ["there is no other node"]
        if self._is_first and self._plan.size_hint is not None:
            size = self._plan.size_hint
            reasons.append(f"{len(self._blank_names())} of {size} nodes are there to begin a cluster")
        return "; ".join(reasons)

    # --- private -------------------------------------------------------------------------------------

    @property
    def _is_first(self) -> bool:
        """True if this node may be the one that begins a cluster."""
        return self._plan.is_seed or not self._plan.seed

    def _with_objects(self) -> FormationStep:
        """A node with objects asks nobody: it would lose them, as it would be admitted at once."""
        if self._plan.is_seed:
            return BeginCluster()
        return GiveUp(
            "this node has queues, users or other objects of its own, which it would lose by joining a "
            f"cluster: set cluster_formation.seed = {self._plan.own_name} on all nodes to begin the cluster "
            "with them, start with an empty data directory, or remove "
            "cluster_formation.peer_discovery_backend"
        )

    def _may_begin(self, now: int) -> bool:
        plan = self._plan
        if not self._is_first or self._is_cluster_known or not self._is_known:
            return False
        if any(blank.seed != plan.seed for blank in self._blank.values()):
            return False
        if self._rounds == 0 or any(node not in self._reasons for node in self._nodes):
            return False
        if plan.size_hint is not None:
            names = self._blank_names()
            return len(names) >= plan.size_hint and (plan.is_seed or plan.own_name == min(names))
        assert plan.is_seed, "the least name is known only with the number of nodes"
        # The DNS may not know all nodes yet: those of the settings are all.
        is_complete = not plan.is_looked_up and len(self._blank) == len(self._nodes)
        return is_complete or now - self._began_at >= FORMATION_SEED_MS

    def _blank_names(self) -> set[str]:
        """The nodes that are in no cluster, with this one."""
        return {self._plan.own_name, *(blank.name for blank in self._blank.values())}

    def _asked(self, now: int) -> FormationNode:
        """Return the node that was asked last; the next one is asked, or the round is over."""
        self._pause(now)
        return self._waiting.pop(0)

    def _pause(self, now: int) -> None:
        self._due = now + self._plan.interval_ms
        seed_at = self._began_at + FORMATION_SEED_MS
        if self._is_first and now < seed_at:
            # It need not wait for the next round to find that it has waited long enough.
            self._due = min(self._due, seed_at)


def _in_order(plan: FormationPlan, nodes: Sequence[FormationNode]) -> tuple[FormationNode, ...]:
    """Return the nodes to ask, the seed first: it is the one that has a cluster before the others."""
    others = [node for node in nodes if node.name != plan.own_name]
    others.sort(key=lambda node: node.name != plan.seed)
    return tuple(others[:FORMATION_NODES_MAX])
