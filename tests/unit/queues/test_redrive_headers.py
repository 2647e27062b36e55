"""A dead letter says where it came from, begins a new life, and can be taken back as it was."""

import pytest
from tests.unit.queues.samples import believed, sent

from warren.limits import PAST_DEATHS_MAX
from warren.model.message import Message, encode_address
from warren.queues.deaths import Death, make_dead_letter
from warren.queues.redrive_headers import (
    FirstDeath,
    RedriveHeader,
    mark_redriven,
    origin_of,
    redrive_number,
    undo_redrive,
)
from warren.wire.properties import BasicProperties

MARK = RedriveHeader("abc", 5, "dead", 9_000)


def died(message: Message, queue: str = "q", reason: str = "rejected", to: str | None = "dead") -> Message:
    death = Death(queue=queue, reason=reason, exchange="dlx", routing_key=to, now=8_000)
    risen = make_dead_letter(message, death)
    assert risen is not None
    return risen.message


def redriven(message: Message, mark: RedriveHeader = MARK) -> Message:
    properties = message.properties()
    mark_redriven(properties, message, origin_of(message), mark)
    return Message.compose(encode_address("", "q"), properties, message.content, now=mark.now)


def test_where_it_came_from_is_where_it_died_first() -> None:
    dead = died(died(sent("a", key="first")), "dead", "expired", "deader")
    origin = origin_of(dead)
    assert origin is not None
    assert (origin.first_death, origin.routing_key, origin.copies) == (
        FirstDeath("q", "rejected", ""),
        "first",
        (),
    )


def test_copies_that_were_lost_on_the_way_come_back() -> None:
    dead = died(sent("a", headers={"CC": ["c1", "c2"]}))
    assert "CC" not in dead.headers()
    assert redriven(dead).headers()["CC"] == ["c1", "c2"]


@pytest.mark.parametrize(
    "headers",
    [
        None,
        {},
        {"x-first-death-queue": "q"},
        {"x-first-death-queue": "q", "x-first-death-reason": 3, "x-first-death-exchange": ""},
        {"x-first-death-queue": "q", "x-first-death-reason": "r", "x-first-death-exchange": "", "x-death": 1},
        {
            "x-first-death-queue": "q",
            "x-first-death-reason": "r",
            "x-first-death-exchange": "",
            "x-death": [3, {"queue": "q", "reason": "r", "routing-keys": [1]}],
        },
    ],
)
def test_what_an_older_store_believed_is_no_dead_letter_if_it_says_too_little(
    headers: dict[str, object] | None,
) -> None:
    assert origin_of(believed(sent("a", headers=headers))) is None


def test_what_a_client_says_of_deaths_is_no_origin_and_stays_as_it_is() -> None:
    dead = died(sent("a"))
    told = sent("a", headers=dead.headers())
    assert origin_of(dead) is not None
    assert origin_of(told) is None
    again = redriven(told)
    assert {name: again.headers()[name] for name in dead.headers()} == dead.headers()
    assert "x-past-deaths" not in again.headers()
    back = undo_redrive(again, 10_000)
    assert (back.headers(), origin_of(back)) == (dead.headers(), None)


def test_a_new_life_begins_without_deaths_and_keeps_them_as_past() -> None:
    again = redriven(died(sent("a", headers={"mine": 1}, type="t")))
    headers = again.headers()
    assert not [name for name in headers if "death" in name and name != "x-past-deaths"]
    assert [(entry["queue"], entry["reason"]) for entry in headers["x-past-deaths"]] == [("q", "rejected")]
    assert (headers["mine"], again.properties().type) == (1, "t")
    assert headers["x-redrive"]["count"] == 1
    assert redrive_number(again, "abc") == 5
    assert redrive_number(again, "other") is None
    assert redrive_number(sent("a"), "abc") is None


def test_each_life_adds_to_the_past_up_to_a_bound() -> None:
    message = sent("a")
    for _ in range(3):
        message = redriven(died(message))
    assert (len(message.headers()["x-past-deaths"]), message.headers()["x-redrive"]["count"]) == (3, 3)
    for _ in range(PAST_DEATHS_MAX):
        message = redriven(died(message))
    assert len(message.headers()["x-past-deaths"]) == PAST_DEATHS_MAX


@pytest.mark.parametrize("lives", [1, 2])
@pytest.mark.parametrize("headers", [None, {"CC": ["c"], "mine": True}])
def test_taken_back_it_is_the_dead_letter_that_it_was(lives: int, headers: dict[str, object] | None) -> None:
    message = sent("a", headers=headers, message_id="7")
    for _ in range(lives - 1):
        message = redriven(died(message))
    dead = died(died(message), "dead", "expired", "deader")
    back = undo_redrive(redriven(dead), 10_000)
    assert back.address == dead.address
    expected = dict(dead.headers())
    if lives > 1:
        # Of the redrive before, only that there was one.
        expected["x-redrive"] = {"count": 1}
    assert back.headers() == expected
    assert (back.body, back.properties().message_id, back.published_at) == (b"a", "7", 10_000)
    assert origin_of(back) == origin_of(dead)


@pytest.mark.parametrize(
    "note",
    [
        3,
        {},
        {"deaths": "x", "first": 1, "exchange": 2, "count": "y"},
        {"deaths": -1, "exchange": "e", "routing-key": "k" * 255},
    ],
)
def test_what_a_client_made_of_the_note_does_no_harm(note: object) -> None:
    message = sent("a", headers={"x-redrive": note, "x-past-deaths": [{"queue": "q"}, 4]})
    assert undo_redrive(message, 1).body == b"a"
    properties = BasicProperties.decode_list(message.property_list)
    mark_redriven(properties, message, None, MARK)
    assert properties.headers is not None
    assert properties.headers["x-redrive"]["count"] == 1
