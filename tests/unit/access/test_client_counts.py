"""The numbers of clients under limits, of one node and of its cluster."""

from warren.access.client_counts import ClientCountKind, ClientCounts, CountKey

USER, CHANNELS = ClientCountKind.USER_CONNECTIONS, ClientCountKind.USER_CHANNELS


def test_a_total_is_the_sum_over_all_nodes_that_are_there() -> None:
    counts = ClientCounts()
    counts.add(USER, "guest", 2)
    counts.elsewhere[2] = {(USER, "guest"): 3, (CHANNELS, "guest"): 9}
    counts.elsewhere[3] = {(USER, "other"): 4}
    assert [counts.total(USER, name) for name in ("guest", "other", "nobody")] == [5, 4, 0]
    del counts.elsewhere[2]
    assert (counts.total(USER, "guest"), counts.total(CHANNELS, "guest")) == (2, 0)


def test_a_change_is_told_and_a_count_of_zero_is_not_kept() -> None:
    counts = ClientCounts()
    changed: list[CountKey] = []
    counts.on_changed = changed.append
    counts.add(CHANNELS, "guest", 2)
    assert list(counts.keys()) == [(CHANNELS, "guest")]
    counts.add(CHANNELS, "guest", -2)
    assert changed == [(CHANNELS, "guest")] * 2
    assert not list(counts.keys())
    assert counts.here((CHANNELS, "guest")) == 0
