"""Conditions on messages: which messages match, and which conditions are refused."""

import pytest
from tests.unit.queues.samples import sent

from warren.limits import CONDITIONS_MAX
from warren.management.conditions import ConditionError, parse_conditions

ORDER = sent(
    b'{"id": 7, "total": 120.5, "items": [{"sku": "a"}, {"sku": "b"}], "paid": true, "note": "x=y"}',
    key="orders.eu",
    priority=5,
    content_type="application/json",
    headers={"tenant": "acme", "retries": 3, "x.y": "dotted", "x-death": [{"queue": "work"}]},
)


@pytest.mark.parametrize(
    "text",
    [
        "routing_key=orders.eu", "routing_key~eu", "routing_key!=orders.us", "exchange=",
        "headers.tenant=acme", "headers.retries>=3", "headers.retries<4", "headers.x.y=dotted",
        "headers.x-death.0.queue=work",
        "properties.priority>4", "properties.content_type~json", "body.total>100", "body.total<=120.5",
        "body.items.1.sku=b", "body.paid=true", "body.note=x=y", "body~sku", "body.missing!=1",
        "headers.missing!=1", "body.id=7", "body.paid!=false",
    ],
)  # fmt: skip
def test_a_matching_message_is_selected(text: str) -> None:
    assert parse_conditions([text])[0].fits(ORDER)


@pytest.mark.parametrize(
    "text",
    [
        "routing_key=orders.us", "headers.tenant=Acme", "headers.retries>3", "headers.missing=1",
        "body.total>121",
        "body.items.2.sku=b", "body.items.x=1", "body.missing~a", "properties.nonsense=1", "body.note>5",
        "body.total~x", "headers.tenant.more=1", "properties.type=x",
        f"headers.x-death.{'9' * 5_000}=1", "headers.x-death.\u0660.queue=work",
    ],
)  # fmt: skip
def test_a_message_that_does_not_match_is_skipped(text: str) -> None:
    assert not parse_conditions([text])[0].fits(ORDER)


@pytest.mark.parametrize("name", ["007", "1e5", "true", "null", "-0", "1_000"])
def test_a_text_that_looks_like_another_type_equals_itself(name: str) -> None:
    assert parse_conditions([f"headers.queue={name}"])[0].fits(sent(headers={"queue": name}))
    assert not parse_conditions([f"headers.queue=x{name}"])[0].fits(sent(headers={"queue": name}))


def test_a_body_that_is_not_json_has_no_fields() -> None:
    for body in (b"plain", b"\xff\xfe", b"[" * 100_000, b""):
        assert not parse_conditions(["body.id=7"])[0].fits(sent(body))
        assert parse_conditions(["body.id!=7"])[0].fits(sent(body))


@pytest.mark.parametrize("text", ["", "=", "=5", "routing_key", "colour=red", "heading.x=1", "~x"])
def test_an_invalid_condition_is_refused_with_the_valid_choices(text: str) -> None:
    with pytest.raises(ConditionError):
        parse_conditions([text])


def test_the_number_of_conditions_is_bounded() -> None:
    assert len(parse_conditions(["body~x"] * CONDITIONS_MAX)) == CONDITIONS_MAX
    with pytest.raises(ConditionError):
        parse_conditions(["body~x"] * (CONDITIONS_MAX + 1))


def test_a_condition_cannot_reveal_the_bcc_header() -> None:
    message = sent(headers={"BCC": ["hidden"], "n": 1})
    assert not parse_conditions(["headers.BCC.0=hidden"])[0].fits(message)
    assert parse_conditions(["headers.n=1"])[0].fits(message)
