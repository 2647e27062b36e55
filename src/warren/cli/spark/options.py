"""The common options of `warren spark`: broker, Spark and output."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import msgspec

from warren.cli.operator.failures import REFUSED, USAGE, Failure
from warren.cli.operator.text import aligned, cell_text, escaped
from warren.cli.operator.tls import tls_options
from warren.cli.spark.masking import masked
from warren.client.uri import DEFAULT_URI, parse_uri

LOCAL = "local[*]"
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The values of the common options, and the output of a command."""

    # Options of the connector; they contain a password.
    broker: Mapping[str, str] = field(repr=False)
    master: str
    remote: str | None = field(repr=False)
    configuration: Mapping[str, str] = field(repr=False)
    is_json: bool
    is_quiet: bool
    is_verbose: bool

    @property
    def place(self) -> str:
        """Return where Spark runs, without the parameters of an address, which may contain a token."""
        return self.master if self.remote is None else self.remote.partition(";")[0]

    def note(self, text: str) -> None:
        """Print a line about progress to standard error, unless --quiet is given."""
        if not self.is_quiet:
            click.echo(f"warren: {escaped(text)}", err=True)

    def print_rows(self, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table, or with --json an array of objects."""
        if self.is_json:
            self.print_json([dict(zip(names, row, strict=True)) for row in rows])
            return
        _write(aligned([list(names), *([cell_text(value) for value in row] for row in rows)]))

    def print_line(self, cells: Sequence[str]) -> None:
        """Print a line of a table during the work: a name, a state and a text."""
        first, second, rest = map(escaped, cells)
        click.echo(f"{first:<11} {second:<8} {rest}".rstrip())

    def print_facts(self, facts: Mapping[str, object]) -> None:
        """Print a line for each fact, or with --json one object."""
        if self.is_json:
            self.print_json(facts)
        else:
            _write(aligned([[name, cell_text(value)] for name, value in facts.items()]))

    def print_json(self, value: object) -> None:
        """Print `value` as JSON; values that JSON lacks are printed as text."""
        _write([msgspec.json.format(json.dumps(value, default=str), indent=2)])

    def failure(self, error: BaseException, status: int = REFUSED) -> Failure:
        """Return a Failure with the reason of `error` in one line and without passwords."""
        return Failure(self.without_secrets(reason(error)), status)

    def without_secrets(self, text: str) -> str:
        """Return `text` with passwords masked."""
        return masked(text, self.broker.values())


def build_command(
    name: str, run: Callable[..., None], takes: Sequence[click.Parameter] = ()
) -> click.Command:
    """Return a command with the common options and `takes`; the docstring of `run` is its help."""

    def collected(**given: Any) -> None:
        common = {option: given.pop(option) for option in _NAMES}
        run(settings_of(**common), **given)

    return click.Command(name, params=[*takes, *_OPTIONS], callback=collected, help=run.__doc__)


def settings_of(
    *,
    uri: str,
    management_uri: str | None,
    option: Sequence[str],
    cacert: str | None,
    cert: str | None,
    key: str | None,
    is_insecure: bool,
    master: str,
    remote: str | None,
    conf: Sequence[str],
    is_json: bool,
    is_quiet: bool,
    is_verbose: bool,
) -> SparkSettings:
    """Return the settings for the values of the common options. Raises Failure for an invalid one."""
    try:
        parse_uri(uri)
    except ValueError as error:
        raise Failure(f"--uri: {error}", USAGE) from None
    files = {"managementUri": management_uri, "tls.caFile": cacert, "tls.certFile": cert, "tls.keyFile": key}
    broker = {"uri": uri} | {name: value for name, value in files.items() if value}
    if is_insecure:
        broker["tls.verify"] = "false"
    if password := os.environ.get("WARREN_KEY_PASSWORD"):
        broker["tls.keyPassword"] = password
    return SparkSettings(
        broker=broker | parse_pairs("--option", option),
        master=master,
        remote=remote,
        configuration=parse_pairs("--conf", conf),
        is_json=is_json,
        is_quiet=is_quiet,
        is_verbose=is_verbose,
    )


def parse_pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    """Parse repeated NAME=VALUE arguments of the option `flag`. Raises Failure."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            # The text is not shown, since it may be a secret without a name.
            raise Failure(f"{flag} must be NAME=VALUE", USAGE)
        found[name] = value
    return found


def storage_option() -> click.Option:
    """Return the option --storage-option of commands that use a lake."""
    return click.Option(
        ["--storage-option"], multiple=True, metavar="NAME=VALUE",
        help="option of delta-rs for the object store of the lake [default: from the environment]",
    )  # fmt: skip


def parse_names(flag: str, text: str, check: Callable[[Sequence[str]], None]) -> list[str]:
    """Split names at commas. Raises Failure if `check` raises ValueError."""
    names = [name.strip() for name in text.split(",")]
    try:
        check(names)
    except ValueError as error:
        raise Failure(f"{flag}: {error}", USAGE) from None
    return names


def parse_duration(text: str) -> int:
    """Parse a duration such as 5m to seconds. Raises Failure."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or not int(number) or unit not in _UNITS:
        raise Failure(f"a duration must be like 30s, 5m, 1h or 1d, not {text!r}", USAGE)
    return int(number) * _UNITS[unit]


def reason(error: BaseException) -> str:
    """Return the line of an error of Spark that has the reason, without the stack traces around it."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # An error in Python that Java reports has its own line below its traceback.
    traces = [place for place, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    below = [line for line in lines[traces[-1] + 1 :] if _names_an_error(line)] if traces else []
    return below[0].partition(": ")[2] if below else lines[0]


def _names_an_error(line: str) -> bool:
    name, colon, _ = line.partition(": ")
    last = name.rpartition(".")[2]
    return bool(colon) and last.isidentifier() and last[0].isupper()


def _write(lines: Sequence[str]) -> None:
    sys.stdout.writelines(line + "\n" for line in lines)


_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--uri"],
        default=DEFAULT_URI,
        envvar="WARREN_AMQP_URI",
        show_default=True,
        help="the broker; use WARREN_AMQP_URI instead if it has a password",
    ),
    click.Option(
        ["--management-uri"],
        envvar="WARREN_URI",
        metavar="URI",
        help="the HTTP API of the broker [default: 10,000 ports above AMQP]",
    ),
    click.Option(
        ["--option"],
        multiple=True,
        metavar="NAME=VALUE",
        help="option of the connector, such as mode=stream; can be repeated",
    ),
    *tls_options(),
    click.Option(
        ["--master"],
        default=LOCAL,
        envvar="WARREN_SPARK_MASTER",
        show_default=True,
        help="where Spark runs: in this process, or spark://…, yarn, k8s://…",
    ),
    click.Option(
        ["--remote"],
        envvar="WARREN_SPARK_REMOTE",
        metavar="sc://HOST:PORT",
        help="a Spark Connect server, instead of --master",
    ),
    click.Option(["--conf"], multiple=True, metavar="NAME=VALUE", help="setting of Spark; can be repeated"),
    click.Option(["--json", "is_json"], is_flag=True, help="print JSON"),
    click.Option(["-q", "--quiet", "is_quiet"], is_flag=True, help="print results only"),
    click.Option(["-v", "--verbose", "is_verbose"], is_flag=True, help="also print the log of Spark"),
]
_NAMES = tuple(str(option.name) for option in _OPTIONS)
