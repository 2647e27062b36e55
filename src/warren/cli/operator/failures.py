"""Failures of commands, each with the exit status of the process.

0 done | 1 refused, or not found | 2 wrong usage | 3 broker not reached | 4 not authorised
5 unexpected response, or failure of the broker | 6 a health check failed
"""

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

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The exit status, under click's name."""
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, with control characters escaped."""
        click.echo(f"warren: {escaped(self.message)}", file=file, err=file is None)


class ObjectNotFound(Failure):
    """The broker has no such object; `is_named` is True if the message names it."""

    def __init__(self, message: str, *, is_named: bool = False) -> None:
        super().__init__(message)
        self.is_named = is_named


class Unanswered(Failure):
    """The reply did not arrive in time: the broker may have executed the request."""


class AnswerTooLong(Failure):
    """The response is longer than the limit."""


class ToolFailure(Failure):
    """A failure that RabbitMQ's tools report with `message` as it is, and their exit status `tool_status`."""

    def __init__(self, message: str, status: int = UNHEALTHY, *, tool_status: int | None = None) -> None:
        super().__init__(message, status)
        self.tool_status = tool_status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, with control characters escaped."""
        for line in self.message.splitlines():
            click.echo(escaped(line), file=file, err=file is None)
