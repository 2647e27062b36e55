"""Validation of policies with RabbitMQ's texts, and which policy applies to a queue or exchange."""

from collections.abc import Callable

import pytest

from warren.metadata.commands import DONE, MISSING, ClearPolicy, MetadataCommand, Outcome, Reply, SetPolicy
from warren.metadata.machine import Metadata
from warren.metadata.vhosts import VhostMetadata

Apply = Callable[[MetadataCommand], Reply]
VALIDATION = "Validation failed\n\n{}\n"
# The keys of operator policies (RabbitMQ 4.3.6).
OPERATOR_KEYS = (
    "expires",
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
    "target-group-size",
    "queue-version",
    "overflow",
    "delayed-retry-type",
    "delayed-retry-min",
    "delayed-retry-max",
)


def policy(name: str = "p", **fields: object) -> SetPolicy:
    settings: dict[str, object] = {"pattern": ".*", "definition": {"max-length": 5}, **fields}
    return SetPolicy(vhost="v", name=name, **settings)  # type: ignore[arg-type]


def vhost_of(metadata: Metadata) -> VhostMetadata:
    vhost = metadata.vhost("v")
    assert vhost is not None
    return vhost


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"pattern": "("}, 'pattern should be regular expression but is invalid: {"missing )",1}'),
        ({"pattern": None}, "pattern should be a binary but was null"),
        ({"definition": {"nonsense": 1}}, '[{<<"nonsense">>,1}] are not recognised policy settings'),
        ({"definition": {"max-length": -1}}, "-1 is not a valid maximum length"),
        ({"definition": {"max-length": "5"}}, '<<"5">> is not a valid maximum length'),
        ({"definition": {"message-ttl": 1.5}}, "1.5 is not a valid message TTL"),
        ({"definition": {"expires": 0}}, "0 is not a valid queue expiry"),
        ({"definition": {"overflow": "banana"}}, '<<"banana">> is not a valid overflow value'),
        ({"definition": {"alternate-exchange": 5}}, "5 is not a valid alternate exchange name"),
        ({"definition": {"dead-letter-exchange": True}}, "true is not a valid dead letter exchange name"),
        ({"definition": {"delivery-limit": -2}}, "-2 is not a valid delivery limit"),
        ({"definition": {"dead-letter-strategy": "x"}}, '<<"x">> is not a valid dead letter strategy'),
        ({"definition": {"queue-leader-locator": "x"}}, '<<"x">> is not a valid queue leader locator value'),
        (
            {"definition": {"delayed-retry-type": "x"}},
            '<<"x">> is not a valid delayed retry type. Must be one of: all, failed, returned, disabled',
        ),
        (
            {"definition": {"delayed-retry-min": 0}, "is_operator": True},
            "0 is not a valid delayed retry minimum delay. Must be a positive integer",
        ),
        (
            {"definition": {"delayed-retry-type": "all"}},
            "delayed-retry-min is required when delayed-retry-type is all",
        ),
        (
            {"definition": {"delayed-retry-min": 5, "delayed-retry-max": 3}, "is_operator": True},
            "delayed-retry-max (3) must not be smaller than delayed-retry-min (5)",
        ),
        (
            {"definition": {"stream-filter-size-bytes": 15}},
            "15 is not a valid filter size. Valid range is 16-255",
        ),
        ({"definition": {"overflow": "x"}, "is_operator": True}, '<<"x">> is not a valid overflow value'),
        (
            {"definition": {"queue-version": 3}, "is_operator": True},
            "3 is not a valid queue-version value",
        ),
        (
            {"definition": {"queue-leader-locator": "balanced"}, "is_operator": True},
            '[{<<"queue-leader-locator">>,<<"balanced">>}] are not recognised policy settings',
        ),
        ({"definition": {}}, "no policy provided"),
        ({"apply-to": "b"}, "apply-to 'b' unrecognised; should be 'queues', 'exchanges' or 'all'"),
        ({"priority": "a"}, 'priority should be a number, actually was <<"a">>'),
        (
            {"definition": {"dead-letter-exchange": "a"}, "is_operator": True},
            '[{<<"dead-letter-exchange">>,<<"a">>}] are not recognised policy settings',
        ),
    ],
)
def test_an_invalid_policy_is_refused_with_the_text_of_rabbitmq(
    apply: Apply, fields: dict[str, object], text: str
) -> None:
    reply = apply(policy(**{key.replace("-", "_"): value for key, value in fields.items()}))
    assert (reply.outcome, reply.text) == (Outcome.REFUSED, VALIDATION.format(text))


def test_the_matching_policy_of_highest_priority_applies(apply: Apply, metadata: Metadata) -> None:
    apply(policy("low", pattern="^a", priority=1))
    apply(policy("high", pattern="^ab", priority=2))
    apply(policy("other", pattern="^c", priority=9))

    def name(queue: str) -> str | None:
        found, _ = vhost_of(metadata).policies_of(queue, "classic")
        return found and found.name

    assert (name("abc"), name("ac"), name("b")) == ("high", "low", None)
    assert apply(ClearPolicy(vhost="v", name="high")) is DONE
    assert name("abc") == "low"
    assert apply(ClearPolicy(vhost="v", name="high")) is MISSING


def test_a_pattern_matches_anywhere_in_the_name(apply: Apply, metadata: Metadata) -> None:
    apply(policy(pattern="b+"))
    assert vhost_of(metadata).policies_of("abbc", "classic")[0] is not None


@pytest.mark.parametrize(
    ("apply_to", "kinds"),
    [
        ("all", {"exchange", "classic", "quorum", "stream"}),
        ("queues", {"classic", "quorum", "stream"}),
        ("exchanges", {"exchange"}),
        ("classic_queues", {"classic"}),
        ("streams", {"stream"}),
        (None, {"exchange", "classic", "quorum", "stream"}),
    ],
)
def test_a_policy_applies_only_to_the_kinds_in_apply_to(
    apply: Apply, metadata: Metadata, apply_to: str | None, kinds: set[str]
) -> None:
    apply(policy(apply_to=apply_to, definition={"max-length-bytes": 5}))
    found = {
        kind
        for kind in ("exchange", "classic", "quorum", "stream")
        if vhost_of(metadata).policies_of("x", kind)[0] is not None
    }
    assert found == kinds


def test_a_policy_that_a_queue_type_does_not_support_is_skipped_entirely(
    apply: Apply, metadata: Metadata
) -> None:
    apply(policy("stream", definition={"max-age": "7D", "max-length-bytes": 5}, priority=5))
    apply(policy("classic", definition={"max-length": 5}))
    assert vhost_of(metadata).policies_of("q", "classic")[0] is vhost_of(metadata).policies.by_name["classic"]
    assert vhost_of(metadata).policies_of("q", "stream")[0] is vhost_of(metadata).policies.by_name["stream"]


def test_an_operator_policy_applies_beside_a_policy(apply: Apply, metadata: Metadata) -> None:
    apply(policy("p"))
    apply(policy("o", definition={"expires": 1000}, is_operator=True))
    mine, theirs = vhost_of(metadata).policies_of("q", "classic")
    assert mine is not None
    assert theirs is not None
    assert (mine.name, theirs.name) == ("p", "o")
    assert apply(ClearPolicy(vhost="v", name="o", is_operator=True)) is DONE
    assert vhost_of(metadata).policies_of("q", "classic")[1] is None


def test_a_pattern_that_takes_too_long_matches_nothing(apply: Apply, metadata: Metadata) -> None:
    apply(policy(pattern="^(a|aa)+$"))
    assert vhost_of(metadata).policies_of("a" * 200 + "b", "classic")[0] is None


# Asked of RabbitMQ 4.3.6: each key alone in a policy, and the types of queues to which it applies.
# `delivery-limit` on classic queues and `retain` are Warren's own.
@pytest.mark.parametrize("is_operator", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "kinds"),
    [
        ("expires", 1, "classic quorum"),
        ("message-ttl", 1, "classic quorum"),
        ("max-length", 1, "classic quorum"),
        ("max-length-bytes", 1, "classic quorum stream"),
        ("max-in-memory-length", 1, "quorum"),
        ("max-in-memory-bytes", 1, "quorum"),
        ("overflow", "reject-publish-dlx", "classic quorum"),
        ("queue-mode", "lazy", "classic"),
        ("queue-version", 2, "classic quorum stream"),
        ("queue-leader-locator", "balanced", "classic quorum stream"),
        ("queue-master-locator", "min-masters", "classic"),
        ("dead-letter-exchange", "x", "classic quorum"),
        ("dead-letter-routing-key", "x", "classic quorum"),
        ("dead-letter-strategy", "at-least-once", "quorum"),
        ("alternate-exchange", "x", "classic quorum stream"),
        ("delivery-limit", 1, "classic quorum"),
        ("consumer-timeout", 1_000, "classic quorum stream"),
        ("ha-mode", "all", "classic"),
        ("max-age", "1D", "stream"),
        ("initial-cluster-size", 3, "stream"),
        ("stream-max-segment-size-bytes", 1_000, "stream"),
        ("stream-filter-size-bytes", 16, "classic quorum stream"),
        ("target-group-size", 3, "quorum"),
        ("consumer-disconnected-timeout", 0, "classic quorum stream"),
        ("delayed-retry-min", 1, "classic quorum stream"),
        ("federation-upstream-set", "all", "classic quorum stream"),
        ("retain", "1D", "classic quorum"),
    ],
)
def test_a_policy_applies_to_a_queue_unless_it_has_a_key_that_its_type_lacks(
    apply: Apply, metadata: Metadata, key: str, value: object, kinds: str, is_operator: bool
) -> None:
    if is_operator and key not in OPERATOR_KEYS:
        return
    wanted = policy("wanted", definition={key: value}, apply_to="queues", priority=2, is_operator=is_operator)
    assert apply(wanted) is DONE
    apply(policy("next", definition={"max-length-bytes": 9}, apply_to="queues", is_operator=is_operator))
    for kind in ("classic", "quorum", "stream"):
        found = vhost_of(metadata).policies_of("q", kind)[is_operator]
        assert found is not None
        assert found.name == ("wanted" if kind in kinds.split() else "next")


def test_an_operator_policy_can_set_the_delivery_limit_and_the_size_of_a_group(
    apply: Apply, metadata: Metadata
) -> None:
    definition = {"delivery-limit": -1, "target-group-size": 3, "max-in-memory-length": 1}
    assert apply(policy(definition=definition, apply_to="queues", is_operator=True)) is DONE
    _, found = vhost_of(metadata).policies_of("q", "quorum")
    assert found is not None
    assert found.definition == definition
    for kind in ("classic", "stream"):
        assert vhost_of(metadata).policies_of("q", kind) == (None, None)
