"""Removes the bindings of a queue or of an exchange that is to be deleted, turn by turn if it has many.

What deletes the queue or the exchange removes its bindings in the same turn. So that this turn is short for
one with a million of them too, all but a turn's work are removed before, as queue.unbind would.
"""

from collections.abc import Sequence

from warren.limits import REMOVED_PER_TURN
from warren.metadata.declared_topology import unbind_of
from warren.metadata.proposals import Proposals
from warren.metadata.records import BindingRecord
from warren.vhost.coroutine_driver import Later, NextTurn, await_all


async def remove_most_bindings(
    bindings: Sequence[BindingRecord], vhost: str, proposals: Proposals, later: Later, *, user: str
) -> None:
    """Remove `bindings` but for what one turn can; raises what a proposal raises, as for a full disk."""
    for begin in range(0, len(bindings) - REMOVED_PER_TURN, REMOVED_PER_TURN):
        removed = bindings[begin : begin + REMOVED_PER_TURN]
        await await_all(proposals.propose(unbind_of(vhost, binding), user) for binding in removed)
        await NextTurn(later)
