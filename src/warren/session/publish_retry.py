"""Tries a publish again that was refused, or routed to no queue, by what this node knows.

A node of a cluster applies what the others have agreed on a moment later than they do. So its exchange, its
permission or its queue may be there already, and the publish is tried again when this node has applied all
that was agreed on before it. The permission of a user about whom a web server
decides may have to be asked for. What follows on the channel waits meanwhile.
"""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from warren.errors import ChannelException, MetadataTimeout, NotFound, Undecided
from warren.metadata.refusal_check import RefusalCheck
from warren.model.decided import decided
from warren.model.message import Message
from warren.session.publisher import ChannelPublisher
from warren.session.throttle import Throttle

T = TypeVar("T")


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
        if isinstance(refusal, Undecided):
            later = await self._publish_decided(refusal)
            if later is None:
                return
            refusal = later
            if not self.has_message:
                raise refusal
        if publisher.unrouted is not None:
            await self._route_again(publisher.unrouted, refusal)
            return
        if not await self._is_refuted(refusal, len(publisher.unadmitted or b"")):
            raise refusal
        try:
            await decided(self._publish_now)
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

    async def _publish_decided(self, undecided: Undecided) -> ChannelException | None:
        """Publish the message when the permission is decided; returns the refusal, if it is refused then."""
        size = len(self._publisher.unadmitted or b"")
        try:
            await self._holding(size, decided(self._publish_now, undecided))
        except ChannelException as refusal:
            return refusal
        return None

    async def _publish_now(self) -> None:
        self._publisher.publish_again()

    async def _route_again(self, message: Message, refusal: ChannelException) -> None:
        is_certain = True
        try:
            await self._is_refuted(refusal, len(message.content))
        except MetadataTimeout:
            is_certain = False
        self._publisher.route_again(is_certain=is_certain)

    async def _is_refuted(self, refusal: ChannelException, size: int) -> bool:
        """True if this node has applied more since it refused the message of `size` bytes."""
        check = self._refusal_check
        return await self._holding(size, check.is_refuted(refusal, check.index))

    async def _holding(self, size: int, waiting: Awaitable[T]) -> T:
        """The result of `waiting`, for which a message of `size` bytes is kept."""
        # A client that closes the connection now has sent the message before.
        self._throttle.held(size)
        try:
            return await waiting
        finally:
            self._throttle.released(size)
