"""Tries a publish again that the metadata of this node have refused, or routed to no queue.

A node of a cluster applies what the others have agreed on a moment later than they do. So its exchange, its
permission or its queue may be there already, and the publish is tried again when this node has applied all
that was agreed on before it. What follows on the channel waits meanwhile.
"""

from collections.abc import Sequence

from warren.errors import ChannelException, MetadataTimeout, NotFound
from warren.metadata.refusal_check import RefusalCheck
from warren.model.message import Message
from warren.session.publisher import ChannelPublisher
from warren.session.throttle import Throttle


class PublishRetry:
    """The second attempts of one channel."""

    __slots__ = ("_publisher", "_refusal_check", "_throttle")

    def __init__(self, publisher: ChannelPublisher, refusal_check: RefusalCheck, throttle: Throttle) -> None:
        """`throttle` is told the size of the message that waits."""
        self._publisher = publisher
        self._refusal_check = refusal_check
        self._throttle = throttle

    @property
    def has_message(self) -> bool:
        """True if the publisher has a message that was refused, or routed to no queue."""
        return self._publisher.unadmitted is not None or self._publisher.unrouted is not None

    async def publish_again(self, refusal: ChannelException) -> None:
        """Publish that message again, or raise its `refusal` again."""
        publisher = self._publisher
        if publisher.unrouted is not None:
            await self._route_again(publisher.unrouted, refusal)
            return
        if not await self._is_refuted(refusal, len(publisher.unadmitted or b"")):
            raise refusal
        try:
            publisher.publish_again()
        except NotFound:
            if publisher.unrouted is None:
                raise
            # Nothing is newer that was agreed on before it.
            publisher.route_again(is_certain=True)

    async def await_routes(self, published: Sequence[tuple[Message, bool]]) -> None:
        """Wait until a queue is known here for each of the `published` messages of a transaction, or there is
        none.

        Each is given with True if it is mandatory.
        """
        publisher = self._publisher
        if any(publisher.may_lack_queue(message, is_mandatory) for message, is_mandatory in published):
            await self._refusal_check.is_outdated(self._refusal_check.index)

    async def _route_again(self, message: Message, refusal: ChannelException) -> None:
        is_certain = True
        try:
            await self._is_refuted(refusal, len(message.content))
        except MetadataTimeout:
            is_certain = False
        self._publisher.route_again(is_certain=is_certain)

    async def _is_refuted(self, refusal: ChannelException, size: int) -> bool:
        """True if this node has applied more since it refused the message of `size` bytes."""
        # A client that closes the connection now has sent the message before.
        self._throttle.held(size)
        try:
            return await self._refusal_check.is_refuted(refusal, self._refusal_check.index)
        finally:
            self._throttle.released(size)
