"""Removes the bindings of a queue or exchange that is to be deleted, over several turns if there are many.

The command that deletes the queue or exchange removes its remaining bindings in one turn. To keep this turn
short even with a million bindings, all but one turn's work are removed before, as by queue.unbind.
"""

from collections.abc import Sequence

from warren.limits import REMOVED_PER_TURN
from warren.metadata.declared_topology import unbind_of
from warren.metadata.proposals import Proposals
from warren.metadata.records import BindingRecord
from warren.model.coroutine_driver import Later, NextTurn, await_all


async def remove_most_bindings(
    bindings: Sequence[BindingRecord], vhost: str, proposals: Proposals, later: Later, *, user: str
) -> None:
    """Remove all of `bindings` but one turn's work; raises the error of a proposal, as for a full disk."""
    for begin in range(0, len(bindings) - REMOVED_PER_TURN, REMOVED_PER_TURN):
        removed = bindings[begin : begin + REMOVED_PER_TURN]
        await await_all(proposals.propose(unbind_of(vhost, binding), user) for binding in removed)
        await NextTurn(later)
