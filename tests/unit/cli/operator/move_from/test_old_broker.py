"""The addresses of the broker that is moved from."""

from typing import Any

import pytest

from warren.cli.operator.failures import Failure
from warren.cli.operator.move_from.old_broker import OldBroker

ARGUMENTS: dict[str, Any] = {
    "timeout": 60.0,
    "cacert": None,
    "cert": None,
    "key": None,
    "is_insecure": False,
}


def test_the_address_of_a_virtual_host_has_its_name_and_the_credentials_encoded() -> None:
    old = OldBroker("amqp://us%40er:p%2Fw@rabbitmq:5673", None, ARGUMENTS)
    assert old.uri("our store") == "amqp://us%40er:p%2Fw@rabbitmq:5673/our%20store"
    assert old.uri("/") == "amqp://us%40er:p%2Fw@rabbitmq:5673/%2F"
    assert old.name == "amqp://rabbitmq:5673"


def test_what_the_query_of_the_address_says_is_for_every_link() -> None:
    old = OldBroker("amqps://u:p@rabbitmq?verify=verify_none", None, ARGUMENTS)
    assert old.uri("store") == "amqps://u:p@rabbitmq/store?verify=verify_none"


def test_credentials_can_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_OLD_USER", "mover")
    monkeypatch.setenv("WARREN_OLD_PASSWORD", "secret")
    assert OldBroker("amqp://rabbitmq", None, ARGUMENTS).uri("s") == "amqp://mover:secret@rabbitmq/s"


@pytest.mark.parametrize(
    "uri",
    [
        "http://u:p@rabbitmq",
        "rabbitmq",
        "amqp://",
        "amqp://u:p@rabbitmq/store",
        "amqp://u:p@[",
        "amqp://u:p@h:x",
    ],
)
def test_an_address_of_something_else_is_refused_without_a_password(uri: str) -> None:
    with pytest.raises(Failure, match="URI is amqp://USER:PASSWORD@HOST:PORT") as failure:
        OldBroker(uri, None, ARGUMENTS)
    assert "u:p@" not in failure.value.message
