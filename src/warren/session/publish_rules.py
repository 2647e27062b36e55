"""What a user may publish, and what a few properties ask for: the cold half of publishing."""

from base64 import b64encode

from warren.access.authorize import Authorizer
from warren.errors import AccessRefused, NotFound, PreconditionFailed
from warren.limits import EXPIRY_MS_MAX
from warren.model.message import BODY_END, NO_PROPERTIES, Message, encode_address
from warren.queues.reply import ReplyQueue
from warren.routing.exchange import Binding
from warren.routing.router import Router
from warren.session.subscriber import ChannelSubscription
from warren.wire.properties import BasicProperties

# The name that asks for a direct reply (RabbitMQ), and the start of the names that are given for it.
REPLY_TO = "amq.rabbitmq.reply-to"
REPLY_TOKEN_PREFIX = REPLY_TO + "."
# What is routed to find out whether a name is known.
_NOTHING = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)
# Octets of chance in such a name, so that it cannot be guessed. It has two parts, as RabbitMQ's, which are a
# process and a key: clients have been seen to look at the form.
_PLACE_OCTETS = 12
_TOKEN_OCTETS = _PLACE_OCTETS + 16


class PublishRules:
    """The rules of one channel: permissions, user-id, expiration, direct reply-to."""

    __slots__ = ("_authorizer", "_reply", "_router", "_user", "may_impersonate")

    def __init__(self, router: Router, authorizer: Authorizer, user: str, *, may_impersonate: bool) -> None:
        self._router = router
        self._authorizer = authorizer
        self._user = user
        # RabbitMQ's tag `impersonator`: any user-id may be given.
        self.may_impersonate = may_impersonate
        self._reply: Binding | None = None

    def admit(self, address: bytes) -> bool:
        """Raise unless the user may publish to `address`, whose exchange takes publishes.

        True if that holds for every routing key of the exchange.
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
        """`message`, whose user-id and expiration are valid; with its reply-to made known to the replier."""
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

    def open_reply(self, consumer: ChannelSubscription, octets: bytes) -> None:
        """Let replies reach `consumer` under a name made of `octets`."""
        if self._reply is not None:
            raise PreconditionFailed("reply consumer already set")
        assert len(octets) == _TOKEN_OCTETS
        place, token = b64encode(octets[:_PLACE_OCTETS]), b64encode(octets[_PLACE_OCTETS:])
        name = f"{REPLY_TOKEN_PREFIX}{place.decode('ascii')}.{token.decode('ascii')}"
        self._reply = Binding(self._router.exchanges[""], name, None, ReplyQueue(name, consumer))
        self._router.bind(self._reply)

    def check_reply_name(self, name: str) -> None:
        """NotFound for the name of a reply whose requester is gone; the name that asks for one is fine."""
        if name != REPLY_TO and not self._router.route(encode_address("", name), _NOTHING):
            raise NotFound(f"no queue '{name}' in vhost '{self._router.vhost_name}'")

    def close_reply(self, tag: str) -> bool:
        """End the reply consumer if its tag is `tag`; False if it is not."""
        reply = self._reply
        if reply is None or reply.destination.consumer.tag != tag:  # type: ignore[attr-defined]
            return False
        self.release()
        return True

    def release(self) -> None:
        """The channel ends."""
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


def reply_octets_count() -> int:
    """How many octets of chance `open_reply` takes."""
    return _TOKEN_OCTETS
