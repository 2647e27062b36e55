"""What RabbitMQ's tools print when a command fails, and their exit statuses (3.10.8, 4.3.6).

The first lines are those that scripts look for. A failure of the broker or of its data follows `Error:`; a
wrong call is told with the arguments and the usage. Statuses are from sysexits.h:

64 usage | 65 data | 67 no such user | 69 unavailable, and any other refusal | 70 software | 77 no permission
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import click

from warren.cli.operator.failures import (
    BROKEN,
    NOT_AUTHORISED,
    UNREACHABLE,
    USAGE,
    Failure,
    NotJson,
    ObjectNotFound,
    Refused,
    ToolFailure,
    Unanswered,
    UnknownColumns,
    failed_for_programs,
)
from warren.cli.operator.rabbitmq_facts import node_name
from warren.cli.rabbitmq_usage import usage_lines

EX_USAGE, EX_DATAERR, EX_NOUSER, EX_UNAVAILABLE, EX_SOFTWARE, EX_NOPERM = 64, 65, 67, 69, 70, 77
_STATUSES = {USAGE: EX_USAGE, BROKEN: EX_SOFTWARE, NOT_AUTHORISED: EX_NOPERM}
_ABSENT = ("there is no user", "there is no virtual host", "status 405")
_VALIDATED = ("set_policy", "set_operator_policy", "set_parameter", "set_vhost_limits")
_NOT_THIS_WAY = "policies may not be set using this method"
_PROTECTED = (
    "Cannot delete this virtual host: it is protected from deletion. To lift the protection, inspect and "
    "update its metadata"
)
# How alike names of commands are for one to be meant by the other.
_LIKENESS = 0.75
_EXTRA = "Got unexpected extra argument"


@dataclass(frozen=True, slots=True)
class Told:
    """The exit status of a tool, and the lines of its standard error."""

    status: int
    lines: tuple[str, ...]


class UnknownCommand(click.UsageError):
    """There is no command `name`; `close` is the name of one that may be meant."""

    def __init__(self, name: str, close: str | None, context: click.Context) -> None:
        super().__init__(f"No such command {name!r}.", context)
        self.name = name
        self.close = close


class ToolGroup(click.Group):
    """The commands of a tool, of which one may be meant by an unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of `args`; raises UnknownCommand."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            close = get_close_matches(name, self.list_commands(ctx), n=1, cutoff=_LIKENESS)
            raise UnknownCommand(name, close[0] if close else None, ctx)
        return super().resolve_command(ctx, args)


def told(error: click.ClickException, words: Sequence[str]) -> Told:
    """Return what the tool prints for `error`; `words` are its arguments."""
    if isinstance(error, UnknownCommand):
        return _unknown_command(error)
    if isinstance(error, ToolFailure):
        status = EX_UNAVAILABLE if error.tool_status is None else error.tool_status
        heading = ("Error:",) if error.has_heading else ()
        return Told(status, (*heading, *error.message.splitlines()))
    if isinstance(error, UnknownColumns):
        names = ",".join(error.names)
        return _misused(EX_USAGE, f"Info key(s) {names} are not supported", words, error.context)
    if isinstance(error, Failure):
        return _failed(error)
    if isinstance(error, click.UsageError):
        return _wrong_call(error, words)
    return Told(EX_SOFTWARE, ("Error:", error.format_message()))


def _unknown_command(error: UnknownCommand) -> Told:
    lines = ["", f"Command '{error.name}' not found. "]
    if error.close is not None:
        return Told(EX_USAGE, (*lines, f"Did you mean '{error.close}'? ", ""))
    return Told(EX_USAGE, (*lines, "", *usage_lines(error.ctx)))


def _wrong_call(error: click.UsageError, words: Sequence[str]) -> Told:
    status, detail = EX_USAGE, error.format_message()
    if isinstance(error, click.NoSuchOption):
        detail = f"Invalid options for this command:\n{error.option_name} : "
    elif isinstance(error, click.MissingParameter):
        detail = "not enough arguments."
    elif detail.startswith(_EXTRA):
        detail = "too many arguments."
    elif isinstance(error, click.BadParameter) and isinstance(error.param, click.Option):
        name, value = _given(error.param, words)
        detail = f"Invalid options for this command:\n{name} : {value}"
    elif isinstance(error, click.BadParameter):
        command = error.ctx.info_name if error.ctx else ""
        status, detail = _BAD_ARGUMENTS.get(command or "", (EX_DATAERR, f"Bad argument: {error.message}"))
    return _misused(status, detail, words, error.ctx)


def _misused(status: int, detail: str, words: Sequence[str], context: click.Context | None) -> Told:
    lines = f"Error (argument validation): {detail}".split("\n")
    return Told(status, (*lines, "Arguments given:", "\t" + " ".join(words), "", *usage_lines(context)))


def _given(option: click.Option, words: Sequence[str]) -> tuple[str, str]:
    """Return the option as it was given, and its value."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in option.opts:
            return name, value if equals else next(iter(words[place + 1 :]), "")
    return option.opts[-1], ""


def _failed(error: Failure) -> Told:
    command = (error.context.info_name if error.context else None) or ""
    arguments = error.arguments
    if error.status == UNREACHABLE:
        return _unreached(error, command, arguments.get("at_node"))
    if isinstance(error, NotJson):
        return _error(EX_UNAVAILABLE, "JSON decoding error. Reason: badarg")
    if isinstance(error, ObjectNotFound):
        return _absent(error, command)
    if isinstance(error, Refused):
        if error.reason.startswith(_ABSENT):
            return _absent(error, command)
        if command == "delete_vhost" and "protected from deletion" in error.reason:
            return _error(EX_DATAERR, _PROTECTED)
        if command == "restart_vhost":
            return _error(EX_SOFTWARE, error.reason)
        if command in _VALIDATED and error.reason != _NOT_THIS_WAY:
            return _error(EX_UNAVAILABLE, "Validation failed", "", error.reason)
        return _error(_COMMAND_STATUSES.get(command, EX_UNAVAILABLE), error.reason)
    status = _STATUSES.get(error.status, EX_UNAVAILABLE)
    return _error(_COMMAND_STATUSES.get(command, status), error.message)


def _unreached(error: Failure, command: str, given: str | None) -> Told:
    node = node_name(given)
    if command == "ping":
        return _error(
            EX_UNAVAILABLE,
            f"Failed to connect and authenticate to {node} in 60000 ms",
            error.message,
        )
    if isinstance(error, Unanswered):
        late = f"Error: operation {command} on node {node} timed out. {error.message}"
        return Told(EX_UNAVAILABLE, (late,))
    first = (
        f"Error: unable to perform an operation on node '{node}'. Please see diagnostics information and "
        "suggestions below."
    )
    return Told(EX_UNAVAILABLE, (first, "", "DIAGNOSTICS", "===========", "", error.message))


def _absent(error: ObjectNotFound | Refused, command: str) -> Told:
    """Tell which object does not exist: a name that the response has, or what the command is about."""
    if command == "delete_user" and isinstance(error, ObjectNotFound) and error.node:
        message = f"User {error.arguments['user']} does not exists"
        return told(failed_for_programs(message, error.node), ())
    kind = next((kind for kind, words in _KINDS if any(word in error.reason for word in words)), "")
    arguments = error.arguments
    if not kind and not _names_other(error.context):
        kind = next((kind for kind, _ in _KINDS if arguments.get(kind) is not None), "")
    status, sentence = _SENTENCES.get((command, kind)) or _SENTENCES.get((command, "")) or _DEFAULTS[kind]
    status = _COMMAND_STATUSES.get(command, status)
    shown = {name: "" if value is None else value for name, value in arguments.items()}
    return Told(status, tuple(sentence.format_map(shown | {"message": error.message}).split("\n")))


def _names_other(context: click.Context | None) -> bool:
    """True if an argument names what is neither a queue nor a virtual host nor a user."""
    kinds = {kind for kind, _ in _KINDS}
    takes = context.command.params if context else ()
    return any(isinstance(item, click.Argument) and item.name not in {*kinds, "columns"} for item in takes)


def _error(status: int, *lines: str) -> Told:
    return Told(status, ("Error:", *(part for line in lines for part in line.split("\n"))))


# What a response says of the kind of an object that does not exist.
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("queue", ("no queue", "no stream")),
    ("vhost", ("vhost", "virtual host")),
    ("user", ("user",)),
)
_DEFAULTS: Mapping[str, tuple[int, str]] = {
    "": (EX_DATAERR, "Error:\n{message}"),
    "queue": (EX_DATAERR, "Object (queue, stream, exchange, etc) was not found"),
    "vhost": (EX_DATAERR, "Virtual host '{vhost}' does not exist"),
    "user": (EX_UNAVAILABLE, 'Error:\n{{:no_such_user, "{user}"}}'),
}
_QUOTED_USER = (EX_NOUSER, 'Error:\nUser "{user}" does not exist')
_USER = (EX_NOUSER, "Error:\nUser {user} does not exist")
_VHOST = (EX_UNAVAILABLE, "Error:\nVirtual host {vhost} does not exist")
_PARAMETER = (EX_UNAVAILABLE, "Error:\nParameter does not exist")
_QUEUE = (EX_DATAERR, "queue '{queue}' was not found in virtual host '{vhost}'")
_TARGET = (EX_UNAVAILABLE, "Error:\nTarget queue was not found in virtual host '{vhost}'")
_PERMISSIONS = (
    "set_permissions", "set_topic_permissions", "clear_permissions", "clear_topic_permissions",
    "set_permissions_globally",
)  # fmt: skip
_SENTENCES: Mapping[tuple[str, str], tuple[int, str]] = {
    **{(name, "user"): _QUOTED_USER for name in ("change_password", "set_user_tags", "delete_user")},
    **{(name, "user"): _USER for name in _PERMISSIONS},
    **{(name, "vhost"): _VHOST for name in _PERMISSIONS},
    **{
        (name, ""): _PARAMETER
        for name in ("clear_policy", "clear_operator_policy", "clear_parameter", "clear_global_parameter")
    },
    **{(name, "queue"): _QUEUE for name in ("quorum_status", "add_member", "delete_member")},
    ("set_vhost_tags", "vhost"): (EX_DATAERR, 'Error:\nVirtual host "{vhost}" does not exist'),
    ("clear_vhost_limits", "vhost"): _PARAMETER,
    **{(name, "vhost"): _QUEUE for name in ("quorum_status", "add_member", "delete_member")},
    ("purge_queue", "vhost"): _DEFAULTS["queue"],
    ("delete_queue", "vhost"): (EX_USAGE, "Error:\nNo such queue was found"),
    ("delete_queue", "queue"): (EX_USAGE, "Error:\nNo such queue was found"),
    ("peek", "queue"): _TARGET,
}  # fmt: skip
# The status of a command that fails for a reason of its own, where it is not the usual one.
_COMMAND_STATUSES: Mapping[str, int] = {
    "await_online_nodes": EX_SOFTWARE,
    **dict.fromkeys(
        ("set_disk_free_limit", "set_vm_memory_high_watermark", "import_definitions", "export_definitions"),
        EX_DATAERR,
    ),
    **dict.fromkeys(
        (
            "forget_cluster_node", "close_connection", "delete_shovel", "restart_shovel",
            "restart_federation_link",
        ),
        EX_UNAVAILABLE,
    ),
}  # fmt: skip
_BAD_ARGUMENTS: Mapping[str, tuple[int, str]] = {
    "grow": (EX_USAGE, "the strategy is not recognised."),
    "rebalance": (EX_UNAVAILABLE, "the type is not supported. Try one of all, classic, quorum, stream."),
    "set_log_level": (EX_UNAVAILABLE, "the log level is not supported."),
    "peek": (EX_USAGE, '"position value must be a positive integer"'),
}
