"""Commands of RabbitMQ's tools about the process of a node on this machine: `wait`, `stop` and `shutdown`.

Whether the broker runs is asked over HTTP, and whether its process does, of the operating system.
"""

import os
import select
import signal
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand
from warren.cli.operator.failures import UNREACHABLE, Failure, TimedOut, ToolFailure
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.rabbitmq_facts import node_name, this_node
from warren.cli.operator.session import Arguments, Session
from warren.cli.operator.waiting import wait

_EX_SOFTWARE, _EX_TEMPFAIL = 70, 75
# A word in the command line of every broker.
_PROGRAM = b"warren"


class _Process:
    """A process of this machine, which another one with the same id later is not mistaken for."""

    def __init__(self, pid: int) -> None:
        """Raises ProcessLookupError if there is no such process."""
        self.pid = pid
        self._file = os.pidfd_open(pid)

    def ends_within(self, timeout_s: float | None) -> bool:
        """Wait for the end of the process; False if it still runs after `timeout_s`, if that is not None."""
        waiting = select.poll()
        waiting.register(self._file, select.POLLIN)
        return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))

    def terminate(self) -> None:
        """Send SIGTERM. Raises ToolFailure if the process belongs to another user."""
        try:
            signal.pidfd_send_signal(self._file, signal.SIGTERM)
        except ProcessLookupError:
            pass
        except PermissionError:
            text = f"process {self.pid} belongs to another user: stop it as that user, or as root"
            raise ToolFailure(text, has_heading=True) from None

    def close(self) -> None:
        """Close the descriptor of the process."""
        os.close(self._file)


def _wait(session: Session, arguments: Arguments) -> None:
    file, pid = arguments["pid_file"], arguments["pid"]
    if file is None and pid is None:
        raise click.UsageError("No pid or pidfile specified", click.get_current_context())
    if file is not None and pid is not None:
        raise click.UsageError("Cannot specify both pid and pidfile", click.get_current_context())
    node = node_name(arguments["at_node"])
    timeout_s: float = arguments["timeout"]
    if file is not None:
        session.begin(f"Waiting for pid file '{file}' to appear")
    told = 0

    def missing() -> str:
        nonlocal told
        found = pid if file is None else _pid_in(file)
        if found is None:
            return f"the file {file!r} does not exist"
        if not _runs(found):
            if file is None:
                raise ToolFailure("Error: process is not running.", tool_status=_EX_SOFTWARE)
            return f"process {found} of the file {file!r} does not run"
        if found != told:
            told = found
            if file is not None:
                session.begin(f"pid is {found}")
            session.begin(f"Waiting for broker on node '{node}' while OS process '{found}' is running")
        session.api.get("/overview", [("columns", "node")])
        return ""

    try:
        wait(session, timeout_s, missing)
    except TimedOut as error:
        late = f"Error: operation wait on node {node} timed out. Timeout value used: {timeout_s * 1000:g}"
        raise ToolFailure(f"{late}\n{error.problem}", tool_status=_EX_TEMPFAIL) from None
    session.begin(f"Applications 'rabbit_and_plugins' are running on node '{node}'")


def _pid_in(file: str) -> int | None:
    """Return the process id that `file` contains; None if there is no such file yet."""
    try:
        words = Path(file).read_text(encoding="ascii").split()
        return int(words[0])
    except FileNotFoundError:
        return None
    except (ValueError, IndexError):
        raise ToolFailure("Error: garbage in pid file.", tool_status=_EX_SOFTWARE) from None
    except OSError as error:
        text = f"Error: could not read pid. Detail: {error.strerror}"
        raise ToolFailure(text, tool_status=_EX_SOFTWARE) from None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        # Of another user; or a number that no process has.
        return pid < 2**31
    return True


def _stop(session: Session, arguments: Arguments) -> None:
    file = arguments["pid_file"]
    try:
        node = this_node(session)
    except Failure as failure:
        if failure.status != UNREACHABLE or not arguments["idempotent"]:
            raise
        session.begin(f"Node {node_name(arguments['at_node'])} is no longer running")
        return
    monitored = f" (will monitor pid file {file})" if file else ""
    session.begin(f"Stopping and halting node {node}{monitored} ...")
    process = _process_of(session, node)
    process.terminate()
    process.ends_within(None)
    process.close()


def _shut_down(session: Session, arguments: Arguments) -> None:
    node = this_node(session)
    process = _process_of(session, node)
    session.begin(f"Shutting down RabbitMQ node {node} running at PID {process.pid}")
    process.terminate()
    if arguments["waits"]:
        session.begin(f"Waiting for PID {process.pid} to terminate")
        if not process.ends_within(arguments["timeout"]):
            raise ToolFailure(f"process {process.pid} still runs", has_heading=True)
        session.begin(f"RabbitMQ node {node} running at PID {process.pid} successfully shut down")
    process.close()


def _process_of(session: Session, node: str) -> _Process:
    """Return the process of `node`. Raises ToolFailure unless it runs on this machine."""
    row: Row = session.api.get(filled("/nodes/{node}", {"node": node}), [("columns", "os_pid")])
    pid = int(row["os_pid"])
    elsewhere = f"node {node} does not run on this machine: stop process {pid} where it runs, with SIGTERM"
    if not _is_local(session.api.target.host):
        raise ToolFailure(elsewhere, has_heading=True)
    try:
        process = _Process(pid)
        is_broker = _PROGRAM in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        raise ToolFailure(elsewhere, has_heading=True) from None
    if not is_broker:
        process.close()
        raise ToolFailure(elsewhere, has_heading=True)
    return process


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


_PID_FILE = click.Argument(["pid_file"], required=False)
LOCAL_PROCESS: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="",
        name="wait",
        known_as="wait",
        text="Wait until the broker runs whose process id is in PID_FILE.",
        takes=(
            _PID_FILE,
            click.Option(["-P", "--pid"], type=click.IntRange(1), help="the process id, instead of a file"),
        ),
        is_waiting=True,
        does=_wait,
    ),
    CustomCommand(
        group="",
        name="stop",
        known_as="stop",
        text="Stop the broker of this machine, and wait for its end.",
        takes=(
            _PID_FILE,
            click.Option(["--idempotent"], is_flag=True, help="succeed if it does not run"),
        ),
        does=_stop,
    ),
    CustomCommand(
        group="",
        name="shutdown",
        known_as="shutdown",
        text="Stop the broker of this machine.",
        takes=(
            click.Option(
                ["--wait/--no-wait", "waits"], default=True, show_default=True, help="wait for its end"
            ),
        ),
        is_waiting=True,
        does=_shut_down,
    ),
)
