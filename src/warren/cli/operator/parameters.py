"""Arguments and options that several commands have, and parsers of their values."""

import json
from collections.abc import Callable
from typing import Any

import click

from warren.cli.operator.completion import name_completion
from warren.cli.operator.failures import USAGE, Failure, NotJson
from warren.cli.operator.session import Arguments


def named(name: str, path: str = "", **more: Any) -> click.Argument:
    """Return an argument for a name, with completion from the list at `path`."""
    metavar = name.upper().replace("_", "-")
    return click.Argument(
        [name], metavar=metavar, shell_complete=name_completion(path) if path else None, **more
    )


def not_empty(what: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """Return a callback that refuses an empty argument."""

    def check(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if not value:
            raise click.BadParameter(f"{what} cannot be an empty string")
        return value

    return check


def option(flag: str, text: str, **more: Any) -> click.Option:
    """Return an option with a value."""
    return click.Option([flag], help=text, **more)


def flag(*names: str, text: str) -> click.Option:
    """Return an option without a value."""
    return click.Option(names, is_flag=True, help=text)


def fields(*names: str, **renamed: str) -> Callable[[Arguments], dict[str, Any]]:
    """Return a function that builds a request body of arguments; `renamed` maps fields to arguments."""
    taken = {name: name for name in names} | renamed
    return lambda arguments: {name: arguments[argument] for name, argument in taken.items()}


def json_of(text: str, what: str) -> Any:
    """Parse `text` as JSON. Raises Failure."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise NotJson(f"{what} is not JSON: {error}", USAGE) from None


def object_of(text: str, what: str) -> dict[str, Any]:
    """Parse `text` as a JSON object. Raises Failure."""
    value = json_of(text, what)
    if not isinstance(value, dict):
        raise NotJson(f"{what} must be a JSON object such as '{{\"max-length\": 1000}}'", USAGE)
    return value


def pairs_of(written: tuple[str, ...], what: str) -> dict[str, Any]:
    """Parse NAME=VALUE arguments; a value that is not JSON is text."""
    pairs: dict[str, Any] = {}
    for pair in written:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise Failure(f"{what} must be NAME=VALUE, not {pair!r}", USAGE)
        try:
            pairs[name] = json.loads(text)
        except ValueError:
            pairs[name] = text
    return pairs


FORCE = flag("--force", text="no effect")
VERBOSE = click.Option(["-V", "--verbose", "is_verbose"], is_flag=True, help="all columns")
QUEUE = named("queue", "/queues/{vhost}")
EXCHANGE = named("exchange", "/exchanges/{vhost}")
USER = named("user", "/users")
VHOST = named("vhost", "/vhosts")
ARGUMENTS = click.Option(
    ["--argument", "-a", "arguments"],
    multiple=True,
    metavar="NAME=VALUE",
    help="such as x-max-length=1000; can be repeated",
)
PERMISSIONS = (named("configure"), named("write"), named("read"))
