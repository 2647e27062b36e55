"""Brings a blank node into its cluster, as its formation says: it asks others, or begins a cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from warren.cluster.admission import AdmissionAnswer
from warren.cluster.formation import (
    AskNode,
    BeginCluster,
    Formation,
    FormationNode,
    FormationPlan,
    GiveUp,
    LookUpNodes,
    PauseUntil,
)
from warren.cluster.hello import NO_CLUSTER, Hello
from warren.errors import AmqpError
from warren.limits_cluster import FORMATION_ADMISSION_MS, FORMATION_NODES_MAX, FORMATION_PROOF_MS
from warren.metadata.commands import Outcome, Reply
from warren.node.errors import BootRefused
from warren.transport.cluster.discovery import DiscoverySettings, discover_nodes
from warren.transport.host_socket import HostUnreachable

logger = logging.getLogger("warren.cluster")

# Interval at which a node that is in no cluster yet says what it waits for.
_REPORT_S = 10


class FormationSettings(Struct, frozen=True, kw_only=True):
    """How a new node comes into its cluster."""

    plan: FormationPlan
    # Where it looks for the others, if the plan does not name them.
    discovery: DiscoverySettings | None


class AskedLink(Protocol):
    """Port: the link by which this node asks another one."""

    @property
    def hello(self) -> Hello | None:
        """What the other node says of itself, once it has proved it."""

    @property
    def failure(self) -> str:
        """Why the last attempt to connect has failed."""


class JoiningNode(Protocol):
    """Port: this node, which is in no cluster."""

    def join(self, host: str, port: int, answered: Callable[[AdmissionAnswer], None]) -> AskedLink:
        """Ask the node that listens there for admission; `answered` is called once, or never."""

    def stop_joining(self) -> None:
        """Ask no more."""

    async def form(self) -> Reply:
        """Begin a cluster. Raises AmqpError."""


class ClusterFormation:
    """The way of one blank node into its cluster."""

    @classmethod
    def of(cls, settings: FormationSettings, node: JoiningNode) -> "ClusterFormation":
        """The way of `node` by its settings."""
        discovery = settings.discovery

        async def look_up() -> Sequence[FormationNode]:
            return () if discovery is None else await discover_nodes(discovery)

        return cls(settings.plan, node, look_up)

    def __init__(
        self,
        plan: FormationPlan,
        node: JoiningNode,
        look_up: Callable[[], Awaitable[Sequence[FormationNode]]],
    ) -> None:
        """`look_up` returns the nodes if the plan does not name them; raises HostUnreachable."""
        self._plan = plan
        self._node = node
        self._look_up = look_up
        self._loop = asyncio.get_running_loop()
        self._formation = Formation(plan, self._now())
        self._reported_at = self._loop.time()
        # What each node has refused last, so that it is logged once.
        self._refusals: dict[FormationNode, str] = {}

    async def run(self) -> AdmissionAnswer | None:
        """Return the answer of the member that has admitted this node; None if this node began a cluster.

        Raises BootRefused if neither is possible. It may be cancelled.
        """
        logger.info(
            "this node is in no cluster yet: it is %s", "the seed" if self._plan.is_seed else "to join one"
        )
        while True:
            self._report()
            match self._formation.next(self._now()):
                case AskNode(node):
                    answer = await self._ask(node)
                    if answer is not None:
                        return answer
                case LookUpNodes():
                    await self._find_nodes()
                case PauseUntil(due):
                    await asyncio.sleep((due - self._now()) / 1000)
                case BeginCluster():
                    await self._begin()
                    return None
                case GiveUp(text):
                    raise BootRefused(text)

    # --- private -------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._loop.time() * 1000)

    async def _ask(self, node: FormationNode) -> AdmissionAnswer | None:
        """Ask a node, and return its answer if it has admitted this one."""
        answered: asyncio.Future[AdmissionAnswer] = self._loop.create_future()
        link = self._node.join(node.host, node.port, answered.set_result)
        try:
            await asyncio.wait((answered,), timeout=FORMATION_PROOF_MS / 1000)
            if not answered.done() and _is_member(link):
                # It has to have its cluster agree.
                await asyncio.wait((answered,), timeout=FORMATION_ADMISSION_MS / 1000)
        finally:
            self._node.stop_joining()
        formation = self._formation
        if not answered.done():
            if _is_member(link):
                formation.heard_member("this member has not answered in time", self._now())
            else:
                formation.heard_nothing(link.failure, self._now())
            return None
        answer = answered.result()
        if not answer.refusal:
            return answer
        if answer.blank is not None:
            formation.heard_blank(answer.blank, self._now())
        else:
            self._refused(node, answer.refusal)
            formation.heard_member(answer.refusal, self._now())
        return None

    async def _find_nodes(self) -> None:
        try:
            nodes = await self._look_up()
        except HostUnreachable as error:
            self._formation.found_nothing(str(error), self._now())
        else:
            self._formation.found(nodes)

    async def _begin(self) -> None:
        try:
            reply = await self._node.form()
        except AmqpError as error:
            raise BootRefused(f"this node cannot begin a cluster: {error}") from error
        if reply.outcome is Outcome.REFUSED:
            raise BootRefused(f"this node cannot begin a cluster: {reply.text}")
        logger.info("this node has begun a cluster, which others can join")

    def _refused(self, node: FormationNode, reason: str) -> None:
        if self._refusals.get(node) != reason:
            if len(self._refusals) >= FORMATION_NODES_MAX:
                # The DNS tells other addresses than before.
                self._refusals.clear()
            self._refusals[node] = reason
            logger.warning("the member %s does not admit this node: %s", node, reason)

    def _report(self) -> None:
        """Say what this node waits for, if it has waited long since it said so."""
        if self._loop.time() - self._reported_at >= _REPORT_S:
            self._reported_at = self._loop.time()
            logger.warning("waiting for a cluster: %s", self._formation.missing())


def _is_member(link: AskedLink) -> bool:
    """True if the node that is asked has proved that it is in a cluster."""
    return link.hello is not None and link.hello.cluster_id != NO_CLUSTER
