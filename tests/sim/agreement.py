"""What members of a metadata group must agree on at every step (Raft, figure 3), as far as it was seen."""

from typing import Protocol

from tests.sim.test_journal_replay import everything

from warren.journal.journal import Journal
from warren.metadata.machine import Metadata


class AgreeingNode(Protocol):
    """Port: a node that runs."""

    name: str
    journal: Journal
    metadata: Metadata


class Agreement:
    """The leaders, the committed entries and the metadata of clusters, as the first node had them."""

    def __init__(self) -> None:
        # By the id of the cluster and the term, by that and the index of an entry, and of the metadata.
        self._leaders: dict[tuple[bytes, int], str] = {}
        self._terms: dict[tuple[bytes, int], tuple[str, int]] = {}
        self._contents: dict[tuple[bytes, int], tuple[str, dict[str, str]]] = {}
        # By node: the last index at which it was checked.
        self._committed: dict[str, int] = {}
        self._applied: dict[str, int] = {}

    def check(self, node: AgreeingNode) -> None:
        """Check a node that has run: AssertionError if it contradicts what another one had."""
        cluster = node.metadata.members.cluster_id
        if cluster:
            self._check_leader(cluster, node)
            self._check_committed(cluster, node)
            self._check_metadata(cluster, node)

    def _check_leader(self, cluster: bytes, node: AgreeingNode) -> None:
        """Election safety: a term has one leader at most."""
        if node.journal.group.is_leader:
            term, _ = node.journal.group.leader
            leader = self._leaders.setdefault((cluster, term), node.name)
            assert leader == node.name, f"{leader} and {node.name} lead term {term}"

    def _check_committed(self, cluster: bytes, node: AgreeingNode) -> None:
        """Log matching and leader completeness: a committed entry has the same term in all logs."""
        replica = node.journal.group.replica
        commit = replica.commit_index()
        before = self._committed.get(node.name, 0)
        self._committed[node.name] = commit
        # A node that has started again, or joined, may have less.
        for index in range(before + 1 if before <= commit else 1, commit + 1):
            term = replica.log.term(index)
            if term is not None:
                other, known = self._terms.setdefault((cluster, index), (node.name, term))
                assert term == known, f"entry {index} has term {known} in {other}, {term} in {node.name}"

    def _check_metadata(self, cluster: bytes, node: AgreeingNode) -> None:
        """State machine safety: all nodes have the same metadata at the same index."""
        index = node.metadata.index
        if self._applied.get(node.name) == index:
            return
        self._applied[node.name] = index
        parts = everything(node.metadata)
        for name, counts in (("homes", node.metadata.homes), ("replicas", node.metadata.replicas)):
            parts[name] = sorted((id, count) for id, count in counts.items() if count)
        content = {part: repr(value) for part, value in parts.items()}
        other, same = self._contents.setdefault((cluster, index), (node.name, content))
        different = [
            (part, content.get(part), same.get(part))
            for part in sorted({*content, *same})
            if content.get(part) != same.get(part)
        ]
        assert not different, f"{node.name} and {other} differ at {index}: {different}"
