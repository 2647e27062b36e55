"""Headers of redriven dead letters: their origin, their past deaths, and the undo."""

import pytest
from tests.unit.queues.samples import sent, trusted

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


def test_the_origin_is_where_the_message_died_first() -> None:
    dead = died(died(sent("a", key="first")), "dead", "expired", "deader")
    origin = origin_of(dead)
    assert origin is not None
    assert (origin.first_death, origin.routing_key, origin.copies) == (
        FirstDeath("q", "rejected", ""),
        "first",
        (),
    )


def test_cc_keys_removed_by_dead_lettering_are_restored() -> None:
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
def test_incomplete_death_headers_of_an_older_store_have_no_origin(
    headers: dict[str, object] | None,
) -> None:
    assert origin_of(trusted(sent("a", headers=headers))) is None


def test_death_headers_written_by_a_client_are_no_origin_and_stay_unchanged() -> None:
    dead = died(sent("a"))
    reported = sent("a", headers=dead.headers())
    assert origin_of(dead) is not None
    assert origin_of(reported) is None
    again = redriven(reported)
    assert {name: again.headers()[name] for name in dead.headers()} == dead.headers()
    assert "x-past-deaths" not in again.headers()
    back = undo_redrive(again, 10_000)
    assert (back.headers(), origin_of(back)) == (dead.headers(), None)


def test_a_redriven_message_has_no_deaths_and_lists_them_as_past_deaths() -> None:
    again = redriven(died(sent("a", headers={"mine": 1}, type="t")))
    headers = again.headers()
    assert not [name for name in headers if "death" in name and name != "x-past-deaths"]
    assert [(entry["queue"], entry["reason"]) for entry in headers["x-past-deaths"]] == [("q", "rejected")]
    assert (headers["mine"], again.properties().type) == (1, "t")
    assert headers["x-redrive"]["count"] == 1
    assert redrive_number(again, "abc") == 5
    assert redrive_number(again, "other") is None
    assert redrive_number(sent("a"), "abc") is None


def test_each_redrive_adds_past_deaths_up_to_a_bound() -> None:
    message = sent("a")
    for _ in range(3):
        message = redriven(died(message))
    assert (len(message.headers()["x-past-deaths"]), message.headers()["x-redrive"]["count"]) == (3, 3)
    for _ in range(PAST_DEATHS_MAX):
        message = redriven(died(message))
    assert len(message.headers()["x-past-deaths"]) == PAST_DEATHS_MAX


@pytest.mark.parametrize("lives", [1, 2])
@pytest.mark.parametrize("headers", [None, {"CC": ["c"], "mine": True}])
def test_undoing_a_redrive_restores_the_dead_letter(lives: int, headers: dict[str, object] | None) -> None:
    message = sent("a", headers=headers, message_id="7")
    for _ in range(lives - 1):
        message = redriven(died(message))
    dead = died(died(message), "dead", "expired", "deader")
    back = undo_redrive(redriven(dead), 10_000)
    assert back.address == dead.address
    expected = dict(dead.headers())
    if lives > 1:
        # Only the count of the earlier redrive remains.
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
def test_malformed_redrive_headers_of_a_client_are_harmless(note: object) -> None:
    message = sent("a", headers={"x-redrive": note, "x-past-deaths": [{"queue": "q"}, 4]})
    assert undo_redrive(message, 1).body == b"a"
    properties = BasicProperties.decode_list(message.property_list)
    mark_redriven(properties, message, None, MARK)
    assert properties.headers is not None
    assert properties.headers["x-redrive"]["count"] == 1
