"""Direct replies to requesters on other nodes, of one virtual host: implements port `RemoteReplies`."""

from collections.abc import Callable

from warren.cluster.home_node import HomeNode
from warren.metadata.machine import Metadata
from warren.model.message import Message
from warren.queues.reply import REPLY_ADDRESS_PREFIX, requester_of


class ReplyForwarding:
    """Finds the node of a requester by the name to which a reply is sent."""

    def __init__(self, node: int, metadata: Metadata, home_of: Callable[[int], HomeNode]) -> None:
        """`node` is the number of this node; `home_of` gives the traffic of the virtual host with another."""
        self._node = node
        self._metadata = metadata
        self._home_of = home_of

    def publish(self, message: Message) -> None:
        """Send `message` to the node of its requester, if it is a direct reply to another one."""
        if message.address.startswith(REPLY_ADDRESS_PREFIX):
            home = self._home(message.routing_key)
            if home is not None:
                home.reply(message)

    async def is_known(self, name: str) -> bool:
        """True if `name` is that of a requester on another node, which is asked."""
        home = self._home(name)
        if home is None or not home.is_up:
            return False
        request = home.ask_reply(name)
        try:
            answer = await request
        finally:
            if not request.is_done:
                home.withdraw(request)
        return bool(answer[0])

    def _home(self, name: str) -> HomeNode | None:
        """The other node that has made `name`; None if that run of it has ended."""
        requester = requester_of(name)
        if requester is None or requester.node == self._node:
            return None
        if self._metadata.members.run_of(requester.node) != requester:
            return None
        return self._home_of(requester.node)
