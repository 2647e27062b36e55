"""Inequivalent redeclarations, with the texts of RabbitMQ 3.10.8."""

import pytest

from warren.errors import PreconditionFailed
from warren.model.arguments import KIND_ARGUMENTS
from warren.model.equivalence import check_same, check_same_arguments
from warren.model.names import ExchangeName, QueueName
from warren.wire.table import Int8, Int32, Timestamp, UInt8, Value

QUEUE = QueueName("features", "q2")
CLASSIC = KIND_ARGUMENTS["classic"]


def inequivalent(current: dict[str, Value], received: dict[str, Value]) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        check_same_arguments(QUEUE, CLASSIC, current=current, received=received)
    return caught.value.message.removeprefix("inequivalent arg ")


def test_a_different_property_is_named() -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_same(QUEUE, "durable", current=False, received=True)
    assert caught.value.message == (
        "inequivalent arg 'durable' for queue 'q2' in vhost 'features': "
        "received 'true' but current is 'false'"
    )
    with pytest.raises(PreconditionFailed) as caught:
        check_same(ExchangeName("features", "x2"), "type", current="direct", received="fanout")
    assert caught.value.message == (
        "inequivalent arg 'type' for exchange 'x2' in vhost 'features': "
        "received 'fanout' but current is 'direct'"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Int32(5), "'5' of type 'signedint'"),
        (Int32(-5), "'-5' of type 'signedint'"),
        (7, "'7' of type 'long'"),
        ("abc", "'abc' of type 'longstr'"),
        (True, "'true' of type 'bool'"),
        (1.5, "'1.5' of type 'double'"),
        (None, "'undefined' of type 'void'"),
        (
            {"a": Int32(1), "b": [Int32(1), "x"]},
            '\'[{<<"a">>,signedint,1},{<<"b">>,array,[{signedint,1},{longstr,<<"x">>}]}]\' of type \'table\'',
        ),
    ],
)
def test_an_added_argument_is_described(value: Value, written: str) -> None:
    text = inequivalent({}, {"x-max-length": value})
    assert text == f"'x-max-length' for {QUEUE}: received the value {written} but current is none"


def test_a_missing_argument_is_described() -> None:
    text = inequivalent({"x-expires": Int32(500000), "x-max-length": Int32(5)}, {})
    assert text == (
        f"'x-expires' for {QUEUE}: received none but current is the value '500000' of type 'signedint'"
    )


def test_two_values_are_quoted_without_their_types() -> None:
    assert inequivalent({"x-max-length": Int32(5)}, {"x-max-length": Int32(6)}).endswith(
        "received '6' but current is '5'"
    )
    assert inequivalent({"x-max-length": Int32(5)}, {"x-max-length": "5"}).endswith(
        "received '5' but current is '5'"
    )
    assert inequivalent({"x-max-length": Int32(5)}, {"x-max-length": 5.0}).endswith(
        "received '5.0' but current is '5'"
    )
    assert inequivalent({"x-max-length": Int32(1)}, {"x-max-length": True}).endswith(
        "received 'true' but current is '1'"
    )


def test_the_types_of_integers_and_strings_do_not_matter() -> None:
    for same in (5, Int8(5), UInt8(5), Timestamp(5)):
        check_same_arguments(
            QUEUE, CLASSIC, current={"x-max-length": Int32(5)}, received={"x-max-length": same}
        )
    check_same_arguments(QUEUE, CLASSIC, current={"x-overflow": "a"}, received={"x-overflow": b"a"})


def test_unknown_arguments_and_an_explicit_default_type_do_not_matter() -> None:
    check_same_arguments(QUEUE, CLASSIC, current={}, received={"x-foo": 1, "x-queue-type": "classic"})
    check_same_arguments(QUEUE, CLASSIC, current={"x-queue-type": "classic"}, received={"x-bar": {}})
    assert inequivalent({}, {"x-queue-type": "banana"}) == (
        f"'x-queue-type' for {QUEUE}: received the value 'banana' of type 'longstr' but current is none"
    )
    assert "table" in inequivalent({}, {"x-queue-type": {"classic": 1}})
