"""Publishing without a channel: the checks of a channel, and an answer when the message is safe."""

import pytest
from msgspec.structs import replace
from tests.unit.session.client import Broker

from warren.errors import AccessRefused, AmqpError, NotFound, PreconditionFailed
from warren.metadata.commands import DeclareExchange, DeclareQueue, SetPermissions, SetTopicPermissions
from warren.model.confirm_listener import ConfirmListener
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.queues.queue import ACCEPTED
from warren.session.channel_origin import ChannelOrigin
from warren.session.direct_publish import NotConfirmed, compose_message, publish
from warren.session.events.event_publisher import EventPublisher
from warren.session.peer import Peer
from warren.session.vhost_services import VhostServices
from warren.wire.properties import BasicProperties

NOBODY = EventPublisher(lambda: None, lambda _: None, node_name="n")
ORIGIN = ChannelOrigin(Peer(host="h", port=1, server_host="s", server_port=2), 1, "guest", NOBODY)


class Publishing:
    """One publish, and its result once it has one."""

    def __init__(self, broker: Broker, exchange: str, key: str, **properties: object) -> None:
        self.is_routed: bool | None = None
        self.error: Exception | None = None
        self._broker = broker
        self._properties = BasicProperties(**properties)  # type: ignore[arg-type]
        self._message = compose_message(encode_address(exchange, key), self._properties, b"body", 7)
        drive(self._publish())

    async def _publish(self) -> None:
        services = self._broker.services
        user = services.metadata.users.by_name[ORIGIN.user]
        rules = services.rules(user, services.authorizer(user))
        try:
            self.is_routed = await publish(
                services, rules, self._message, properties=self._properties, origin=ORIGIN
            )
        except (AmqpError, NotConfirmed) as error:
            self.error = error


def test_a_message_is_routed_or_reported_as_unroutable() -> None:
    broker = Broker()
    broker.proposals.apply(DeclareQueue(vhost="/", name="q"))
    assert Publishing(broker, "", "q", content_type="text/plain").is_routed is True
    assert Publishing(broker, "", "nowhere").is_routed is False
    delivery = broker.services.vhost.queues["q"].get()
    assert delivery is not None
    message = delivery.message
    assert (message.body, message.published_at, message.properties().content_type) == (
        b"body",
        7,
        "text/plain",
    )


def test_the_checks_of_a_channel_apply() -> None:
    broker = Broker()
    broker.proposals.apply(DeclareExchange(vhost="/", name="inner", type="fanout", internal=True))
    for exchange, properties, kind in (
        ("nosuch", {}, NotFound),
        ("inner", {}, AccessRefused),
        ("", {"user_id": "other"}, PreconditionFailed),
        ("", {"expiration": "x"}, PreconditionFailed),
        ("", {"delivery_mode": 3}, PreconditionFailed),
        ("", {"reply_to": "amq.rabbitmq.reply-to"}, PreconditionFailed),
    ):
        assert isinstance(Publishing(broker, exchange, "q", **properties).error, kind), (exchange, properties)
    broker.proposals.apply(SetPermissions(user="guest", vhost="/", configure="", write="^w", read=""))
    assert isinstance(Publishing(broker, "", "q").error, AccessRefused)


def test_a_refusal_by_a_full_queue_is_reported() -> None:
    broker = Broker()
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    broker.proposals.apply(DeclareQueue(vhost="/", name="full", arguments=arguments))
    assert isinstance(Publishing(broker, "", "full").error, NotConfirmed)


class SlowHost:
    """A virtual host with two queues that must write the message before they confirm it."""

    def __init__(self, services: VhostServices) -> None:
        self.name = services.vhost.name
        self.router = services.vhost.router
        self.is_traced = False
        self.confirmation: ConfirmListener | None = None

    def publish_routed(
        self, destinations: object, message: Message, confirmation: ConfirmListener, sequence: int
    ) -> int:
        self.confirmation = confirmation
        confirmation.expect(sequence)
        confirmation.expect(sequence)
        return ACCEPTED


@pytest.mark.parametrize("is_refused", [False, True])
def test_the_publish_completes_when_every_queue_has_confirmed(is_refused: bool) -> None:
    broker = Broker()
    slow = SlowHost(broker.services)
    broker.services = replace(broker.services, vhost=slow)
    publishing = Publishing(broker, "", "q")
    assert slow.confirmation is not None
    slow.confirmation.done(1, 1)
    assert (publishing.is_routed, publishing.error) == (None, None)
    if is_refused:
        slow.confirmation.refused(1)
        assert isinstance(publishing.error, NotConfirmed)
    else:
        slow.confirmation.done(1, 1)
        assert publishing.is_routed is True


def test_each_key_of_cc_and_bcc_requires_the_topic_permission() -> None:
    broker = Broker()
    broker.proposals.apply(
        SetTopicPermissions(user="guest", vhost="/", exchange="amq.topic", write="^k", read="")
    )
    for headers, kind in (({"CC": ["k2"]}, type(None)), ({"CC": ["x"]}, AccessRefused)):
        assert isinstance(Publishing(broker, "amq.topic", "k", headers=headers).error, kind)
