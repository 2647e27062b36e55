"""What the home of remote queues needs, as the node sees it that has their clients."""

from collections.abc import Callable

from msgspec import Struct

from warren.cluster.node_channel import NodeChannel
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import Later
from warren.model.turn import Turn


class HomeDependencies(Struct, frozen=True, kw_only=True):
    """What a home needs: the port to its node, and the parts of this one."""

    # The name of the home.
    name: str
    channel: NodeChannel
    metadata: Metadata
    later: Later
    turn: Turn
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # A number for each session, which grows.
    next_generation: Callable[[], int]
