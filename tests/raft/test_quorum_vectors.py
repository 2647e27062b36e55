"""The quorum decides as the published tables say."""

from pathlib import Path

import pytest
from tests.raft.datadriven import Directive, read
from tests.raft.vectors import vectors

from warren.replication.raft.quorum import EVERYTHING, VoteResult, joint_index, joint_vote

RESULTS = {VoteResult.PENDING: "VotePending", VoteResult.LOST: "VoteLost", VoteResult.WON: "VoteWon"}
VOTES = {"y": True, "n": False, "_": None}


@pytest.mark.parametrize("path", vectors("quorum/testdata"))
def test_each_table_of_quorums_is_printed_as_published(path: Path) -> None:
    read(path).run(execute)


def execute(directive: Directive) -> str:
    voters = [int(each) for each in directive.values("cfg") or []]
    joint = directive.values("cfgj")
    outgoing = [] if joint in (None, ["zero"]) else [int(each) for each in joint or []]
    members = list(dict.fromkeys(voters + outgoing))
    if directive.command == "vote":
        votes = dict(zip(members, (VOTES[each] for each in directive.values("votes") or []), strict=True))
        result = joint_vote([votes[each] for each in voters], [votes[each] for each in outgoing])
        assert result is joint_vote([votes[each] for each in outgoing], [votes[each] for each in voters])
        return RESULTS[result]
    texts = directive.values("idx") or []
    matches = {each: int(text) for each, text in zip(members, texts, strict=True) if text != "_"}
    committed = _committed(voters, outgoing, matches)
    assert committed == _committed(outgoing, voters, matches)
    shown = "∞" if committed == EVERYTHING else str(committed)
    # A majority without members has no chart.
    return f"{_chart(members, matches)}{shown}" if members else f"<empty majority quorum>{shown}"


def _committed(voters: list[int], outgoing: list[int], matches: dict[int, int]) -> int:
    return joint_index([matches.get(each, 0) for each in voters], [matches.get(each, 0) for each in outgoing])


def _chart(members: list[int], matches: dict[int, int]) -> str:
    """Return a bar for each replica, as long as the number of replicas that have less."""
    lines = [" " * len(members) + "    idx"]
    for each in sorted(members):
        less = sum(matches.get(other, 0) < matches.get(each, 0) for other in members)
        bar = "x" * less + ">" if each in matches else "?"
        lines.append(f"{bar:<{len(members)}}  {matches.get(each, 0):>5}    (id={each})")
    return "\n".join(lines) + "\n"
