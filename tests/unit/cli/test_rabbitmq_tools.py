"""The tools under RabbitMQ's names: exit statuses, and plugins that are built in or not."""

import click
import pytest
from click.testing import CliRunner

from warren.cli.operator.failures import (
    BROKEN,
    NOT_AUTHORISED,
    UNHEALTHY,
    UNREACHABLE,
    USAGE,
    Failure,
    ObjectNotFound,
)
from warren.cli.operator.rabbitmq_failures import told as told_of
from warren.cli.rabbitmq_plugins import plugins


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (click.UsageError("x"), 64),
        (Failure("x", USAGE), 64),
        (ObjectNotFound("there is no exchange 'x'"), 65),
        (Failure("x", UNREACHABLE), 69),
        (Failure("x", UNHEALTHY), 69),
        (Failure("x", NOT_AUTHORISED), 77),
        (Failure("x", BROKEN), 70),
        (Failure("x"), 69),
    ],
)
def test_exit_statuses_are_those_of_rabbitmq(error: click.ClickException, status: int) -> None:
    assert told_of(error, ()).status == status


def told(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(plugins, list(words))
    return found.exit_code, found.output


def test_plugins_that_are_built_in_are_enabled() -> None:
    for words in (
        ("enable", "--offline", "rabbitmq_management", "rabbitmq_shovel"),
        ("-q", "enable", "rabbitmq_prometheus"),
        ("set", "rabbitmq_stream"),
        ("is_enabled", "rabbitmq_management"),
        ("disable", "rabbitmq_mqtt"),
        ("disable", "--all"),
    ):
        assert told(*words)[0] == 0, words
    assert told("-q", "list", "-m", "-e", "^rabbitmq_prom") == (0, "rabbitmq_prometheus\n")
    assert "[E*] rabbitmq_management" in told("list")[1]


def test_plugins_that_warren_lacks_are_named() -> None:
    for command in ("enable", "set", "is_enabled"):
        status, output = told(command, "rabbitmq_mqtt", "rabbitmq_management")
        assert status == 1
        assert "Warren lacks rabbitmq_mqtt" in output
    assert told("list", "(")[0] == 2
