"""The headers exchange: the table measured on RabbitMQ 3.10.8, and the index against a scan."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.routing.samples import bound, made, routed, sent

from warren.errors import PreconditionFailed
from warren.routing.exchange import BY_PROPERTIES, Binding
from warren.routing.headers import HeadersExchange
from warren.wire.table import Float32, Int8, Int32, Timestamp, UInt32


@pytest.mark.parametrize(
    ("arguments", "headers", "is_match"),
    [
        ({"x-match": "all", "a": 1}, {"a": 1, "b": 2}, True),
        ({"x-match": "all", "a": 1, "b": 2}, {"a": 1}, False),
        ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
        ({"x-match": "all"}, {"a": 1}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"x-match": "all"}, {}, True),
        ({"x-match": "any"}, {}, False),
        ({}, {}, True),
        ({"x-match": "all", "a": None}, {"a": "zz"}, True),
        ({"x-match": "all", "a": Int32(1)}, {"a": 1}, True),
        ({"x-match": "all", "a": 1}, {"a": "1"}, False),
        ({"x-match": "all", "a": 1}, {"a": 1.0}, True),
        ({"x-match": "all", "x-a": 1}, {}, True),
        ({"x-match": "all-with-x", "x-a": 1}, {}, False),
        ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
        ({"x-match": "all", "a": None}, {}, False),
    ],
)
def test_a_binding_matches_as_measured(
    arguments: dict[str, object], headers: dict[str, object], is_match: bool
) -> None:
    exchange = made(HeadersExchange)
    exchange.bind(Binding(exchange, "", arguments, "q"))
    assert (routed(exchange, "", sent(headers)) == ["q"]) is is_match


EQUAL = [
    [1, Int8(1), Int32(1), UInt32(1), Float32(1.0), 1.0, Timestamp(1)],
    [0, 0.0, -0.0],
    ["1", b"1"],
    ["", b""],
    [True],
    [False],
    [Decimal("1")],
    [Decimal("1.0")],
    [[], {}],
    [[Int32(1)]],
    [[1]],
    [[1.0]],
    [{"a": Int32(1)}],
    [{"a": 1}],
    [0.1],
    [Float32(0.10000000149011612)],
    [2**53 + 1],
    [2.0**53],
    [-1, Int8(-1)],
    [None],
]


def test_values_are_equal_as_measured() -> None:
    values = [(group, value) for group, members in enumerate(EQUAL) for value in members]
    for wanted_group, wanted in values:
        exchange = made(HeadersExchange)
        bound(exchange, "", "q", a=wanted)
        for group, value in values:
            is_match = bool(routed(exchange, "", sent({"a": value})))
            # A void value in a binding only requires that the header exists.
            assert is_match is (group == wanted_group or wanted is None), (wanted, value)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("some", 'value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        ("", "value <<>>; expected all, any, all-with-x, or any-with-x"),
        ('a"b', 'value <<"a\\"b">>; expected all, any, all-with-x, or any-with-x'),
        (Int32(5), "type signedint (value 5); expected longstr"),
        (True, "type bool (value true); expected longstr"),
        (None, "type void (value undefined); expected longstr"),
        (b"all", 'type binary (value <<"all">>); expected longstr'),
        ([Int32(1)], "type array (value [{signedint,1}]); expected longstr"),
        ({"a": Int32(1)}, 'type table (value [{<<"a">>,signedint,1}]); expected longstr'),
    ],
)
def test_an_unknown_mode_is_refused_with_the_text_of_rabbitmq(mode: object, message: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        made(HeadersExchange).validate_binding("", {"x-match": mode})
    assert refusal.value.message == "Invalid x-match field " + message


def test_the_four_modes_and_none_are_accepted() -> None:
    for mode in ("all", "any", "all-with-x", "any-with-x"):
        made(HeadersExchange).validate_binding("", {"x-match": mode})
    made(HeadersExchange).validate_binding("", {})


def test_its_result_depends_on_more_than_the_key() -> None:
    assert made(HeadersExchange).decides == BY_PROPERTIES


def test_bindings_indexed_under_other_headers_are_not_examined() -> None:
    exchange = made(HeadersExchange)
    for number in range(2000):
        bound(exchange, "", number, kind="order", id=number)
    drawers = exchange._index.values()
    assert max(header_index.size(value) for header_index in drawers for value in header_index.by_value) <= 2
    assert routed(exchange, "", sent({"kind": "order", "id": 77})) == [77]


def test_the_index_is_empty_after_all_bindings_are_removed() -> None:
    exchange = made(HeadersExchange)
    asked = (
        {"a": 1, "b": 2},
        {"a": 1, "c": None},
        {"x-match": "any", "a": 1, "b": None},
        {},
        {"x-match": "any"},
    )
    bindings = [Binding(exchange, "", arguments, number) for number, arguments in enumerate(asked)]
    for binding in bindings:
        exchange.bind(binding)
    assert sorted(routed(exchange, "", sent({"a": 1, "b": 2}))) == [0, 2, 3]
    for binding in bindings:
        exchange.unbind(binding)
    assert (exchange._index, exchange._wanted) == ({}, {})
    assert routed(exchange, "", sent({"a": 1, "b": 2})) == []


def test_headers_are_found_behind_preceding_properties() -> None:
    exchange = made(HeadersExchange)
    bound(exchange, "", "q", a=1)
    for properties in (
        {"content_type": "t"},
        {"content_encoding": "e"},
        {"content_type": "t", "app_id": "a"},
    ):
        assert routed(exchange, "", sent({"a": 1}, **properties)) == ["q"]
        assert routed(exchange, "", sent(None, **properties)) == []


NAMES = st.sampled_from(["a", "b", "c", "x-a"])
VALUES = st.sampled_from([None, 1, 2, 1.0, "1", True, b"1"])
HEADERS = st.dictionaries(NAMES, VALUES, max_size=4)
ARGUMENTS = st.tuples(HEADERS, st.sampled_from([None, "all", "any", "all-with-x", "any-with-x"]))


def scanned(arguments: dict[str, object], headers: dict[str, object]) -> bool:
    """Whether a binding with `arguments` matches a message with `headers`, evaluated term by term."""
    mode = str(arguments.get("x-match", "all"))
    wanted = {
        name: value
        for name, value in arguments.items()
        if (name != "x-match" if mode.endswith("-x") else not name.startswith("x-"))
    }
    answers = [name in headers and (v is None or same(v, headers[name])) for name, v in wanted.items()]
    return any(answers) if mode.startswith("any") else all(answers)


def same(one: object, other: object) -> bool:
    """Equality of the few values that the test uses."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str | bytes) and isinstance(other, str | bytes):
        return True
    return one == other


@given(
    rules=st.lists(ARGUMENTS, max_size=10),
    gone=st.sets(st.integers(0, 9)),
    tables=st.lists(HEADERS, min_size=1, max_size=4),
)
def test_the_index_finds_what_a_scan_finds(
    rules: list[tuple[dict[str, object], str | None]],
    gone: set[int],
    tables: list[dict[str, object]],
) -> None:
    exchange = made(HeadersExchange)
    bindings = []
    for at, (arguments, mode) in enumerate(rules):
        asked = arguments | ({} if mode is None else {"x-match": mode})
        bindings.append(Binding(exchange, "", asked, at))
        exchange.bind(bindings[-1])
    for at in gone:
        if at < len(bindings):
            assert exchange.unbind(bindings[at])
    for headers in tables:
        expected = {
            binding.destination
            for binding in bindings
            if binding.destination not in gone and scanned(dict(binding.arguments), headers)
        }
        assert set(exchange.route("", sent(headers))) == expected
