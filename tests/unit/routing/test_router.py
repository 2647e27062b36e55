"""The router: graph traversal, cache and copies."""

import pytest
from tests.unit.routing.samples import PLAIN, declared, sent

from warren.errors import NotFound, PreconditionFailed
from warren.model.message import encode_address
from warren.routing import router as router_module
from warren.routing.direct import DirectExchange
from warren.routing.exchange import Binding
from warren.routing.fanout import FanoutExchange
from warren.routing.headers import HeadersExchange
from warren.routing.router import Router
from warren.wire.table import Int32

# How many addresses are cached in tests, and how many destinations of them.
ROUTES, DESTINATIONS = 8_192, 65_536


@pytest.fixture
def router() -> Router:
    return Router("v")


def test_a_direct_exchange_routes_to_every_queue_bound_with_the_key(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    for key, queue in (("a", "q1"), ("a", "q2"), ("A", "q3")):
        router.bind(Binding(direct, key, None, queue))
    assert router.route(encode_address("d", "a"), PLAIN) == ("q1", "q2")
    assert router.route(encode_address("d", "A"), PLAIN) == ("q3",)
    assert router.route(encode_address("d", "b"), PLAIN) == ()


def test_a_queue_bound_twice_is_named_once(router: Router) -> None:
    fanout = declared(router, FanoutExchange, "f")
    for key in ("a", "b"):
        router.bind(Binding(fanout, key, None, "q"))
    assert router.route(encode_address("f", "x"), PLAIN) == ("q",)


def test_binding_is_idempotent_and_bindings_differ_by_their_typed_arguments(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    assert router.bind(Binding(direct, "k", {}, "q"))
    assert not router.bind(Binding(direct, "k", None, "q"))
    assert router.bind(Binding(direct, "k", {"a": 1}, "q"))
    assert router.bind(Binding(direct, "k", {"a": 1.0}, "q"))
    assert not router.bind(Binding(direct, "k", {"a": 1}, "q"))
    assert direct.bindings == 3
    assert router.unbind(Binding(direct, "k", {"a": 1.0}, "q"))
    assert not router.unbind(Binding(direct, "k", {"a": 1.0}, "q"))
    assert direct.bindings == 2


def test_a_missing_exchange_is_not_found(router: Router) -> None:
    with pytest.raises(NotFound, match=r"^no exchange 'x' in vhost 'v'$"):
        router.route(encode_address("x", "k"), PLAIN)


def test_exchanges_bound_in_a_cycle_are_each_visited_once(router: Router) -> None:
    one, two = declared(router, FanoutExchange, "one"), declared(router, FanoutExchange, "two")
    router.bind(Binding(one, "", None, two))
    router.bind(Binding(two, "", None, one))
    router.bind(Binding(one, "", None, "q1"))
    router.bind(Binding(two, "", None, "q2"))
    router.bind(Binding(two, "", None, "q1"))
    assert router.route(encode_address("one", ""), PLAIN) == ("q1", "q2")
    assert router.route(encode_address("two", ""), PLAIN) == ("q2", "q1")


def test_the_alternate_exchange_receives_unroutable_messages(router: Router) -> None:
    declared(router, DirectExchange, "d", alternate_exchange="ae")
    spare = declared(router, FanoutExchange, "ae")
    router.bind(Binding(spare, "", None, "q"))
    assert router.route(encode_address("d", "k"), PLAIN) == ("q",)


def test_a_cycle_of_alternate_exchanges_ends(router: Router) -> None:
    declared(router, DirectExchange, "a", alternate_exchange="b")
    declared(router, DirectExchange, "b", alternate_exchange="a")
    assert router.route(encode_address("a", "k"), PLAIN) == ()


def test_a_missing_alternate_exchange_is_not_an_error(router: Router) -> None:
    declared(router, DirectExchange, "a", alternate_exchange="b")
    assert router.route(encode_address("a", "k"), PLAIN) == ()


def test_an_alternate_exchange_set_later_applies_at_once(router: Router) -> None:
    direct = declared(router, DirectExchange, "a")
    router.bind(Binding(declared(router, FanoutExchange, "b"), "", None, "q"))
    assert router.route(encode_address("a", "k"), PLAIN) == ()
    direct.alternate = "b"
    assert router.route(encode_address("a", "k"), PLAIN) == ("q",)
    direct.alternate = None
    assert router.route(encode_address("a", "k"), PLAIN) == ()


def test_every_change_advances_the_generation(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    seen = [router.generation]
    binding = Binding(direct, "k", None, "q")
    for change in (
        lambda: router.bind(binding),
        lambda: router.unbind(binding),
        lambda: router.remove("d"),
        lambda: router.add(direct),
    ):
        change()
        assert router.generation > seen[-1]
        seen.append(router.generation)


def test_a_cached_result_is_the_same_tuple_until_a_change(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    router.bind(Binding(direct, "k", None, "q"))
    first = router.route(encode_address("d", "k"), PLAIN)
    assert router.route(encode_address("d", "k"), PLAIN) is first
    router.bind(Binding(direct, "k", None, "r"))
    assert router.route(encode_address("d", "k"), PLAIN) == ("q", "r")


def test_the_cache_returns_the_result_and_the_address_bytes(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    router.bind(Binding(direct, "k", None, "q"))
    address = encode_address("d", "k")
    assert router.known(address) is None
    answer = router.route(address, PLAIN)
    known = router.known(encode_address("d", "k"))
    assert known is not None
    assert known.destinations is answer
    assert (known.address is address, known.sole) == (True, "q")
    router.bind(Binding(direct, "k", None, "r"))
    assert router.known(address) is None
    router.route(address, PLAIN)
    known = router.known(address)
    assert known is not None
    assert (known.destinations, known.sole) == (("q", "r"), None)


def test_a_route_that_depends_on_more_than_the_key_is_not_cached(router: Router) -> None:
    headers = declared(router, HeadersExchange, "h")
    router.bind(Binding(headers, "", {}, "q"))
    address = encode_address("h", "k")
    assert router.route(address, PLAIN) == ("q",)
    assert router.known(address) is None


def test_removing_an_exchange_removes_the_bindings_from_it_and_to_it(router: Router) -> None:
    one, two = declared(router, FanoutExchange, "one"), declared(router, FanoutExchange, "two")
    inwards, outwards = Binding(one, "", None, two), Binding(two, "", None, "q")
    router.bind(inwards)
    router.bind(outwards)
    assert router.remove("two") == [outwards, inwards]
    assert router.route(encode_address("one", ""), PLAIN) == ()
    assert router.bindings_of("q") == []
    assert list(one.each_binding()) == []


def test_removing_an_exchange_bound_to_itself_removes_that_binding_once(router: Router) -> None:
    loop = declared(router, FanoutExchange, "loop")
    binding = Binding(loop, "", None, loop)
    router.bind(binding)
    router.bind(Binding(loop, "", None, "q"))
    assert router.route(encode_address("loop", ""), PLAIN) == ("q",)
    assert [one for one in router.remove("loop") if one.destination is loop] == [binding]


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that a few thousand addresses fill."""
    monkeypatch.setattr(router_module, "ROUTES_CACHED_MAX", ROUTES)
    monkeypatch.setattr(router_module, "ROUTE_DESTINATIONS_CACHED_MAX", DESTINATIONS)


@pytest.mark.usefixtures("small_cache")
def test_the_cache_is_bounded_by_entries_and_by_destinations(router: Router) -> None:
    fanout = declared(router, FanoutExchange, "f")
    for number in range(3):
        router.bind(Binding(fanout, "", None, number))
    for number in range(ROUTES + 10):
        assert router.route(encode_address("f", str(number)), PLAIN) == (0, 1, 2)
    assert router.cached_count <= ROUTES
    for number in range(3, DESTINATIONS // 100):
        router.bind(Binding(fanout, "", None, number))
    for number in range(150):
        router.route(encode_address("f", str(number)), PLAIN)
    assert router.cached_count <= 102


@pytest.mark.usefixtures("small_cache")
def test_an_address_in_use_is_not_evicted_by_a_flood_of_others(router: Router) -> None:
    fanout = declared(router, FanoutExchange, "f")
    router.bind(Binding(fanout, "", None, "q"))
    first = router.route(encode_address("f", "often"), PLAIN)
    for number in range(2 * ROUTES):
        router.route(encode_address("f", str(number)), PLAIN)
        if number % 100 == 0:
            assert router.route(encode_address("f", "often"), PLAIN) is first


def test_keys_in_cc_and_bcc_are_routed(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    for key in "abc":
        router.bind(Binding(direct, key, None, "q" + key))
    copied = sent({"CC": ["b"], "BCC": ["c", 7, "a"]})
    assert router.route(encode_address("d", "a"), PLAIN) == ("qa",)
    assert router.route(encode_address("d", "a"), copied) == ("qa", "qb", "qc")
    assert router.route(encode_address("d", "a"), PLAIN) == ("qa",)


def test_a_cc_that_is_not_an_array_is_refused(router: Router) -> None:
    declared(router, DirectExchange, "d")
    with pytest.raises(PreconditionFailed) as refusal:
        router.route(encode_address("d", "a"), sent({"CC": Int32(5)}))
    assert refusal.value.message == 'invalid message: {unacceptable_type_in_header,"CC",signedint}'


def test_binary_names_and_keys_are_routed(router: Router) -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    direct = declared(router, DirectExchange, name)
    router.bind(Binding(direct, name, None, "q"))
    assert router.route(b"\x02\xff\xfe\x02\xff\xfe", PLAIN) == ("q",)


def test_a_copy_destination_of_a_queue_receives_each_message_once_and_last(router: Router) -> None:
    fanout = declared(router, FanoutExchange, "f")
    for queue in ("q1", "past", "q2"):
        router.bind(Binding(fanout, "", None, queue))
    router.copy_to("q1", "past")
    router.copy_to("q2", "history")
    assert router.route(encode_address("f", ""), PLAIN) == ("q1", "past", "q2", "history")
    direct = declared(router, DirectExchange, "d")
    router.bind(Binding(direct, "k", None, "q1"))
    assert router.route(encode_address("d", "k"), PLAIN) == ("q1", "past")
    router.copy_to("q1", None)
    router.copy_to("q1", None)
    assert router.route(encode_address("d", "k"), PLAIN) == ("q1",)


def test_setting_a_copy_destination_invalidates_the_cache(router: Router) -> None:
    direct = declared(router, DirectExchange, "d")
    router.bind(Binding(direct, "k", None, "q"))
    address = encode_address("d", "k")
    assert router.route(address, PLAIN) == ("q",)
    generation = router.generation
    router.copy_to("q", "past")
    assert router.generation > generation
    assert router.route(address, PLAIN) == ("q", "past")
