"""The death headers of a dead letter, as measured with RabbitMQ 3.10.8 and 4.3.6."""

from tests.unit.queues.samples import sent, trusted

from warren.limits import DEATHS_MAX
from warren.model.message import FROM_STREAM, Message
from warren.queues.deaths import Death, make_dead_letter
from warren.wire.properties import BasicProperties


def died(message: Message, queue: str, reason: str = "rejected", *, key: str | None = None) -> Message:
    death = Death(queue=queue, reason=reason, exchange="dlx", routing_key=key, now=7_000)
    risen = make_dead_letter(message, death)
    assert risen is not None
    return risen.message


def cycle_queues(message: Message, queue: str, reason: str) -> set[str]:
    """The queues that would form a dead-letter cycle after one more death."""
    risen = make_dead_letter(message, Death(queue=queue, reason=reason, exchange="", routing_key=None, now=0))
    assert risen is not None
    return set(risen.cycle_queues)


def entries(message: Message) -> list[tuple[object, object, object]]:
    return [(one["queue"], one["reason"], one["count"]) for one in message.headers()["x-death"]]


def test_the_first_death_has_all_fields() -> None:
    risen = died(sent("x", key="k"), "q")
    assert risen.headers() == {
        "x-death": [
            {
                "count": 1, "reason": "rejected", "queue": "q", "time": 7, "exchange": "",
                "routing-keys": ["k"],
            }
        ],
        "x-first-death-reason": "rejected", "x-first-death-queue": "q", "x-first-death-exchange": "",
        "x-last-death-reason": "rejected", "x-last-death-queue": "q", "x-last-death-exchange": "",
    }  # fmt: skip
    assert (risen.exchange, risen.routing_key, risen.body, risen.published_at) == ("dlx", "k", b"x", 7_000)


def test_the_newest_death_is_first_in_the_list_and_the_first_is_in_its_own_headers() -> None:
    risen = died(died(sent(), "a"), "b", "expired")
    assert entries(risen) == [("b", "expired", 1), ("a", "rejected", 1)]
    assert risen.headers()["x-first-death-queue"] == "a"
    assert risen.headers()["x-last-death-queue"] == "b"


def test_a_repeated_death_increments_its_count_and_moves_to_the_front() -> None:
    risen = sent()
    for queue, reason in (("a", "rejected"), ("b", "expired"), ("a", "expired"), ("a", "rejected")):
        risen = died(risen, queue, reason)
    assert entries(risen) == [("a", "rejected", 2), ("a", "expired", 1), ("b", "expired", 1)]


def test_deaths_without_counts_get_one_once_there_are_several() -> None:
    reported: list[object] = [{"queue": queue, "reason": "expired"} for queue in ("p", "q", "p")]
    assert entries(died(trusted(sent(headers={"x-death": reported})), "a")) == [
        ("a", "rejected", 1), ("p", "expired", 2), ("q", "expired", 1),
    ]  # fmt: skip


def test_a_dead_letter_loses_its_expiration() -> None:
    risen = died(sent(expiration="10", priority=3, delivery_mode=2), "q", "expired")
    assert risen.headers()["x-death"][0]["original-expiration"] == "10"
    assert risen.properties().expiration is None
    assert (risen.priority, risen.is_persistent) == (3, True)


def test_cc_keys_are_recorded_and_cc_and_bcc_are_removed_with_a_dead_letter_routing_key() -> None:
    message = sent(key="k", headers={"CC": ["c", 1], "BCC": ["b"], "n": 5})
    assert died(message, "q").headers()["x-death"][0]["routing-keys"] == ["k", "c"]
    assert died(message, "q").headers()["CC"] == ["c", 1]
    moved = died(message, "q", key="other")
    assert moved.routing_key == "other"
    assert "CC" not in moved.headers()
    assert moved.headers()["n"] == 5


def test_a_cycle_is_a_death_in_the_queue_without_a_rejection_since() -> None:
    risen = died(sent(), "a", "expired")
    assert cycle_queues(risen, "b", "maxlen") == {"a", "b"}
    assert cycle_queues(risen, "b", "rejected") == set()
    assert cycle_queues(died(risen, "b", "rejected"), "c", "maxlen") == {"c"}
    made_up: list[object] = [{"queue": 5}, {"queue": "x"}, {"queue": "a", "reason": "rejected"}]
    assert cycle_queues(trusted(sent(headers={"x-death": made_up})), "b", "expired") == {"b", "x"}
    assert cycle_queues(trusted(sent(headers={"x-death": made_up[::-1]})), "b", "expired") == {"b"}


def test_a_message_that_is_rejected_through_two_delay_queues_comes_back_each_time() -> None:
    message = sent()
    for _ in range(5):
        for queue, reason, target in (
            ("jobs", "rejected", "first"),
            ("first", "expired", "second"),
            ("second", "expired", "jobs"),
        ):
            assert target not in cycle_queues(message, queue, reason)
            message = died(message, queue, reason)
    assert [count for _, _, count in entries(message)] == [5, 5, 5]


def test_a_message_with_too_many_death_entries_is_discarded() -> None:
    reported: list[object] = [{"queue": f"{number}", "reason": "expired"} for number in range(DEATHS_MAX - 1)]
    last = died(trusted(sent(headers={"x-death": reported})), "a")
    assert len(last.headers()["x-death"]) == DEATHS_MAX
    death = Death(queue="b", reason="expired", exchange="", routing_key=None, now=0)
    assert make_dead_letter(last, death) is None
    assert died(last, "a") is not None


def test_malformed_deaths_of_an_older_store_are_ignored() -> None:
    for made_up in ("text", [1, "x"], [{}], [{"queue": 5, "reason": None, "count": "many"}]):
        risen = died(trusted(sent(headers={"x-death": made_up})), "q")
        assert risen.headers()["x-death"][0]["count"] == 1
    again = died(
        trusted(sent(headers={"x-death": [{"queue": "q", "reason": "rejected", "count": "x"}]})), "q"
    )
    assert entries(again) == [("q", "rejected", 1)]


def copied_by_client(message: Message) -> Message:
    """The message that a client publishes if it copies the headers of `message`."""
    return sent("x", **{name: value for name, value in vars_of(message).items() if value is not None})


def vars_of(message: Message) -> dict[str, object]:
    properties = message.properties()
    return {"headers": properties.headers, "delivery_mode": properties.delivery_mode}


def test_death_headers_written_by_a_client_are_replaced_at_the_first_death() -> None:
    twice = died(died(sent("x", key="k", headers={"mine": 1}), "q"), "q")
    assert entries(twice) == [("q", "rejected", 2)]
    again = copied_by_client(twice)
    assert again.headers() == twice.headers()
    once = died(again, "p", "expired")
    assert entries(once) == [("p", "expired", 1)]
    assert once.headers()["x-first-death-queue"] == once.headers()["x-last-death-queue"] == "p"
    assert once.headers()["mine"] == 1
    assert entries(died(once, "p", "expired")) == [("p", "expired", 2)]


def test_a_client_cannot_forge_a_dead_letter_cycle() -> None:
    dead = died(sent(), "a", "expired")
    assert cycle_queues(dead, "b", "expired") == {"a", "b"}
    assert cycle_queues(copied_by_client(dead), "b", "expired") == {"b"}


def test_copies_made_by_the_broker_keep_their_deaths_and_messages_of_the_stream_protocol_have_none() -> None:
    dead = died(sent(delivery_mode=2), "q")
    assert entries(died(dead.anew(9), "q")) == [("q", "rejected", 2)]
    assert entries(died(dead.with_property_list(dead.property_list), "q")) == [("q", "rejected", 2)]
    streamed = copied_by_client(dead)
    # With ADDRESSED, which is the same bit.
    streamed.flags |= dead.flags | FROM_STREAM
    assert entries(died(streamed, "q")) == [("q", "rejected", 1)]
    assert entries(died(streamed.anew(9), "q")) == [("q", "rejected", 1)]


def test_the_original_message_is_unchanged() -> None:
    message = sent("x", headers={"a": 1})
    died(message, "q")
    assert message.properties() == BasicProperties(headers={"a": 1})
