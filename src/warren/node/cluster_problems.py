"""Sentences about what is wrong with a cluster, for the operator who asks for its status."""

from collections import Counter
from collections.abc import Iterator, Mapping

from warren.limits_cluster import CLUSTER_VOTERS_MAX
from warren.management.cluster_controls import VOTER, ClusterStatus, MemberStatus


def problems_of(status: ClusterStatus) -> tuple[str, ...]:
    """What is wrong with the cluster, and what to do about it, a sentence each; the worst first."""
    lost: Counter[tuple[str, bool]] = Counter()
    for queues in status.unavailable:
        lost[queues.node, queues.is_member] += queues.count
    is_voter_wanted = sum(member.role == VOTER for member in status.members) < CLUSTER_VOTERS_MAX
    return (
        *([removal_text(status.removed_by)] if status.removed_by is not None else []),
        *_of_majority(status),
        *_of_leaderless(status),
        *(
            problem
            for member in status.members
            for problem in _of_member(member, status.node, lost, is_voter_wanted=is_voter_wanted)
        ),
        *(
            f"{_queues(count)} on the former member '{node}' {_are(count)} lost: delete them"
            for (node, is_member), count in lost.items()
            if not is_member
        ),
    )


def removal_text(member: str, directory: str = "") -> str:
    """What to do with a node that was removed from its cluster, as `member` says."""
    named = f" ({directory!r})" if directory else ""
    return (
        f"this node was removed from its cluster, as '{member}' says: it has kept its data, and does not "
        f"come back by itself; stop it, move its data directory{named} away, start it with an empty one, "
        "and have it join again: 'warren cluster join'"
    )


def _of_majority(status: ClusterStatus) -> Iterator[str]:
    voters = [member for member in status.members if member.role == VOTER]
    if status.is_in_minority:
        missing = [f"'{member.name}'" for member in voters if member.link not in ("self", "connected")]
        needed = len(voters) // 2 + 1
        yield (
            "this node is in the minority: nothing can be declared or changed on it; it hears "
            f"{len(voters) - len(missing)} of {len(voters)} voters, of which {needed} are needed; "
            f"missing: {', '.join(missing) or 'none'}; start them, or if they are lost for good, see "
            "'warren cluster recover --help'"
        )
    elif len(voters) == 2:
        yield "two nodes agree on changes: while either is down, nothing can be changed; add a third one"


def _of_leaderless(status: ClusterStatus) -> Iterator[str]:
    counts: Counter[tuple[str, ...]] = Counter()
    for queues in status.leaderless:
        counts[queues.missing] += queues.count
    for missing, count in counts.items():
        what = "1 quorum queue has" if count == 1 else f"{count} quorum queues have"
        names = ", ".join(f"'{name}'" for name in missing)
        if len(missing) == 1:
            yield f"{what} no majority while {names} is down: start it"
        elif missing:
            yield f"{what} no majority while {names} are down: start one of them"
        else:
            yield (
                f"{what} lost the nodes without which nobody leads it: 'warren queues recover' goes on with "
                "the replica that is left"
            )


def _of_member(
    member: MemberStatus, here: str, lost: Mapping[tuple[str, bool], int], *, is_voter_wanted: bool
) -> Iterator[str]:
    name = f"'{member.name}'"
    if not member.is_up:
        count = lost.get((member.name, True), 0)
        with_queues = f"; {_queues(count)} on it {_are(count)} unavailable until then" if count else ""
        yield f"{name} is down: start it{with_queues}"
    elif member.link in ("silent", "not connected"):
        yield f"{name} is not heard by '{here}': check the network between them"
    if member.is_draining:
        yield f"{name} is in maintenance mode, without clients: 'warren cluster revive' ends that"
    if member.is_up and member.role != VOTER and is_voter_wanted:
        yield f"{name} is receiving the metadata, and does not vote yet"


def _queues(count: int) -> str:
    return "1 queue" if count == 1 else f"{count} queues"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
