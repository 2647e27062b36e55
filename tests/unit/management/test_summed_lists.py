"""Adding up what several nodes have counted."""

from warren.management.api.overview import add_overview
from warren.management.summed_lists import add_counts


def test_numbers_rates_and_samples_are_added() -> None:
    own = {
        "name": "x",
        "messages": 1,
        "messages_details": {
            "rate": 0.5,
            "samples": [{"sample": 3, "timestamp": 20}, {"sample": 2, "timestamp": 10}],
        },
        "message_stats": {"publish": 4},
    }
    more = {
        "name": "y",
        "messages": 2,
        "messages_details": {"rate": 1.5, "samples": [{"sample": 5, "timestamp": 20}]},
        "message_stats": {"publish": 1, "ack": 7},
        "other": 9,
    }
    assert add_counts(own, more, {"messages", "message_stats"}) == {
        "name": "x",
        "messages": 3,
        "messages_details": {
            "rate": 2.0,
            "samples": [{"sample": 8, "timestamp": 20}, {"sample": 2, "timestamp": 10}],
        },
        "message_stats": {"publish": 5, "ack": 7},
    }


def test_words_and_flags_stay_as_they_are_here() -> None:
    assert add_counts({"a": "x", "b": True, "c": None}, {"a": "y", "b": True, "c": 1}, "abc") == {
        "a": "x", "b": True, "c": 1,
    }  # fmt: skip


def test_the_overview_counts_what_all_nodes_know_once() -> None:
    own = {
        "object_totals": {"channels": 1, "connections": 1, "consumers": 0, "exchanges": 7, "queues": 3},
        "queue_totals": {"messages": 2}, "listeners": ["a"], "alarms": ["disk"], "node": "a",
    }  # fmt: skip
    more = {
        "object_totals": {"channels": 2, "connections": 1, "consumers": 4, "exchanges": 7, "queues": 3},
        "queue_totals": {"messages": 5}, "listeners": ["b"], "alarms": ["disk"], "node": "b",
    }  # fmt: skip
    assert add_overview(own, more) == {
        "object_totals": {"channels": 3, "connections": 2, "consumers": 4, "exchanges": 7, "queues": 3},
        "queue_totals": {"messages": 7}, "listeners": ["a", "b"], "alarms": ["disk"], "node": "a",
    }  # fmt: skip
    # Asked for some columns only, a node answers these.
    assert add_overview(own, {}) == own
