"""Failures of commands, each with the exit status of the process.

0 done | 1 refused, or not found | 2 wrong usage | 3 broker not reached | 4 not authorised
5 unexpected response, or failure of the broker | 6 a health check failed
"""

import json
from typing import IO, Any

import click

from warren.cli.operator.text import escaped

REFUSED = 1
USAGE = 2
UNREACHABLE = 3
NOT_AUTHORISED = 4
BROKEN = 5
UNHEALTHY = 6


class Failure(click.ClickException):
    """Ends the command with exit status `status`, and prints one line on standard error."""

    def __init__(self, message: str, status: int = REFUSED) -> None:
        super().__init__(message)
        self.status = status
        # The command that has failed, and its arguments, for RabbitMQ's tools.
        self.context: click.Context | None = None
        self.arguments: dict[str, Any] = {}

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The exit status, under click's name."""
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, with control characters escaped."""
        click.echo(f"warren: {escaped(self.message)}", file=file, err=file is None)


class ObjectNotFound(Failure):
    """The broker has no such object; `is_named` is True if the message names it.

    `reason` is what the broker says, if the message is a sentence for people.
    """

    def __init__(self, message: str, *, is_named: bool = False, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message
        self.is_named = is_named
        # The name of the node, if the output is for programs.
        self.node = ""


class Refused(Failure):
    """The broker has refused a request, with `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"refused: {reason}")
        self.reason = reason


class NotJson(Failure):
    """An argument is not the JSON that the command takes."""


class UnknownColumns(Failure):
    """A list lacks the columns `names`."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message, USAGE)
        self.names = names


class Unanswered(Failure):
    """The reply did not arrive in time: the broker may have executed the request."""


class TimedOut(Failure):
    """What a command has waited for has not come within its time, because of `problem`."""

    def __init__(self, timeout_s: float, problem: str, status: int) -> None:
        super().__init__(f"timed out after {timeout_s:g} s: {problem}", status)
        self.problem = problem


class AnswerTooLong(Failure):
    """The response is longer than the limit."""


class ToolFailure(Failure):
    """A failure that RabbitMQ's tools report with `message` as it is, and their exit status `tool_status`.

    With `has_heading` they print `Error:` before it.
    """

    def __init__(
        self,
        message: str,
        status: int = UNHEALTHY,
        *,
        tool_status: int | None = None,
        has_heading: bool = False,
    ) -> None:
        super().__init__(message, status)
        self.tool_status = tool_status
        self.has_heading = has_heading

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, with control characters escaped."""
        for line in self.message.splitlines():
            click.echo(escaped(line), file=file, err=file is None)


def failed_for_programs(message: str, node: str) -> ToolFailure:
    """Return a failure of a command of rabbitmqctl whose output is JSON, also if it fails."""
    document = {"message": message, "node": node, "result": "error"}
    return ToolFailure(json.dumps(document, separators=(",", ":")))
