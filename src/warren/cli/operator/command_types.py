"""Types of operator commands, each declared once: name, name in rabbitmqctl, parameters and effect.

A ListCommand prints a list, a ShowCommand one object, a RequestCommand sends one request, and a CustomCommand
does anything else. A command whose path contains `{vhost}` has the option -p.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import click

from warren.cli.operator.columns import columns_of
from warren.cli.operator.completion import name_completion
from warren.cli.operator.failures import UNREACHABLE, Failure, ObjectNotFound, UnknownColumns
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.options import (
    HELP_OPTIONS,
    common_of,
    common_options,
    node_before,
    rabbitmq_options,
    session_of,
    vhost_before,
)
from warren.cli.operator.rabbitmq_facts import this_node
from warren.cli.operator.rabbitmq_sentences import ending_of, sentence_of
from warren.cli.operator.session import Arguments, Session, value_at

Run = Callable[[Session, Arguments], None]
_DEFAULT_VHOST = "/"
# Password hashes allow guessing passwords offline: shown only if the column is requested.
_SECRET = "password_hash"
_NO_REASON = ("Object Not Found: Not Found", "Not Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCommand:
    """The base of all commands: names, help and parameters."""

    group: str
    name: str
    text: str
    # The name in rabbitmqctl, whose defaults the command uses under this name.
    known_as: str = ""
    takes: tuple[click.Parameter, ...] = ()
    # Parameters that the command has under its name in rabbitmqctl only.
    takes_known_as: tuple[click.Parameter, ...] = ()
    # The parameters under the name in rabbitmqctl, if they are not those of `takes`.
    takes_instead: tuple[click.Parameter, ...] | None = None
    # True if the command waits for something, for as long as its option --timeout says.
    is_waiting: bool = False

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        """Return the arguments and options; virtual host `/` is the default where one is required."""
        return list(self._taken(is_known_as))

    def _taken(self, is_known_as: bool) -> tuple[click.Parameter, ...]:
        return self.takes if self.takes_instead is None or not is_known_as else self.takes_instead

    def run(self, session: Session, arguments: Arguments) -> None:
        """Run the command."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCommand(OperatorCommand):
    """Prints a list, of all objects or, with `chosen_by`, of those of one virtual host or user."""

    path: str
    within: str = ""
    chosen_by: str = "vhost"
    # True if -p removes rows of other virtual hosts, since the API has no path for one virtual host.
    is_filtered: bool = False
    # The default columns, also under rabbitmqctl's name.
    columns: tuple[str, ...]
    known_columns: tuple[str, ...] = ()
    # rabbitmqctl's names of columns, with the names in the API.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Columns with a constant value, which the response does not contain.
    fixed: Mapping[str, object] = field(default_factory=dict)
    # True if columns can be chosen under rabbitmqctl's name.
    has_columns: bool = True
    # True if rabbitmqctl prints an empty list for a virtual host that does not exist.
    is_empty_if_absent: bool = False
    # What rabbitmqctl says before the list, with the arguments in it.
    says: str = ""

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        chosen = [click.Argument(["columns"], nargs=-1, metavar="[COLUMN]...")]
        if is_known_as and not self.has_columns:
            chosen = []
        if not self.is_filtered and (not self.within or self.chosen_by != "vhost"):
            return [*self.takes, *chosen]
        default = _DEFAULT_VHOST if is_known_as else None
        return [vhost_option(default), *self.takes, *chosen]

    def run(self, session: Session, arguments: Arguments) -> None:
        asked: Sequence[str] = arguments.get("columns", ())
        is_known_as = arguments["is_known_as"]
        is_one = bool(self.within) and arguments[self.chosen_by] is not None
        path = filled(self.within if is_one else self.path, arguments)
        names = asked or (self.known_columns if is_known_as else ()) or self.columns
        if session.is_json and not asked and not session.is_rabbitmq:
            session.print_json([_open(row) for row in self._rows(session, path, {}, arguments)])
            return
        if arguments.get("is_verbose"):
            names = sorted(columns_of(self.path))
        paths = [self.renamed.get(name, name) for name in names]
        query = {"columns": ",".join(dict.fromkeys((*paths, "vhost") if self.is_filtered else paths))}
        begins = self.says.format_map(arguments)
        try:
            rows = self._rows(session, path, query, arguments)
        except ObjectNotFound:
            session.begin(begins)
            if session.is_rabbitmq and is_one and self.is_empty_if_absent:
                session.print_rows(names, [])
                return
            raise
        for row in rows:
            row |= self.fixed
        without = {
            name: where
            for name, where in zip(names, paths, strict=True)
            if name in asked and all(not _has(row, where) for row in rows)
        }
        self._check_columns(without)
        for name in without if rows else ():
            session.note(f"column {name}: no row has it")
        session.begin(begins)
        session.print_rows(names, [[value_at(row, where) for where in paths] for row in rows])

    def _check_columns(self, without: Mapping[str, str]) -> None:
        """Raise UnknownColumns for columns, with their places, that would otherwise print as empty ones."""
        if not without:
            return
        possible = {*columns_of(self.path), *self.columns, *self.known_columns, *self.renamed, *self.fixed}
        unknown = tuple(
            name
            for name, where in without.items()
            if name not in possible and where.partition(".")[0] not in possible
        )
        if possible and unknown:
            close = get_close_matches(unknown[0], possible, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            text = f"unknown column {unknown[0]!r}{hint}; columns: {', '.join(sorted(possible))}"
            raise UnknownColumns(text, unknown)

    def _rows(
        self, session: Session, path: str, query: Mapping[str, object], arguments: Arguments
    ) -> list[Row]:
        rows = session.api.rows(path, query, session.progress)
        if not self.is_filtered or arguments["vhost"] is None:
            return list(rows)
        if session.is_rabbitmq:
            # Raises ObjectNotFound.
            session.api.get(filled("/vhosts/{vhost}", arguments), {"columns": "name"})
        return [row for row in rows if row.get("vhost") == arguments["vhost"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCommand(OperatorCommand):
    """Prints one object."""

    path: str

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        return _with_vhost(self.takes, self.path)

    def run(self, session: Session, arguments: Arguments) -> None:
        session.print_facts(_open(session.api.get(filled(self.path, arguments))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCommand(OperatorCommand):
    """Changes something with one request."""

    method: str
    path: str
    body: Callable[[Arguments], object] = lambda arguments: None
    query: tuple[str, ...] = ()
    says: str
    # True if rabbitmqctl does not mind that the object is absent.
    is_done_if_absent: bool = False

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        return _with_vhost(self.takes, self.path)

    def run(self, session: Session, arguments: Arguments) -> None:
        given = [name for name in self.query if arguments[name]]
        query = "?" + "&".join(f"{name.replace('_', '-')}=true" for name in given) if given else ""
        try:
            session.api.send(self.method, filled(self.path, arguments) + query, self.body(arguments))
        except ObjectNotFound:
            if not (session.is_rabbitmq and self.is_done_if_absent):
                raise
        session.say(self.says.format_map(arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCommand(OperatorCommand):
    """Runs a function."""

    does: Run
    is_in_vhost: bool = False

    def parameters(self, *, is_known_as: bool) -> list[click.Parameter]:
        taken = self._taken(is_known_as)
        return [vhost_option(_DEFAULT_VHOST), *taken] if self.is_in_vhost else list(taken)

    def run(self, session: Session, arguments: Arguments) -> None:
        self.does(session, arguments)


def vhost_option(default: str | None) -> click.Option:
    """Return the option -p; without a default, the command applies to all virtual hosts."""
    return click.Option(
        ["-p", "--vhost"], default=default, metavar="VHOST", envvar="WARREN_VHOST",
        help="virtual host" + (f" [default: {default}]" if default else " [default: all]"),
        shell_complete=name_completion("/vhosts"),
    )  # fmt: skip


def built(command: OperatorCommand, *, is_known_as: bool = False) -> click.Command:
    """Return the click command, under its own name or that of rabbitmqctl."""

    def run(**given: Any) -> None:
        context = click.get_current_context()
        common = common_of(context)
        if "node" in given and given["node"] is None:
            given["node"] = node_before(context)
        given |= vhost_before(context)
        session = session_of(common, is_known_as=is_known_as)
        try:
            if is_known_as:
                session.announce(sentence_of(command.known_as, given))
            command.run(session, given | common | {"is_known_as": is_known_as})
            if is_known_as:
                session.told()
                session.end(ending_of(command.known_as, given))
        except Failure as error:
            failure = error
            if isinstance(error, ObjectNotFound):
                failure = ObjectNotFound(_absent(command, error, given), reason=error.message)
                failure.node = this_node(session) if is_known_as and session.is_json else ""
            failure.context, failure.arguments = context, given | common
            if failure.status != UNREACHABLE:
                session.told()
            raise failure from None
        finally:
            session.api.close()

    parameters = command.parameters(is_known_as=is_known_as)
    if is_known_as:
        parameters += command.takes_known_as
        own = {name for item in parameters for name in item.opts}
        parameters += [item for item in rabbitmq_options() if own.isdisjoint(item.opts)]
    return click.Command(
        command.known_as if is_known_as else command.name,
        params=[*parameters, *common_options(is_waiting=command.is_waiting)],
        callback=run,
        help=command.text,
        hidden=is_known_as,
        context_settings={"help_option_names": HELP_OPTIONS} if is_known_as else {},
    )


def _with_vhost(takes: tuple[click.Parameter, ...], path: str) -> list[click.Parameter]:
    has_own = any(item.name == "vhost" for item in takes)
    return list(takes) if has_own or "{vhost}" not in path else [vhost_option(_DEFAULT_VHOST), *takes]


def _open(row: Row) -> Row:
    """Return `row` without fields that should not appear on a screen."""
    return {name: value for name, value in row.items() if name != _SECRET}


def _has(row: Row, path: str) -> bool:
    name, _, rest = path.partition(".")
    inner = row.get(name)
    return name in row and (not rest or (isinstance(inner, dict) and _has(inner, rest)))


def _absent(command: OperatorCommand, failure: ObjectNotFound, given: Arguments) -> str:
    """Describe what was not found; only arguments that are names are repeated, since others may be secret."""
    if failure.is_named:
        return f"not found: {failure.message}"
    arguments = [item.name for item in command.takes if isinstance(item, click.Argument)]
    # Arguments in the path of a request are names.
    path = getattr(command, "path", "")
    named = [name for name in arguments if name and f"{{{name}}}" in path] or arguments[:1]
    what = " " + ", ".join(repr(given[name]) for name in named if name) if named else f" {command.name}"
    where = f" in vhost {given['vhost']!r}" if given.get("vhost") and "vhost" not in named else ""
    reason = "" if failure.message in _NO_REASON else f" ({failure.message})"
    hint = f"; 'warren {command.group} list' lists the existing ones" if command.group else ""
    return f"not found:{what}{where}{reason}{hint}"
