"""The exchange `x-recent-history`: what it keeps, as RabbitMQ 3.10.8's plugin has it (measured)."""

import pytest
from tests.unit.routing.samples import bound, declared, made

from warren.errors import PreconditionFailed
from warren.limits_metadata import RECENT_HISTORY_LENGTH_MAX, RECENT_HISTORY_SIZE_MAX
from warren.model.message import BODY_END, Message, encode_address
from warren.routing.direct import DirectExchange
from warren.routing.fanout import FanoutExchange
from warren.routing.recent_history import LENGTH_DEFAULT, RecentHistoryExchange
from warren.routing.router import Router
from warren.wire.properties import BasicProperties


def message(body: bytes, exchange: str = "x", headers: dict[str, object] | None = None) -> Message:
    properties = BasicProperties(headers=headers)
    return Message.compose(encode_address(exchange, "k"), properties, body + BODY_END, now=0)


def published(router: Router, *messages: Message) -> None:
    for each in messages:
        router.route(each.address, each)


def kept(exchange: RecentHistoryExchange) -> list[bytes]:
    return [each.body for each in exchange.recent()]


def history(router: Router, **arguments: object) -> RecentHistoryExchange:
    exchange = declared(router, RecentHistoryExchange, "x", **arguments)
    assert isinstance(exchange, RecentHistoryExchange)
    return exchange


def test_the_last_messages_are_kept_oldest_first() -> None:
    router = Router("v")
    exchange = history(router, x_recent_history_length=2)
    published(router, message(b"a"), message(b"b"), message(b"c"))
    assert kept(exchange) == [b"b", b"c"]


def test_twenty_messages_are_kept_without_the_argument_and_no_more_than_the_bound_with_it() -> None:
    for length, arguments in (
        (LENGTH_DEFAULT, {}),
        (RECENT_HISTORY_LENGTH_MAX, {"x_recent_history_length": RECENT_HISTORY_LENGTH_MAX + 1}),
    ):
        router = Router("v")
        exchange = history(router, **arguments)
        published(router, *(message(b"") for _ in range(length + 5)))
        assert len(exchange.recent()) == length


def test_the_bodies_together_are_bounded() -> None:
    router = Router("v")
    exchange = history(router)
    half = RECENT_HISTORY_SIZE_MAX // 2
    published(router, message(b"a" * half), message(b"b" * half), message(b"c" * half))
    assert [each[:1] for each in kept(exchange)] == [b"b", b"c"]
    published(router, message(b"d" * (RECENT_HISTORY_SIZE_MAX + 1)), message(b"e"))
    assert kept(exchange) == [b"e"]


def test_a_message_with_the_header_is_routed_and_not_kept() -> None:
    router = Router("v")
    exchange = history(router)
    bound(exchange, "", queue := object())
    for value, count in ((True, 0), ("true", 1), (1, 2)):
        one = message(b"", headers={"x-recent-history-no-store": value})
        assert router.route(one.address, one) == (queue,)
        assert len(exchange.recent()) == count


def test_what_arrives_from_another_exchange_is_kept_and_what_is_not_published_is_not() -> None:
    router = Router("v")
    exchange = history(router)
    source = declared(router, FanoutExchange, "y")
    bound(source, "", exchange)
    one = message(b"a", exchange="y")
    assert router.rehearse(one.address, one) == ()
    assert kept(exchange) == []
    published(router, one, one)
    assert kept(exchange) == [b"a"]


def test_a_message_goes_from_another_exchange_on_as_if_it_had_been_published_there() -> None:
    router = Router("v")
    target = declared(router, DirectExchange, "y")
    bound(target, "k", queue := object())
    bound(target, "other", object())
    assert router.route_from(target, message(b"a")) == (queue,)


@pytest.mark.parametrize(
    ("length", "shown"), [(0, "0"), (-1, "-1"), ("5", '<<"5">>'), (True, "true"), (2.5, "2.5")]
)
def test_a_length_that_is_no_positive_integer_is_refused(length: object, shown: str) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        RecentHistoryExchange.validate_arguments({"x-recent-history-length": length})
    text = f"Invalid argument {shown}, 'x-recent-history-length' must be a positive integer"
    assert caught.value.message == text
    assert made(RecentHistoryExchange).recent() == ()
