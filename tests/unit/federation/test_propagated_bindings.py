"""Bindings on their way to the upstream."""

from msgspec.structs import replace

from warren.federation.propagated_bindings import LinkPlace, PropagatedBindings, upstream_arguments
from warren.metadata.records import BindingRecord, arguments_bytes
from warren.wire.table import Int16, Table, encode_table

PLACE = LinkPlace(
    cluster_name="here",
    vhost="v",
    exchange="x",
    suffix="A",
    upstream_cluster_name="there",
    upstream_vhost="w",
    max_hops=2,
)


def entry(hops: object, cluster: str = "elsewhere", vhost: str = "v") -> Table:
    return {"cluster-name": cluster, "vhost": vhost, "exchange": "v:x B", "hops": hops}


def hops_after(max_hops: int, *passed: object) -> object:
    """The hops that a binding gets after it has `passed` these entries; None if it goes no further."""
    arguments = upstream_arguments({"x-bound-from": list(passed)}, replace(PLACE, max_hops=max_hops))
    return None if arguments is None else arguments["x-bound-from"][0]["hops"]


def binding(key: str, queue: str = "q", arguments: Table | None = None) -> BindingRecord:
    return BindingRecord("x", True, queue, key, arguments_bytes(arguments or {}))


def test_a_binding_of_this_broker_gets_the_first_entry() -> None:
    arguments = upstream_arguments({"x-match": "all", "n": 1}, PLACE)
    assert arguments == {
        "x-match": "all",
        "n": 1,
        "x-bound-from": [{"cluster-name": "here", "vhost": "v", "exchange": "v:x A", "hops": 2}],
    }
    # As on the wire: `hops` is a 16-bit integer.
    assert arguments is not None
    assert b"\x04hopss\x00\x02" in encode_table(arguments)


def test_hops_are_counted_down_from_the_smallest_of_the_links_passed() -> None:
    assert hops_after(2, entry(Int16(9))) == 2
    assert hops_after(9, entry(Int16(3))) == 2
    assert hops_after(2, entry(2), entry(1)) == 1
    assert hops_after(9, entry(1)) is None
    assert hops_after(0) is None
    assert hops_after(100_000, entry(70_000)) == 32_767


def test_a_binding_that_has_passed_the_upstream_is_not_made_there() -> None:
    assert hops_after(9, entry(5), entry(6, cluster="there", vhost="w")) is None
    assert hops_after(9, entry(5), entry(6, cluster="there", vhost="other")) == 4


def test_a_binding_with_invalid_entries_goes_no_further() -> None:
    for entries in ([], ["text"], [{}], [entry("5")], [entry(True)], [entry(-1)]):
        assert hops_after(9, *entries) is None, entries


def test_equal_bindings_of_several_destinations_are_one_at_the_upstream() -> None:
    bindings = PropagatedBindings(PLACE)
    first = bindings.add(binding("k"))
    assert first is not None
    assert (first.is_added, first.routing_key) == (True, "k")
    assert bindings.add(binding("k", "other")) is None
    assert bindings.add(binding("k", "other")) is None
    assert bindings.add(binding("k", arguments={"n": 1})) is not None
    assert bindings.remove(binding("k")) is None
    assert bindings.remove(binding("k")) is None
    last = bindings.remove(binding("k", "other"))
    assert last is not None
    assert (last.is_added, last.routing_key, last.arguments) == (False, "k", first.arguments)


def test_a_binding_that_is_not_known_is_not_removed() -> None:
    assert PropagatedBindings(PLACE).remove(binding("k")) is None


def test_a_binding_that_goes_no_further_is_neither_made_nor_removed() -> None:
    bindings = PropagatedBindings(PLACE)
    last = binding("k", arguments={"x-bound-from": [entry(1)]})
    assert bindings.add(last) is None
    assert bindings.remove(last) is None
