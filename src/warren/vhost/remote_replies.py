"""The port to requesters of direct replies that are connected to other nodes."""

from typing import Protocol

from warren.model.message import Message


class RemoteReplies(Protocol):
    """Port: the requesters of one virtual host on all other nodes."""

    def publish(self, message: Message) -> None:
        """Send `message`, which no queue here gets, to the node of its requester if it is a direct reply.

        Nothing says what becomes of it.
        """

    async def is_known(self, name: str) -> bool:
        """True if `name` is that of a requester on another node."""
