"""Which leaders of quorum queues move so that each node leads about as many, as a pure function."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class LeaderTransfer(NamedTuple):
    """The leadership of a queue that moves to another node."""

    queue: int
    to: int


def leader_transfers(
    leaders: Mapping[int, int], candidates: Mapping[int, Sequence[int]]
) -> list[LeaderTransfer]:
    """Return the moves, each from a node to one that leads at least two fewer; a queue moves once.

    `leaders` are the nodes that lead, by queue, and `candidates` the nodes that can lead it.
    """
    led: dict[int, int] = {}
    queues_of: dict[int, list[int]] = {}
    for queue, node in leaders.items():
        led[node] = led.get(node, 0) + 1
        queues_of.setdefault(node, []).append(queue)
    for nodes in candidates.values():
        for node in nodes:
            led.setdefault(node, 0)
    moves: list[LeaderTransfer] = []
    # Those that lead most give away first.
    for node in sorted(queues_of, key=lambda node: (-led[node], node)):
        for queue in queues_of[node]:
            others = [other for other in candidates.get(queue, ()) if other != node]
            to = min(others, key=lambda other: (led[other], other), default=None)
            if to is not None and led[to] + 1 < led[node]:
                led[to] += 1
                led[node] -= 1
                moves.append(LeaderTransfer(queue, to))
    return moves
