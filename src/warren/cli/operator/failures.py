"""What can go wrong with a command, each with the status that the process ends with.

0 done | 1 refused, or not found | 2 wrong usage | 3 not reached | 4 not authorised
5 an answer that no broker of this kind gives, or its failure | 6 a health check that found something
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
    """The command ends with `status`, and with one line on standard error."""

    def __init__(self, message: str, status: int = REFUSED) -> None:
        super().__init__(message)
        self.status = status

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """What click calls it."""
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line, with nothing in it that a terminal would obey."""
        click.echo(f"warren: {escaped(self.message)}", file=file, err=file is None)


class ObjectNotFound(Failure):
    """The broker has no such thing; `is_named`: the message says which."""

    def __init__(self, message: str, *, is_named: bool = False) -> None:
        super().__init__(message)
        self.is_named = is_named


class Unanswered(Failure):
    """The broker may have obeyed: its answer did not come in time."""


class AnswerTooLong(Failure):
    """The answer is longer than what is taken."""
