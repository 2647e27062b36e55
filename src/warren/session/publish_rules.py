"""Checks of published messages: permissions, user-id, expiration and direct reply-to."""

from warren.access.authorize import Authorizer
from warren.errors import AccessRefused, NotFound, PreconditionFailed
from warren.limits import EXPIRY_MS_MAX
from warren.metadata.incarnation import Incarnation
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.queues.reply import REPLY_TO, ReplyQueue, new_reply_name
from warren.routing.exchange import Binding
from warren.session.subscriber import ChannelSubscription
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties

# An empty message, routed to find out whether a name is known.
_NOTHING = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)


class PublishRules:
    """The publish rules of one channel."""

    __slots__ = ("_authorizer", "_incarnation", "_reply", "_router", "_user", "_vhost", "may_impersonate")

    def __init__(
        self, vhost: VirtualHost, authorizer: Authorizer, user: str, *, incarnation: Incarnation,
        may_impersonate: bool,
    ) -> None:  # fmt: skip
        """`incarnation` is the run of this node, of which reply names speak."""
        self._vhost = vhost
        self._router = vhost.router
        self._incarnation = incarnation
        self._authorizer = authorizer
        self._user = user
        # RabbitMQ's user tag `impersonator` permits any user-id.
        self.may_impersonate = may_impersonate
        self._reply: Binding | None = None

    def admit(self, address: bytes) -> bool:
        """Raise AmqpError unless the user may publish to `address`, whose exchange is not internal.

        True if the user may publish to the exchange with any routing key.
        """
        size = address[0]
        name = address[1 : 1 + size].decode("utf-8", "surrogateescape")
        self._authorizer.check_write_exchange(name)
        exchange = self._router.exchanges.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in vhost '{self._router.vhost_name}'")
        if exchange.settings.internal:
            raise AccessRefused(
                f"cannot publish to internal exchange '{name}' in vhost '{self._router.vhost_name}'"
            )
        if exchange.type_name != "topic" or not self._authorizer.restricts_topics(name):
            return True
        self._authorizer.check_topic_write(name, address[2 + size :].decode("utf-8", "surrogateescape"))
        return False

    def check_properties(self, message: Message) -> Message:
        """Check user-id and expiration of `message`; return it with its direct reply-to name filled in."""
        properties = message.properties()
        user_id = properties.user_id
        if user_id is not None and user_id != self._user and not self.may_impersonate:
            raise PreconditionFailed(
                f"user_id property set to '{user_id}' but authenticated user was '{self._user}'"
            )
        if properties.expiration is not None:
            check_expiration(properties.expiration)
        if properties.reply_to == REPLY_TO:
            return self._with_reply_name(message, properties)
        return message

    def open_reply(self, consumer: ChannelSubscription, data: bytes) -> None:
        """Bind `consumer` to a reply name made of the random `data`. PreconditionFailed if one is bound."""
        if self._reply is not None:
            raise PreconditionFailed("reply consumer already set")
        name = new_reply_name(self._incarnation, data)
        self._reply = Binding(self._router.exchanges[""], name, None, ReplyQueue(name, consumer))
        self._router.bind(self._reply)

    async def check_reply_name(self, name: str) -> None:
        """Raise NotFound if `name` is a reply name whose requester is gone, on whatever node it was."""
        if name == REPLY_TO or self._router.route(encode_address("", name), _NOTHING):
            return
        remote_replies = self._vhost.remote_replies
        if remote_replies is None or not await remote_replies.is_known(name):
            raise NotFound(f"no queue '{name}' in vhost '{self._router.vhost_name}'")

    def close_reply(self, tag: str) -> bool:
        """Remove the reply consumer if its tag is `tag`; False if it is not."""
        reply = self._reply
        if reply is None or reply.destination.consumer.tag != tag:  # type: ignore[attr-defined]
            return False
        self.release()
        return True

    def release(self) -> None:
        """Remove the reply consumer, if any."""
        if self._reply is not None:
            self._router.unbind(self._reply)
            self._reply = None

    def _with_reply_name(self, message: Message, properties: BasicProperties) -> Message:
        if self._reply is None:
            raise PreconditionFailed("fast reply consumer does not exist")
        properties.reply_to = self._reply.key
        return message.with_property_list(properties.encode_list())


def check_expiration(expiration: str) -> None:
    """PreconditionFailed unless `expiration` is a number of milliseconds (RabbitMQ's texts)."""
    digits = expiration[1:] if expiration[:1] in ("+", "-") else expiration
    size = next((at for at, letter in enumerate(digits) if letter not in "0123456789"), len(digits))
    if not size:
        raise PreconditionFailed(f"invalid expiration '{expiration}': no_integer")
    number = int(expiration[: len(expiration) - len(digits) + size])
    if size < len(digits):
        raise PreconditionFailed(
            f"invalid expiration '{expiration}': {{leftover_string,\"{digits[size:]}\"}}"
        )
    if number > EXPIRY_MS_MAX:
        raise PreconditionFailed(f"invalid expiration '{expiration}': {{value_too_large, {number}}}")
    if number < 0:
        raise PreconditionFailed(f"invalid expiration '{expiration}': {{value_negative,{number}}}")
