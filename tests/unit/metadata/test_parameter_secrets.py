"""Passwords in parameters are hidden where they are shown, and kept when a shown value is set again."""

from collections.abc import Callable

import pytest

from warren.metadata.commands import (
    DONE,
    INTERNAL_USER,
    Json,
    MetadataCommand,
    Outcome,
    PutUser,
    RemoveUser,
    Reply,
    SetParameter,
)
from warren.metadata.identity import shown_name
from warren.metadata.machine import Metadata
from warren.metadata.parameter_secrets import masked_parameter

Apply = Callable[[MetadataCommand], Reply]
SHOVEL = {
    "src-uri": ["amqp://u:one@h", "amqp://w:two@h"],
    "src-queue": "q",
    "dest-uri": "amqp://u:three@g",
    "dest-queue": "r",
}
MASKED = {**SHOVEL, "src-uri": ["amqp://u:***@h", "amqp://w:***@h"], "dest-uri": "amqp://u:***@g"}


def shovel(value: Json, user: str = "al") -> SetParameter:
    return SetParameter(vhost="v", component="shovel", name="n", value=value, user=user)


@pytest.fixture
def stored(apply: Apply, metadata: Metadata) -> Callable[[], Json]:
    assert apply(shovel(SHOVEL)) is DONE
    vhost = metadata.vhost("v")
    assert vhost is not None
    return lambda: vhost.parameters.by_key["shovel", "n"]


def test_passwords_are_hidden() -> None:
    assert masked_parameter("shovel", SHOVEL) == MASKED
    assert masked_parameter("federation-upstream", {"uri": "amqp://u:s@h"}) == {"uri": "amqp://u:***@h"}
    assert masked_parameter("federation-upstream", {"uri": ["amqp://u:s@h"]}) == {"uri": ["amqp://u:***@h"]}


@pytest.mark.parametrize("value", [None, 5, [], {}, {"uri": 5}, {"uri": [5, None]}])
def test_a_value_of_any_form_is_shown(value: Json) -> None:
    assert masked_parameter("federation-upstream", value) == value
    assert masked_parameter("nosuch", value) == value


def test_setting_a_shown_value_keeps_the_passwords(apply: Apply, stored: Callable[[], Json]) -> None:
    assert apply(shovel({**MASKED, "src-queue": "other"})) is DONE
    assert stored() == {**SHOVEL, "src-queue": "other"}


def test_the_log_has_the_passwords_that_were_put_back(metadata: Metadata, stored: Callable[[], Json]) -> None:
    assert stored() == SHOVEL
    assert metadata.accepted(shovel(MASKED)) == shovel(SHOVEL)


@pytest.mark.parametrize(
    "uri",
    ["amqp://u:***@evil", "amqp://x:***@h", "amqp://u:***@g", "amqp://u:***@h/other", "amqp://u:***@h/%2f"],
)
def test_a_password_is_not_put_back_for_another_broker_or_user(
    apply: Apply, metadata: Metadata, stored: Callable[[], Json], uri: str
) -> None:
    command = shovel({**SHOVEL, "src-uri": uri})
    reply = apply(command)
    assert reply == Reply(
        Outcome.REFUSED,
        "Validation failed\n\nsrc-uri: the password is hidden, and none that you may see is known for this "
        "user, host and virtual host: give it again\n",
    )
    assert stored() == SHOVEL
    assert metadata.accepted(command) == reply


def test_a_hidden_password_of_a_new_parameter_is_refused(apply: Apply) -> None:
    assert apply(shovel(MASKED)).outcome is Outcome.REFUSED


@pytest.mark.parametrize(("user", "is_kept"), [("al", True), ("boss", True), ("pol", False), ("", True)])
def test_a_hidden_password_is_put_back_for_who_may_see_it(
    apply: Apply, stored: Callable[[], Json], user: str, is_kept: bool
) -> None:
    for name, tag in (("boss", "administrator"), ("pol", "policymaker")):
        apply(PutUser(name=name, password_hash=b"", hashing_algorithm="", tags=(tag,)))
    reply = apply(shovel({**MASKED, "src-queue": "other"}, user))
    assert (reply is DONE) is is_kept
    assert stored() == {**SHOVEL, "src-queue": "other" if is_kept else "q"}


def test_nobody_has_set_what_nobody_is_known_to_have_set(apply: Apply) -> None:
    assert apply(shovel(SHOVEL, INTERNAL_USER)) is DONE
    assert apply(shovel(MASKED, INTERNAL_USER)).outcome is Outcome.REFUSED


def test_a_parameter_of_a_deleted_user_is_not_that_of_a_new_user_of_the_name(
    apply: Apply, metadata: Metadata, stored: Callable[[], Json]
) -> None:
    al = PutUser(name="al", password_hash=b"", hashing_algorithm="", tags=("policymaker",))
    for command in (al, RemoveUser(name="al"), al):
        apply(command)
    vhost = metadata.vhost("v")
    assert vhost is not None
    assert shown_name(vhost.parameters.user_of("shovel", "n")) == "al"
    assert vhost.parameters.user_of("shovel", "n") != "al"
    assert apply(shovel(MASKED)).outcome is Outcome.REFUSED
    assert stored() == SHOVEL
