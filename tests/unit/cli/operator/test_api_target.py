"""The address and credentials of the management API, from options, environment and defaults."""

from pathlib import Path

import pytest

from warren.blocking.http_target import HttpTarget
from warren.cli.operator.api_target import DEFAULT_URI, target_of
from warren.cli.operator.failures import USAGE, Failure


def nobody(prompt: str) -> str:
    raise AssertionError(prompt)


def test_the_default_target_is_guest_on_this_machine() -> None:
    target = target_of(DEFAULT_URI, {}, nobody)
    assert (target.host, target.port, target.user, target.password) == ("127.0.0.1", 15672, "guest", "guest")


def test_a_uri_determines_every_part() -> None:
    target = target_of("https://al%40x:p%2Fw@[::1]:99/proxy/", {"WARREN_USER": "other"}, nobody)
    assert target == HttpTarget(
        host="::1", port=99, prefix="/proxy", user="al@x", password="p/w", is_tls=True
    )
    assert target_of("https://host", {}, nobody).port == 15671


def test_the_environment_supplies_the_user_and_password() -> None:
    target = target_of("http://host", {"WARREN_USER": "al", "WARREN_PASSWORD": ""}, nobody)
    assert (target.user, target.password) == ("al", "")


def test_a_missing_password_is_prompted_for() -> None:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "typed"

    assert target_of("http://al@host", {}, ask).password == "typed"
    assert asked == ["Password of al"]


@pytest.mark.parametrize(
    "uri",
    [
        "host:15672",
        "amqp://al:secret@host",
        "http://al:se/secret@host",
        "http://",
        "http://al:secret@host:1?x",
    ],
)
def test_a_malformed_uri_is_refused_without_showing_its_password(uri: str) -> None:
    with pytest.raises(Failure) as caught:
        target_of(uri, {}, nobody)
    assert caught.value.exit_code == USAGE
    assert "secret" not in caught.value.message


def test_no_representation_of_a_target_contains_the_password() -> None:
    assert "secret" not in repr(target_of("http://al:secret@host", {}, nobody))


def test_the_default_user_of_a_container_is_that_of_its_health_checks(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from file\n")
    named = {"RABBITMQ_DEFAULT_USER": "shop", "RABBITMQ_DEFAULT_PASS_FILE": str(tmp_path / "secret")}
    target = target_of(DEFAULT_URI, named, nobody)
    assert (target.user, target.password) == ("shop", "from file")
    assert target_of(DEFAULT_URI, named | {"RABBITMQ_DEFAULT_PASS": "p"}, nobody).password == "p"
    own = target_of(DEFAULT_URI, named | {"WARREN_USER": "guest"}, nobody)
    assert (own.user, own.password) == ("guest", "guest")
    with pytest.raises(Failure, match="RABBITMQ_DEFAULT_PASS_FILE: cannot read '/nosuch'"):
        target_of(DEFAULT_URI, named | {"RABBITMQ_DEFAULT_PASS_FILE": "/nosuch"}, nobody)
