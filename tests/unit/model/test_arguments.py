"""Arguments of queues and exchanges, with the texts of RabbitMQ 3.10.8."""

from collections.abc import Mapping

import pytest

from warren.errors import PreconditionFailed
from warren.limits import EXPIRY_MS_MAX
from warren.model.arguments import (
    DEFAULT_SETTINGS,
    Overflow,
    QueueSettings,
    alternate_exchange,
    check_queue_arguments,
    check_queue_properties,
    dead_letter_exchange,
    effective_definition,
    exchange_alternate,
    queue_settings,
)
from warren.model.names import ExchangeName, QueueName
from warren.wire.table import Float32, Int8, Int16, Int32, Timestamp, UInt8, UInt16, UInt32, Value

QUEUE = QueueName("features", "qa")
FOR = "for queue 'qa' in vhost 'features'"
STRATEGIES = ("at-least-once", "at-most-once")

REFUSED: list[tuple[dict[str, Value], str]] = [
    ({"x-message-ttl": Int32(-1)}, "invalid arg 'x-message-ttl' {}: {{value_negative,-1}}"),
    ({"x-message-ttl": "1"}, "invalid arg 'x-message-ttl' {}: \"expected integer, got longstr\""),
    ({"x-message-ttl": True}, "invalid arg 'x-message-ttl' {}: \"expected integer, got bool\""),
    ({"x-message-ttl": None}, "invalid arg 'x-message-ttl' {}: \"expected integer, got void\""),
    ({"x-message-ttl": 1.5}, "invalid arg 'x-message-ttl' {}: \"expected integer, got double\""),
    ({"x-message-ttl": Float32(2)}, "invalid arg 'x-message-ttl' {}: \"expected integer, got float\""),
    ({"x-message-ttl": Timestamp(5)}, "invalid arg 'x-message-ttl' {}: \"expected integer, got timestamp\""),
    ({"x-message-ttl": b"ab"}, "invalid arg 'x-message-ttl' {}: \"expected integer, got binary\""),
    ({"x-message-ttl": [Int32(1)]}, "invalid arg 'x-message-ttl' {}: \"expected integer, got array\""),
    ({"x-message-ttl": {"a": 1}}, "invalid arg 'x-message-ttl' {}: \"expected integer, got table\""),
    ({"x-message-ttl": 315360000001}, "invalid arg 'x-message-ttl' {}: {{value_too_large,315360000001}}"),
    ({"x-expires": Int32(0)}, "invalid arg 'x-expires' {}: {{value_zero,0}}"),
    ({"x-expires": Int8(-3)}, "invalid arg 'x-expires' {}: {{value_negative,-3}}"),
    ({"x-max-priority": Int32(256)}, "invalid arg 'x-max-priority' {}: {{max_value_exceeded,256}}"),
    ({"x-max-priority": Int32(-1)}, "invalid arg 'x-max-priority' {}: {{value_negative,-1}}"),
    ({"x-max-length": Int32(-1)}, "invalid arg 'x-max-length' {}: {{value_negative,-1}}"),
    ({"x-max-length-bytes": "a"}, "invalid arg 'x-max-length-bytes' {}: \"expected integer, got longstr\""),
    ({"x-overflow": "banana"}, "invalid arg 'x-overflow' {}: invalid_overflow"),
    ({"x-overflow": Int32(1)}, "invalid arg 'x-overflow' {}: {{unacceptable_type,signedint}}"),
    ({"x-queue-type": "banana"}, "invalid arg 'x-queue-type' {}: \"unsupported queue type 'banana'\""),
    ({"x-queue-type": Int32(0)}, "invalid arg 'x-queue-type' {}: {{unacceptable_type,signedint}}"),
    ({"x-queue-mode": "sleepy"}, "invalid arg 'x-queue-mode' {}: \"unsupported queue mode 'sleepy'\""),
    ({"x-queue-mode": True}, "invalid arg 'x-queue-mode' {}: {{unacceptable_type,bool}}"),
    ({"x-queue-version": UInt16(3)}, "invalid arg 'x-queue-version' {}: \"unsupported queue version '3'\""),
    ({"x-queue-version": "2"}, "invalid arg 'x-queue-version' {}: \"expected integer, got longstr\""),
    (
        {"x-single-active-consumer": "true"},
        "invalid arg 'x-single-active-consumer' {}: {{unacceptable_type,longstr}}",
    ),
    (
        {"x-dead-letter-routing-key": "a"},
        "invalid arg 'x-dead-letter-routing-key' {}: routing_key_but_no_dlx_defined",
    ),
    (
        {"x-dead-letter-routing-key": Int32(5), "x-dead-letter-exchange": "a"},
        "invalid arg 'x-dead-letter-routing-key' {}: {{unacceptable_type,signedint}}",
    ),
    ({"x-max-age": "5D"}, "invalid arg 'x-max-age' {} of queue type rabbit_classic_queue"),
    (
        {"x-queue-type": "quorum", "x-max-priority": 5},
        "invalid arg 'x-max-priority' {} of queue type rabbit_quorum_queue",
    ),
    (
        {"x-queue-type": "stream", "x-message-ttl": 5},
        "invalid arg 'x-message-ttl' {} of queue type rabbit_stream_queue",
    ),
    (
        {"x-queue-type": "stream", "x-max-age": Int32(5)},
        "invalid arg 'x-max-age' {}: {{unacceptable_type,signedint}}",
    ),
    (
        {"x-queue-type": "quorum", "x-queue-leader-locator": "banana"},
        "invalid arg 'x-queue-leader-locator' {}: invalid_queue_locator_arg",
    ),
    (
        {"x-queue-type": "quorum", "x-queue-mode": "default"},
        "invalid arg 'x-queue-mode' {} of queue type rabbit_quorum_queue",
    ),
    (
        {"x-queue-type": "quorum", "x-quorum-initial-group-size": Int32(0)},
        "invalid arg 'x-quorum-initial-group-size' {}: {{value_zero,0}}",
    ),
    (
        {"x-queue-type": "quorum", "x-max-in-memory-length": Int32(-1)},
        "invalid arg 'x-max-in-memory-length' {}: {{value_negative,-1}}",
    ),
    (
        {"x-queue-type": "quorum", "x-dead-letter-strategy": "always"},
        "invalid arg 'x-dead-letter-strategy' {}: invalid_dlx_strategy",
    ),
    (
        {"x-queue-type": "quorum", "x-delayed-retry-type": "always"},
        "invalid arg 'x-delayed-retry-type' {}: invalid_delayed_retry_type",
    ),
    (
        {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-max": 5},
        "invalid arg 'x-delayed-retry-type' {}: delayed_retry_type_but_no_min_defined",
    ),
    (
        {"x-queue-type": "quorum", "x-delayed-retry-min": Int32(0)},
        "invalid arg 'x-delayed-retry-min' {}: {{value_zero,0}}",
    ),
    (
        {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 3_000_000_001},
        "Exceeded max value for x-stream-max-segment-size-bytes",
    ),
    (
        {"x-queue-type": "stream", "x-stream-initial-offset": -1},
        "invalid arg 'x-stream-initial-offset' {}: {{value_negative,-1}}",
    ),
    (
        {"x-queue-type": "stream", "x-stream-initial-offset": 10**18 + 1},
        "invalid arg 'x-stream-initial-offset' {}: {{value_too_large,1000000000000000001}}",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_an_invalid_argument_is_refused_with_the_text_of_rabbitmq(
    arguments: dict[str, Value], text: str
) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_queue_arguments(QUEUE, arguments)
    assert caught.value.message == text.format(FOR)


ACCEPTED: list[dict[str, Value]] = [
    {"x-message-ttl": 0},
    {"x-message-ttl": 315360000000},
    {"x-expires": UInt8(200)},
    {"x-max-length": UInt32(3), "x-max-length-bytes": 1 << 40},
    {"x-max-priority": 0},
    {"x-max-priority": Int16(255)},
    {"x-overflow": "reject-publish-dlx"},
    {"x-queue-mode": "lazy", "x-queue-version": 2, "x-queue-master-locator": 5},
    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": ""},
    {"x-unknown": {"a": [1, None]}, "x-single-active-consumer": False},
    {"x-delivery-limit": -1, "x-consumer-timeout": 60000, "x-queue-leader-locator": "balanced"},
    {"x-queue-type": "stream", "x-max-age": "7D", "x-consumer-timeout": 5},
    {
        "x-queue-type": "quorum",
        "x-delivery-limit": -1,
        "x-quorum-initial-group-size": 9,
        "x-max-in-memory-length": 0,
        "x-max-in-memory-bytes": 5,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-strategy": "at-least-once",
        "x-queue-leader-locator": "client-local",
        "x-cancel-on-ha-failover": True,
    },
    {
        "x-queue-type": "quorum",
        "x-quorum-target-group-size": 3,
        "x-consumer-disconnected-timeout": 0,
        "x-delayed-retry-type": "all",
        "x-delayed-retry-min": 5,
        "x-delayed-retry-max": 50,
    },
    {"x-queue-type": "quorum", "x-delayed-retry-type": "disabled", "x-delayed-retry-max": 1},
    # RabbitMQ 4 does not check it.
    {"x-queue-type": "quorum", "x-quorum-target-group-size": 0},
    {"x-queue-type": "quorum", "x-quorum-target-group-size": "three"},
    {"x-delayed-retry-type": "never", "x-quorum-target-group-size": 0},
    {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 3_000_000_000},
    {"x-queue-type": "stream", "x-stream-initial-offset": 10**18},
]


@pytest.mark.parametrize("arguments", ACCEPTED)
def test_valid_and_unknown_arguments_are_accepted(arguments: dict[str, Value]) -> None:
    check_queue_arguments(QUEUE, arguments)


def test_of_several_invalid_arguments_the_one_that_rabbitmq_checks_first_is_named() -> None:
    with pytest.raises(PreconditionFailed, match="x-message-ttl"):
        check_queue_arguments(QUEUE, {"x-max-length": -1, "x-message-ttl": -1})
    with pytest.raises(PreconditionFailed, match="x-queue-type"):
        check_queue_arguments(QUEUE, {"x-max-length": -1, "x-queue-type": "banana"})


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ((False, True, True), "auto-delete"),
        ((True, True, False), "exclusive-owner"),
        ((False,) * 3, "non-durable"),
    ],
)
def test_a_quorum_queue_or_stream_refuses_properties_that_it_cannot_have(
    properties: tuple[bool, bool, bool], name: str
) -> None:
    durable, exclusive, auto_delete = properties
    with pytest.raises(PreconditionFailed) as caught:
        check_queue_properties(QUEUE, "quorum", durable=durable, exclusive=exclusive, auto_delete=auto_delete)
    assert caught.value.message == f"invalid property '{name}' {FOR}"


def test_a_durable_quorum_queue_is_accepted_and_a_classic_queue_with_every_property() -> None:
    check_queue_properties(QUEUE, "quorum", durable=True, exclusive=False, auto_delete=False)
    check_queue_properties(QUEUE, "classic", durable=False, exclusive=True, auto_delete=True)


def test_an_exchange_named_in_an_argument_must_be_a_string() -> None:
    with pytest.raises(PreconditionFailed) as caught:
        dead_letter_exchange(QUEUE, {"x-dead-letter-exchange": Int32(5)})
    assert caught.value.message == f"invalid type 'signedint' for arg 'x-dead-letter-exchange' {FOR}".replace(
        "for queue", "in queue"
    )
    with pytest.raises(PreconditionFailed) as caught:
        alternate_exchange(ExchangeName("features", "x21"), {"alternate-exchange": Int32(5)})
    assert caught.value.message == (
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x21' in vhost 'features'"
    )
    assert dead_letter_exchange(QUEUE, {"x-dead-letter-exchange": "d"}) == ExchangeName("features", "d")
    assert alternate_exchange(ExchangeName("v", "x"), {}) is None


def test_arguments_become_queue_settings() -> None:
    arguments = {
        "x-message-ttl": Int32(60000),
        "x-expires": 5,
        "x-max-length": UInt8(9),
        "x-max-length-bytes": 10,
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "dlx",
        "x-dead-letter-routing-key": "key",
        "x-max-priority": Int8(5),
        "x-single-active-consumer": True,
        "x-delivery-limit": 3,
        "x-consumer-timeout": 1000,
    }
    assert queue_settings(arguments) == QueueSettings(
        message_ttl_ms=60000,
        expires_ms=5,
        length_max=9,
        length_bytes_max=10,
        overflow=Overflow.REJECT_PUBLISH,
        dead_letter_exchange="dlx",
        dead_letter_routing_key="key",
        priority_max=5,
        single_active_consumer=True,
        delivery_limit=3,
        consumer_timeout_ms=1000,
    )
    assert queue_settings({}) is DEFAULT_SETTINGS


def test_a_negative_delivery_limit_means_none_and_max_priority_zero_means_no_priorities() -> None:
    settings = queue_settings({"x-delivery-limit": -1, "x-max-priority": 0})
    assert (settings.delivery_limit, settings.priority_max) == (None, None)


@pytest.mark.parametrize(
    ("argument", "policy", "operator_policy", "expected"),
    [
        (None, None, None, 20),
        (5, None, None, 5),
        (0, None, None, 0),
        (50, None, None, 50),
        (-1, None, None, None),
        (None, 7, None, 7),
        (None, -1, None, None),
        (-1, 7, None, 7),
        (7, -1, None, 7),
        (9, 7, None, 7),
        (None, 9, 7, 7),
        (None, -1, 7, 7),
        (None, 7, -1, 7),
        (-1, -1, -1, None),
    ],
)
def test_a_quorum_queue_has_a_delivery_limit_of_20_unless_another_or_none_is_set(
    argument: int | None, policy: int | None, operator_policy: int | None, expected: int | None
) -> None:
    arguments: dict[str, Value] = {"x-queue-type": "quorum"}
    if argument is not None:
        arguments["x-delivery-limit"] = argument
    policies = [None if one is None else {"delivery-limit": one} for one in (policy, operator_policy)]
    assert queue_settings(arguments, *policies).delivery_limit == expected


def test_a_classic_queue_has_no_delivery_limit_by_default() -> None:
    assert queue_settings({"x-max-length": 1}).delivery_limit is None
    assert queue_settings({"x-queue-type": "classic"}).delivery_limit is None


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"x-queue-type": "classic"}, False),
        ({"x-overflow": "drop-head"}, False),
        ({"x-overflow": "reject-publish-dlx"}, False),
        ({"x-dead-letter-exchange": None}, False),
        ({"x-dead-letter-strategy": "at-most-once"}, False),
        ({"x-dead-letter-strategy": None}, False),
    ],
)
def test_dead_letters_are_kept_until_confirmed_only_if_all_conditions_hold(
    changed: dict[str, Value], expected: bool
) -> None:
    arguments: dict[str, Value] = {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "",
        "x-dead-letter-strategy": "at-least-once",
    }
    arguments = {key: value for key, value in {**arguments, **changed}.items() if value is not None}
    assert queue_settings(arguments).keeps_dead_letters is expected


@pytest.mark.parametrize(
    ("arguments", "policy", "operator_policy", "expected"),
    [
        ({"x-max-length": 5}, {"max-length": 3}, None, 3),
        ({"x-max-length": 5}, {"max-length": 9}, None, 5),
        ({"x-max-length": 5}, {"max-length": 9}, {"max-length": 2}, 2),
        ({}, {"max-length": 9}, {"max-length": 20}, 9),
        ({}, None, {"max-length": 20}, 20),
        ({}, {"message-ttl": 1}, {"max-length": 4}, 4),
    ],
)
def test_of_argument_and_policy_the_smaller_limit_applies(
    arguments: Mapping[str, Value],
    policy: Mapping[str, object] | None,
    operator_policy: Mapping[str, object] | None,
    expected: int,
) -> None:
    assert queue_settings(arguments, policy, operator_policy).length_max == expected


# Asked of RabbitMQ 4.3.6: the setting of a queue, with a policy, an argument, and which of them applies.
@pytest.mark.parametrize("is_policy_first", [True, False])
@pytest.mark.parametrize(
    ("kind", "key", "values", "applies", "attribute"),
    [
        ("classic", "expires", (1, 2), "smaller", "expires_ms"),
        ("quorum", "expires", (1, 2), "smaller", "expires_ms"),
        ("classic", "message-ttl", (1, 2), "smaller", "message_ttl_ms"),
        ("quorum", "message-ttl", (1, 2), "smaller", "message_ttl_ms"),
        ("classic", "max-length", (1, 2), "smaller", "length_max"),
        ("quorum", "max-length", (1, 2), "smaller", "length_max"),
        ("classic", "max-length-bytes", (1, 2), "smaller", "length_bytes_max"),
        ("quorum", "max-length-bytes", (1, 2), "smaller", "length_bytes_max"),
        ("stream", "max-length-bytes", (1, 2), "policy", "length_bytes_max"),
        ("stream", "stream-max-segment-size-bytes", (1, 2), "policy", "segment_size_max"),
        ("stream", "max-age", ("1s", "2s"), "policy", "age_ms_max"),
        ("classic", "overflow", ("drop-head", "reject-publish"), "argument", "overflow"),
        ("quorum", "overflow", ("drop-head", "reject-publish"), "policy", "overflow"),
        ("classic", "dead-letter-exchange", ("a", "b"), "argument", "dead_letter_exchange"),
        ("quorum", "dead-letter-exchange", ("a", "b"), "argument", "dead_letter_exchange"),
        ("classic", "dead-letter-routing-key", ("a", "b"), "argument", "dead_letter_routing_key"),
        ("quorum", "dead-letter-routing-key", ("a", "b"), "argument", "dead_letter_routing_key"),
        ("quorum", "dead-letter-strategy", STRATEGIES, "argument", "dead_letter_strategy"),
        ("classic", "consumer-timeout", (1, 2), "smaller", "consumer_timeout_ms"),
        ("quorum", "consumer-timeout", (1, 2), "smaller", "consumer_timeout_ms"),
        ("quorum", "consumer-disconnected-timeout", (1, 2), "smaller", "consumer_disconnected_ms"),
        ("quorum", "delivery-limit", (1, 2), "smaller", "delivery_limit"),
        ("quorum", "delayed-retry-type", ("all", "failed"), "policy", "delayed_retry"),
        ("quorum", "delayed-retry-min", (1, 2), "smaller", "delayed_retry_ms_min"),
        ("quorum", "delayed-retry-max", (1, 2), "smaller", "delayed_retry_ms_max"),
    ],
)
def test_of_argument_and_policy_the_one_applies_that_rabbitmq_takes_for_the_key_and_the_type(
    kind: str, key: str, values: tuple[Value, Value], applies: str, attribute: str, is_policy_first: bool
) -> None:
    policy, argument = values if is_policy_first else values[::-1]

    def setting(argument: Value | None, policy: Value | None) -> object:
        arguments: dict[str, Value] = {"x-queue-type": kind}
        if argument is not None:
            arguments[f"x-{key}"] = argument
        return getattr(queue_settings(arguments, None if policy is None else {key: policy}), attribute)

    expected = {"policy": policy, "argument": argument, "smaller": values[0]}[applies]
    assert setting(argument, policy) == setting(expected, None) == setting(None, expected)
    assert setting(argument, None) != setting(None, policy)


def test_only_a_quorum_queue_has_a_time_for_absent_nodes() -> None:
    policy = {"consumer-disconnected-timeout": 0}
    assert queue_settings({"x-queue-type": "quorum"}, policy).consumer_disconnected_ms == 0
    for kind in ("classic", "stream"):
        assert queue_settings({"x-queue-type": kind}, policy).consumer_disconnected_ms is None


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("overflow", ("reject-publish", "drop-head"), "drop-head"),
        ("queue-version", (2, 1), 1),
        ("target-group-size", (3, 5), 5),
        ("target-group-size", (5, 3), 5),
        ("delayed-retry-type", ("all", "disabled"), "disabled"),
        ("delayed-retry-min", (5, 3), 5),
        ("delayed-retry-min", (3, 5), 5),
        ("delayed-retry-max", (5, 3), 3),
        ("delayed-retry-max", (3, 5), 3),
        ("max-length", (3, 5), 3),
    ],
)
def test_of_policy_and_operator_policy_the_value_applies_that_rabbitmq_merges(
    key: str, values: tuple[object, object], expected: object
) -> None:
    policy, operator_policy = values
    assert effective_definition({key: policy}, {key: operator_policy}) == {key: expected}


def test_the_alternate_exchange_of_the_argument_wins() -> None:
    assert exchange_alternate({"alternate-exchange": "a"}, {"alternate-exchange": "b"}) == "a"
    assert exchange_alternate({}, {"alternate-exchange": "b"}) == "b"
    assert exchange_alternate({}) is None


def test_a_delayed_retry_is_set_by_arguments_or_a_policy() -> None:
    policy = {"delayed-retry-type": "all", "delayed-retry-min": 5, "delayed-retry-max": 9}
    settings = queue_settings({"x-queue-type": "quorum"}, policy)
    assert [settings.retry_delay_ms(failures, has_failed=True) for failures in (0, 1, 2)] == [5, 5, 9]
    arguments: dict[str, Value] = {
        "x-queue-type": "quorum",
        "x-delayed-retry-type": "returned",
        "x-delayed-retry-min": 7,
    }
    settings = queue_settings(arguments, {"delayed-retry-max": 9})
    assert settings.retry_delay_ms(1, has_failed=True) == 0
    assert settings.retry_delay_ms(2, has_failed=False) == 9
    assert queue_settings({"x-queue-type": "quorum"}).retry_delay_ms(1, has_failed=True) == 0
    settings = queue_settings(arguments | {"x-delayed-retry-min": 2**62})
    assert settings.retry_delay_ms(2, has_failed=False) == EXPIRY_MS_MAX


def test_a_delayed_retry_without_a_maximum_does_not_grow() -> None:
    settings = queue_settings(
        {"x-queue-type": "quorum"}, {"delayed-retry-type": "all", "delayed-retry-min": 5}
    )
    assert [settings.retry_delay_ms(failures, has_failed=True) for failures in (0, 1, 3)] == [5, 5, 5]


def test_a_quorum_queue_has_all_priority_levels_without_an_argument() -> None:
    assert queue_settings({"x-queue-type": "quorum"}).priority_max == 31
    assert queue_settings({"x-max-priority": 5}).priority_max == 5
    assert queue_settings({}).priority_max is None
