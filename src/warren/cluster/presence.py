"""Says which members of the cluster are there: the leader of the metadata group decides, and all obey.

    a member is heard ─▶ MemberUp ─▶ what ended with its earlier runs is deleted
    silent for CLUSTER_MEMBER_DOWN_MS, or gone ─▶ MemberDown ─▶ what ended with its run is deleted

Only a leader proposes, by what it hears itself. A new one does not know whether the one before it has ended
what it began, so it begins with deleting what ended with the runs before.
"""

from collections.abc import Mapping

from warren.cluster.node_link import NodeLink
from warren.errors import AmqpError
from warren.journal.journal import Journal
from warren.limits import REMOVED_PER_TURN
from warren.limits_cluster import CLUSTER_MEMBER_DOWN_MS
from warren.metadata.commands import DeleteEphemeral, MetadataCommand, Outcome
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import MemberDown, MemberUp
from warren.metadata.records import MemberRecord
from warren.model.coroutine_driver import Later, NextTurn, drive


class Presence:
    """What one node knows of the others, which it acts on while it leads."""

    def __init__(
        self,
        journal: Journal,
        metadata: Metadata,
        links: Mapping[int, NodeLink],
        *,
        own: MemberUp,
        later: Later,
    ) -> None:
        """`own` describes this node, and `links` has the links to the others."""
        self._journal = journal
        self._metadata = metadata
        self._links = links
        self._own = own
        self._later = later
        # The term in which this node leads, 0 if it does not.
        self._term = 0
        # Members of which a command is on its way.
        self._proposed: set[int] = set()
        # The time since when each member is silent, as far as it is (ms, of the ticks).
        self._silent_ms: dict[int, int] = {}

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed, and propose what is due."""
        group = self._journal.group
        for member in list(self._metadata.members.by_id):
            link = self._links.get(member)
            is_heard = link is not None and not link.is_silent
            self._silent_ms[member] = 0 if is_heard else self._silent_ms.get(member, 0) + elapsed_ms
        if not group.is_leader:
            self._term = 0
            return
        term, _ = group.leader
        is_new = term != self._term
        self._term = term
        for record in list(self._metadata.members.by_id.values()):
            if record.id not in self._proposed:
                command = self._due(record)
                if command is not None or is_new:
                    self._proposed.add(record.id)
                    drive(self._propose(record.id, command))

    def _due(self, record: MemberRecord) -> MetadataCommand | None:
        """The command that says whether a member is there, if the metadata say something else."""
        if record.id == self._own.id:
            return None if _is_told(record, self._own) else self._own
        link = self._links.get(record.id)
        if link is not None and not link.is_silent and link.hello is not None:
            hello, peer = link.hello, link.peer
            up = MemberUp(
                id=record.id, incarnation=hello.incarnation, host=peer.host, cluster_port=peer.port,
                feature_level=hello.feature_level, amqp_host=record.amqp_host, amqp_port=record.amqp_port,
            )  # fmt: skip
            return None if _is_told(record, up) else up
        is_over = link is not None and link.is_gone
        if record.is_up and (is_over or self._silent_ms.get(record.id, 0) >= CLUSTER_MEMBER_DOWN_MS):
            return MemberDown(id=record.id, incarnation=record.incarnation)
        return None

    async def _propose(self, member: int, command: MetadataCommand | None) -> None:
        """Propose `command`, and then that what ended with earlier runs of the member is deleted."""
        try:
            if command is not None:
                await self._journal.propose(command)
            record = self._metadata.members.by_id.get(member)
            if record is not None:
                ended = DeleteEphemeral(
                    node=member,
                    incarnation=record.incarnation + (0 if record.is_up else 1),
                    count_max=REMOVED_PER_TURN,
                )
                while (await self._journal.propose(ended)).outcome is Outcome.PARTLY:
                    await NextTurn(self._later)
        except AmqpError:
            # No majority has agreed in time; what is due is proposed again.
            self._term = 0
        finally:
            self._proposed.discard(member)


def _is_told(record: MemberRecord, up: MemberUp) -> bool:
    """True if the metadata say of a member what `up` would make them say."""
    return record.is_up and (record.incarnation, record.host, record.cluster_port) == (
        up.incarnation, up.host, up.cluster_port,
    )  # fmt: skip
