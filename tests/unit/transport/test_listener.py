"""Slots of connections: listeners share a limit, and some have one of their own."""

from warren.transport.listener import ConnectionSlots


def test_a_part_with_a_limit_of_its_own_counts_for_the_limit_of_all() -> None:
    all_listeners = ConnectionSlots(3)
    streams = ConnectionSlots(2, all_listeners)
    streams.take()
    assert (streams.is_full, all_listeners.is_full) == (False, False)
    streams.take()
    assert (streams.is_full, all_listeners.is_full, all_listeners.taken) == (True, False, 2)
    all_listeners.take()
    streams.give_back()
    assert (streams.is_full, all_listeners.is_full) == (False, False)
    all_listeners.take()
    assert (streams.is_full, all_listeners.is_full) == (True, True)
