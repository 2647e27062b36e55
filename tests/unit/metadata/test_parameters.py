"""Parameters of shovels and federation: their validation with RabbitMQ's texts, and their meaning."""

from collections.abc import Callable

import pytest
from tests.oracle.parameter_cases import ABSENT, POLICIES, SETS, SHOVEL, SHOVELS, UPSTREAMS, URI, shovel
from tests.oracle.parameter_differences import (
    LATER_SHOVELS,
    LATER_UPSTREAMS,
    SHOVELS_OF_WARREN,
    UPSTREAMS_OF_WARREN,
    answered,
)

from warren.limits_relay import UPSTREAM_SET_SIZE_MAX, URIS_MAX
from warren.metadata.commands import (
    DONE,
    CommandContext,
    MetadataCommand,
    Outcome,
    Reply,
    SetParameter,
    SetPolicy,
)
from warren.metadata.federation_definition import (
    Upstream,
    parse_upstream,
    parse_upstream_set,
    upstream_errors,
    upstream_set_errors,
)
from warren.metadata.machine import Metadata
from warren.metadata.shovel_definition import (
    ShovelDefinition,
    ShovelDestination,
    ShovelSource,
    parse_shovel,
    shovel_errors,
)
from warren.metadata.uri_check import VhostAccess

Apply = Callable[[MetadataCommand], Reply]
GUEST = VhostAccess("guest", {"/"}.__contains__)
SHOVEL_CASES = [*answered(SHOVELS, SHOVELS_OF_WARREN), *LATER_SHOVELS]
UPSTREAM_CASES = [*answered(UPSTREAMS, UPSTREAMS_OF_WARREN), *LATER_UPSTREAMS]


def parsed(**changes: object) -> ShovelDefinition:
    definition = parse_shovel(shovel(with_hyphens(changes)))
    assert isinstance(definition, ShovelDefinition)
    return definition


def with_hyphens(values: dict[str, object]) -> dict[str, object]:
    return {key.replace("_", "-"): value for key, value in values.items()}


def names(cases: object) -> list[str]:
    assert isinstance(cases, list)
    return [str(value)[:40] for value, _ in cases]


@pytest.mark.parametrize(("changes", "errors"), SHOVEL_CASES, ids=names(SHOVEL_CASES))
def test_a_shovel_has_the_errors_of_rabbitmq(changes: object, errors: tuple[str, ...]) -> None:
    assert tuple("\n".join(shovel_errors("n", shovel(changes), GUEST)).splitlines()) == errors


@pytest.mark.parametrize(("value", "errors"), UPSTREAM_CASES, ids=names(UPSTREAM_CASES))
def test_an_upstream_has_the_errors_of_rabbitmq(value: object, errors: tuple[str, ...]) -> None:
    assert tuple(upstream_errors("n", value, GUEST)) == errors


@pytest.mark.parametrize(("value", "errors"), SETS, ids=names(SETS))
def test_a_set_has_the_errors_of_rabbitmq(value: object, errors: tuple[str, ...]) -> None:
    assert tuple(upstream_set_errors("n", value)) == errors


@pytest.mark.parametrize(("definition", "errors"), POLICIES, ids=names(POLICIES))
def test_a_policy_with_upstreams_has_the_errors_of_rabbitmq(
    apply: Apply, definition: object, errors: tuple[str, ...]
) -> None:
    reply = apply(SetPolicy(vhost="v", name="n", pattern="", definition=definition))
    text = "".join(f"{error}\n" for error in errors)
    assert reply == (Reply(Outcome.REFUSED, f"Validation failed\n\n{text}") if errors else DONE)


# RabbitMQ 3.10.8 answers 500 to the first three, and knows neither the protocol nor the keys of the others.
@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"src-protocol": "mqtt"},
            ['src-protocol should be one of [<<"amqp091">>,<<"local">>], actually was <<"mqtt">>'],
        ),
        ({"dest-protocol": 5}, ["dest-protocol should be binary, actually was 5"]),
        ({"src-queue-args": 5}, ["src-queue-args not a list 5"]),
        (
            {"src-protocol": "amqp10", "src-queue": ABSENT, "src-address": "a"},
            ["src-protocol: AMQP 1.0 is not supported, only amqp091 and local"],
        ),
        (
            {"dest-protocol": "amqp10", "dest-queue": ABSENT, "dest-properties": {}},
            ["dest-protocol: AMQP 1.0 is not supported, only amqp091 and local"],
        ),
        ({"src-predeclared": True, "dest-predeclared": False}, []),
        ({"src-predeclared": "x"}, ['src-predeclared should be boolean, actually was <<"x">>']),
        ({"src-protocol": "local", "dest-protocol": "local", "src-consumer-name": "c"}, []),
        ({"rate-limit": 0.5, "filter-headers": {"a": 1}, "filter-routing-key": "a.#"}, []),
        ({"rate-limit": 0}, ["rate-limit should be a number of messages per second, actually was 0"]),
        ({"exactly-once": True, "ack-mode": "on-confirm"}, []),
        ({"exactly-once": False, "ack-mode": "no-ack"}, []),
        ({"exactly-once": 1}, ["exactly-once should be boolean, actually was 1"]),
        ({"single-run": True}, []),
        ({"single-run": "yes"}, ['single-run should be boolean, actually was <<"yes">>']),
        (
            {"exactly-once": True, "ack-mode": "on-publish"},
            ["Cannot specify 'exactly-once' without the ack-mode 'on-confirm'"],
        ),
        ({"filter-headers": []}, ["filter-headers should be a table, actually was []"]),
        ({"filter-routing-key": 5}, ["filter-routing-key should be binary, actually was 5"]),
        (
            {"src-uri": [URI] * (URIS_MAX + 1)},
            [f"src-uri should be at most {URIS_MAX} addresses, actually was {URIS_MAX + 1}"],
        ),
        ({"src-uri": [[URI]]}, ['src-uri should be binary, actually was [<<"amqp://127.0.0.1:1">>]']),
    ],
)
def test_a_shovel_has_errors_that_rabbitmq_does_not_have(changes: object, errors: list[str]) -> None:
    assert shovel_errors("n", shovel(changes), GUEST) == errors


@pytest.mark.parametrize("value", [5, "a", None])
def test_a_parameter_that_is_no_table_is_refused(value: object) -> None:
    shown = '<<"a">>' if value == "a" else "null" if value is None else "5"
    for errors in (shovel_errors, upstream_errors, upstream_set_errors):
        assert errors("n", value) == [f"n not a list {shown}"]


def test_an_upstream_of_rabbitmq_4_is_accepted() -> None:
    assert upstream_errors("n", {"uri": URI, "queue-type": "quorum"}) == []
    assert upstream_errors("n", {"uri": URI, "queue-type": "stream"}) == [
        'queue-type should be one of [<<"classic">>,<<"quorum">>], actually was <<"stream">>'
    ]


def test_a_set_has_a_bound() -> None:
    members = [{"upstream": "a"}] * (UPSTREAM_SET_SIZE_MAX + 1)
    assert upstream_set_errors("n", members) == [
        f"n should be at most {UPSTREAM_SET_SIZE_MAX} upstreams, actually was {UPSTREAM_SET_SIZE_MAX + 1}"
    ]


def test_a_parameter_is_validated_when_it_is_set_and_not_when_it_is_replayed(
    apply: Apply, metadata: Metadata
) -> None:
    command = SetParameter(vhost="v", component="shovel", name="n", value={**SHOVEL, "nosuch": 1})
    assert apply(command).outcome is Outcome.REFUSED
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert vhost.parameters.by_key == {}
    replayed = CommandContext(index=metadata.index + 1, now=0, is_accepted=True)
    assert metadata.apply(command, replayed) is DONE
    assert parse_shovel(vhost.parameters.by_key["shovel", "n"]) == (
        'Unrecognised terms [{<<"nosuch">>,1}] in the shovel'
    )


def test_a_shovel_has_the_defaults_of_rabbitmq() -> None:
    assert parsed() == ShovelDefinition(
        source=ShovelSource(uris=(URI,), queue="a", prefetch_count=1000, delete_after="never"),
        destination=ShovelDestination(uris=(URI,), queue="b"),
        ack_mode="on-confirm",
        reconnect_delay_s=5,
    )


def test_a_key_with_a_prefix_counts_before_the_older_one_without() -> None:
    old = parsed(prefetch_count=1, delete_after=2, add_forward_headers=True, add_timestamp_header=True)
    assert (old.source.prefetch_count, old.source.delete_after) == (1, 2)
    assert (old.destination.adds_forward_headers, old.destination.adds_timestamp_header) == (True, True)
    both = parsed(
        prefetch_count=1,
        src_prefetch_count=3,
        delete_after=2,
        src_delete_after="queue-length",
        add_forward_headers=True,
        dest_add_forward_headers=False,
        publish_properties={"app_id": "old"},
        dest_publish_properties={"app_id": "new"},
    )
    assert (both.source.prefetch_count, both.source.delete_after) == (3, "queue-length")
    assert not both.destination.adds_forward_headers
    assert both.destination.publish_properties == {"app_id": "new"}


def test_the_other_keys_of_a_shovel_are_read() -> None:
    found = parsed(
        src_uri=["amqp://a", "amqp://b"],
        src_protocol="local",
        src_queue=ABSENT,
        src_exchange="e",
        src_exchange_key="k",
        src_consumer_args={"x-priority": 5},
        src_consumer_name="c",
        src_predeclared=True,
        dest_queue=ABSENT,
        dest_exchange="f",
        dest_predeclared=True,
        dest_queue_args=[],
        ack_mode="no-ack",
        rate_limit=2,
        filter_headers={"a": 1},
        filter_routing_key="#",
        exactly_once=False,
    )
    assert found.source == ShovelSource(
        uris=("amqp://a", "amqp://b"),
        is_local=True,
        exchange="e",
        exchange_key="k",
        is_predeclared=True,
        consumer_arguments={"x-priority": 5},
        consumer_tag="c",
    )
    assert found.destination == ShovelDestination(uris=(URI,), exchange="f", is_predeclared=True)
    assert (found.ack_mode, found.rate_limit) == ("no-ack", 2.0)
    assert (found.filter_headers, found.filter_routing_key) == ({"a": 1}, "#")
    assert (found.is_exactly_once, found.is_single_run) == (False, False)
    assert parsed(exactly_once=True).is_exactly_once
    assert parsed(single_run=True).is_single_run


@pytest.mark.parametrize(
    ("delay", "seconds"), [(0, 0), (-1, 0), (-1.5, 0), (1.5, 2), (0.001, 1), (10**9, 86_400)]
)
def test_a_delay_that_is_not_positive_means_no_other_attempt(delay: float, seconds: int) -> None:
    assert parsed(reconnect_delay=delay).reconnect_delay_s == seconds
    assert parse_upstream("n", {"uri": URI, "reconnect-delay": delay}).reconnect_delay_s == seconds


@pytest.mark.parametrize(
    ("given", "count"),
    [(0, 0), (1, 1), (65_535, 65_535), (10.5, 10), (-1, 65_535), (-5, 65_535), (70_000, 65_535)],
)
def test_a_prefetch_that_amqp_cannot_express_is_the_largest_one(given: float, count: int) -> None:
    assert parsed(src_prefetch_count=given).source.prefetch_count == count
    assert parse_upstream("n", {"uri": URI, "prefetch-count": given}).prefetch_count == count


def test_what_is_accepted_and_impossible_is_named() -> None:
    assert parse_shovel(shovel({"dest-uri": []})) == "dest-uri has no address"
    assert parse_upstream("n", {"uri": []}).error == "uri has no address"


@pytest.mark.parametrize("key", ["max-hops", "expires", "message-ttl"])
@pytest.mark.parametrize("given", [-1, 1.5, 2**70, 1e300])
def test_a_number_of_an_upstream_that_amqp_cannot_express_is_refused(key: str, given: float) -> None:
    (error,) = upstream_errors("n", {"uri": URI, key: given})
    assert error.startswith(f"{key} should be an integer from 0 to 2147483647, actually was ")


LONG = "x" * 5_000


@pytest.mark.parametrize(
    "definition",
    [
        {"src-exchange": "e", "src-queue": ABSENT, "src-exchange-key": LONG},
        {"src-exchange": LONG, "src-queue": ABSENT},
        {"src-queue": LONG},
        {"dest-exchange": "e", "dest-queue": ABSENT, "dest-exchange-key": LONG},
        {"dest-exchange": LONG, "dest-queue": ABSENT},
        {"src-delete-after": 2**70},
        {"rate-limit": 2**2_000},
        {"src-queue-args": {"x-max-length": 2**70}},
        {"src-consumer-args": {"x-priority": -(2**70)}},
        {"dest-queue-args": {"x-max-age": ["a", {"b": 2**70}]}},
        {"publish-properties": {"priority": 2**70}},
        {"publish-properties": {"delivery_mode": -1}},
        {"publish-properties": {"timestamp": 2**70}},
        {"publish-properties": {"message_id": LONG}},
    ],
)
def test_what_no_frame_can_express_is_refused_in_a_shovel(definition: dict[str, object]) -> None:
    assert len(shovel_errors("n", shovel(definition))) == 1


@pytest.mark.parametrize("key", ["exchange", "queue", "consumer-tag"])
def test_a_name_of_an_upstream_is_a_short_string(key: str) -> None:
    assert upstream_errors("n", {"uri": URI, key: LONG})


def test_the_tag_of_a_link_is_a_short_string_whatever_the_name_of_its_upstream() -> None:
    tags = [parse_upstream(name * 255, {"uri": URI}).consumer_tag for name in ("a", "é")]
    assert all(tag.startswith("federation-link-") and len(tag.encode()) <= 255 for tag in tags)


@pytest.mark.parametrize("value", [None, 5, {}, [], {"uri": 5}, {"src-uri": None}])
def test_what_an_older_log_contains_is_read_without_a_failure(value: object) -> None:
    assert isinstance(parse_shovel(value), str)
    assert parse_upstream("n", value).error
    assert parse_upstream_set(value).members == ()


def test_an_upstream_has_the_defaults_of_rabbitmq() -> None:
    assert parse_upstream("n", {"uri": URI}, federated="x") == Upstream(
        name="n",
        uris=(URI,),
        exchange="x",
        queue="x",
        consumer_tag="federation-link-n",
        prefetch_count=1000,
        reconnect_delay_s=5,
        max_hops=1,
        ack_mode="on-confirm",
    )


def test_no_address_is_in_a_repr() -> None:
    secret = "amqp://u:secret@h"
    assert "secret" not in repr(parsed(src_uri=secret, dest_uri=secret))
    assert "secret" not in repr(parse_upstream("n", {"uri": secret}))
