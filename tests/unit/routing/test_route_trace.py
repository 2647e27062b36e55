"""Route traces, compared with what the router does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.routing.samples import PLAIN, bound, declared, sent

from warren.limits import EXPLAINED_PER_TURN, TRACED_BINDINGS_MAX
from warren.model.message import Message, encode_address
from warren.routing.copies import carbon_copies
from warren.routing.exchange import Binding, Exchange
from warren.routing.route_trace import RouteTrace
from warren.routing.router import Router
from warren.routing.types import EXCHANGE_TYPES

WORDS = st.sampled_from(["a", "b", "*", "#", ""])
KEYS = st.lists(WORDS, max_size=4).map(".".join)
VALUES = st.one_of(st.integers(0, 2), st.sampled_from(["1", "x", True, None]))
HEADERS = st.dictionaries(st.sampled_from(["p", "q", "x-r"]), VALUES, max_size=3)
MODES = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])
NAMES = ("", "one", "two", "three", "four")
QUEUES = ("q0", "q1", "q2")


def traced(
    router: Router, name: str, key: str, message: Message = PLAIN, *, misses_max: int = 100
) -> RouteTrace:
    trace = RouteTrace(
        router.exchanges, [key, *carbon_copies(message.headers())], message, misses_max=misses_max
    )
    for _ in trace.steps(router.exchanges[name]):
        pass
    return trace


@st.composite
def topologies(draw: st.DrawFn) -> Router:
    """Exchanges of all types, bound to each other and to queues, with alternate exchanges, some of them
    missing.
    """
    router = Router("/")
    declared(router, EXCHANGE_TYPES["direct"], "")
    arguments: dict[str, Any]
    for name in NAMES[1:]:
        kind = EXCHANGE_TYPES[draw(st.sampled_from(sorted(EXCHANGE_TYPES)))]
        arguments = {}
        if kind.type_name == "x-consistent-hash":
            arguments = draw(st.sampled_from([{}, {"hash_header": "p"}, {"hash_property": "message_id"}]))
        exchange = declared(router, kind, name, **arguments)
        exchange.alternate = draw(st.sampled_from([None, *NAMES, "nowhere"]))
    for _ in range(draw(st.integers(0, 12))):
        source = router.exchanges[draw(st.sampled_from(NAMES))]
        name = draw(st.sampled_from([*NAMES[1:], *QUEUES]))
        key = draw(st.sampled_from(["1", "3"]) if source.type_name == "x-consistent-hash" else KEYS)
        arguments = {}
        if source.type_name == "headers":
            arguments = {**draw(HEADERS), "x-match": draw(MODES)}
        router.bind(Binding(source, key, arguments, router.exchanges.get(name, name)))
    return router


@given(topologies(), st.sampled_from(NAMES), KEYS, HEADERS, st.lists(KEYS, max_size=2))
@settings(max_examples=300, deadline=None)
def test_a_trace_finds_the_queues_that_the_router_finds(
    router: Router, name: str, key: str, headers: dict[str, object], copies: list[str]
) -> None:
    message = sent({**headers, "CC": copies} if copies else headers, message_id="m1")
    found = set(router.route(encode_address(name, key), message))
    trace = traced(router, name, key, message)
    certain = {queue for queue, reached in trace.queues.items() if reached.is_certain}
    assert certain <= found <= set(trace.queues)
    if not any(visit.exchange.type_name.endswith("random") for visit in trace.visits.values()):
        assert found == set(trace.queues)
        assert certain == found


@given(topologies(), st.sampled_from(NAMES), KEYS, HEADERS)
@settings(max_examples=100, deadline=None)
def test_every_binding_on_the_route_is_judged_once(
    router: Router, name: str, key: str, headers: dict[str, object]
) -> None:
    trace = traced(router, name, key, sent(headers))
    for visit in trace.visits.values():
        assert visit.matched + visit.missed == visit.exchange.bindings
    assert trace.missed == len(trace.misses) == sum(visit.missed for visit in trace.visits.values())
    nearness = [judged.verdict.nearness for judged in trace.misses]
    assert nearness == sorted(nearness, reverse=True)
    assert all(
        0 <= one < 1 and judged.verdict.reason for one, judged in zip(nearness, trace.misses, strict=True)
    )


@given(topologies(), st.sampled_from(NAMES[1:]), KEYS)
@settings(max_examples=50, deadline=None)
def test_tracing_changes_nothing(router: Router, name: str, key: str) -> None:
    before = (
        router.generation,
        router.cached_count,
        [(one.published_in, one.published_out) for one in each(router)],
    )
    traced(router, name, key)
    assert before == (
        router.generation, router.cached_count,
        [(one.published_in, one.published_out) for one in each(router)],
    )  # fmt: skip


def each(router: Router) -> list[Exchange]:
    return list(router.exchanges.values())


@pytest.mark.parametrize(
    ("pattern", "key", "reason"),
    [
        ("order.*.eu", "order.new.us", "the pattern 'order.*.eu' wants 'eu' as word 3, which is 'us'"),
        ("order.*.eu", "order.new", "the pattern 'order.*.eu' wants 'eu' as word 3, which is missing"),
        ("order.*", "order.new.us", "the pattern 'order.*' wants its end as word 3, which is 'us'"),
        ("#.eu", "order.us", "the pattern '#.eu' wants 'eu' as word 3, which is missing"),
        ("", "order", "the pattern '' wants its end as word 1, which is 'order'"),
        ("a.#.#.b", "c", "the pattern 'a.#.#.b' wants 'a' as word 1, which is 'c'"),
    ],
)
def test_a_topic_binding_reports_the_word_at_which_a_key_differs(pattern: str, key: str, reason: str) -> None:
    router = Router("/")
    bound(declared(router, EXCHANGE_TYPES["topic"], "t"), pattern, "q")
    (judged,) = traced(router, "t", key).misses
    assert judged.verdict.reason == reason


@pytest.mark.parametrize(
    ("asked", "stated", "reason"),
    [
        ({"a": 1}, {}, "x-match is all: header 'a' is missing"),
        ({"a": 1}, {"a": 2}, "x-match is all: header 'a' is 2, not 1"),
        ({"a": 1}, {"a": "1"}, "x-match is all: header 'a' is '1', not 1 (longstr, not long)"),
        (
            {"a": 1, "b": None, "x-match": "any"},
            {},
            "x-match is any: header 'a' is missing; header 'b' is missing",
        ),
        ({"x-match": "any"}, {"a": 1}, "x-match is any, but the binding has no headers: nothing matches"),
        (
            {"x-a": 1, "x-match": "all-with-x"},
            {"a": 1},
            "x-match is all-with-x: header 'x-a' is missing",
        ),
    ],
)
def test_a_headers_binding_reports_the_missing_header(
    asked: dict[str, object], stated: dict[str, object], reason: str
) -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["headers"], "h")
    router.bind(Binding(source, "", asked, "q"))
    (judged,) = traced(router, "h", "", sent(stated)).misses
    assert judged.verdict.reason == reason


def test_a_headers_binding_with_many_missing_headers_reports_some() -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["headers"], "h")
    router.bind(Binding(source, "", {f"a{number}": 1 for number in range(9)}, "q"))
    (judged,) = traced(router, "h", "").misses
    assert judged.verdict.reason.endswith("header 'a4' is missing; and 4 more")


def test_a_direct_key_that_differs_only_in_case_is_the_nearest() -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["direct"], "d")
    for key in ("order.newer", "Order.New", "invoice"):
        bound(source, key, "q")
    nearest, near, far = (judged.verdict for judged in traced(router, "d", "order.new").misses)
    assert nearest.reason.endswith("they differ in case or in spaces only")
    assert near.reason == "bound with 'order.newer', the routing key is 'order.new'"
    assert far.nearness < near.nearness


def test_a_hash_exchange_reports_the_owner_of_the_slot_and_the_binding_that_counts() -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["x-consistent-hash"], "c")
    bound(source, "1", "q0")
    bound(source, "2", "q0")
    (queue,) = traced(router, "c", "k").queues.values()
    assert "which it owns with its weight of 1" in queue.through[0].verdict.reason
    (judged,) = traced(router, "c", "k").misses
    assert judged.verdict.reason == "an older binding of the same destination, with weight 1, is used instead"


@pytest.mark.parametrize(
    ("arguments", "message", "reported"),
    [
        ({"hash_header": "p"}, sent({"p": 7}), "the hash of the header 'p', 7, falls"),
        (
            {"hash_property": "message_id"},
            sent(message_id="m"),
            "the hash of the property message_id, 'm', falls",
        ),
        ({}, PLAIN, "the hash of the routing key 'k' falls"),
    ],
)
def test_a_hash_exchange_reports_what_it_hashes(
    arguments: dict[str, Any], message: Message, reported: str
) -> None:
    router = Router("/")
    bound(declared(router, EXCHANGE_TYPES["x-consistent-hash"], "c", **arguments), "1", "q0")
    (queue,) = traced(router, "c", "k", message).queues.values()
    assert queue.through[0].verdict.reason.startswith(reported)


@pytest.mark.parametrize("kind", ["x-random", "x-local-random"])
def test_a_random_choice_makes_a_queue_uncertain_unless_another_route_reaches_it(kind: str) -> None:
    router = Router("/")
    start, random = (
        declared(router, EXCHANGE_TYPES["fanout"], "f"),
        declared(router, EXCHANGE_TYPES[kind], "r"),
    )
    bound(start, "", random)
    bound(start, "", "q0")
    for queue in ("q0", "q1", "q2", "q3"):
        bound(random, "", queue)
    queues = traced(router, "f", "").queues
    assert [queue for queue, reached in queues.items() if reached.is_certain] == ["q0"]
    assert queues["q1"].through[0].verdict.chance == 0.25


def test_an_alternate_exchange_is_visited_only_if_nothing_matches() -> None:
    router = Router("/")
    source, alternate = (declared(router, EXCHANGE_TYPES[kind], kind) for kind in ("direct", "fanout"))
    source.alternate = "fanout"
    bound(source, "k", "q0")
    bound(alternate, "", "q1")
    assert list(traced(router, "direct", "k").queues) == ["q0"]
    trace = traced(router, "direct", "other")
    assert list(trace.queues) == ["q1"]
    assert trace.visits[alternate].alternate_of is source
    assert (trace.visits[source].alternate, trace.visits[source].is_alternate_missing) == ("fanout", False)
    source.alternate = "nowhere"
    visit = traced(router, "direct", "other").visits[source]
    assert (visit.alternate, visit.is_alternate_missing) == ("nowhere", True)


def test_only_the_nearest_misses_are_listed_and_all_are_counted() -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["topic"], "t")
    for number in range(EXPLAINED_PER_TURN * 3):
        bound(source, f"far.{number}", "q")
    bound(source, "near.*.*", "q")
    trace = RouteTrace(router.exchanges, ["near.1"], PLAIN, misses_max=1)
    assert len(list(trace.steps(source))) == 4
    assert [judged.binding.key for judged in trace.misses] == ["near.*.*"]
    assert trace.missed == EXPLAINED_PER_TURN * 3 + 1


def test_a_binding_removed_between_two_turns_is_skipped() -> None:
    router = Router("/")
    source = declared(router, EXCHANGE_TYPES["x-modulus-hash"], "m")
    bindings = [bound(source, str(number), "q") for number in range(EXPLAINED_PER_TURN + 1)]
    trace = RouteTrace(router.exchanges, ["k"], PLAIN, misses_max=1)
    for number, _ in enumerate(trace.steps(source)):
        if not number:
            for binding in bindings:
                router.unbind(binding)
    assert trace.queues["q"].count == EXPLAINED_PER_TURN
    assert len(trace.queues["q"].through) == TRACED_BINDINGS_MAX
