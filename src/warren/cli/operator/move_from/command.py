"""`warren move-from`: shows and takes the steps of a move from a running RabbitMQ."""

from collections.abc import Sequence
from pathlib import Path

import click

from warren.cli.operator.command_types import CustomCommand, OperatorCommand
from warren.cli.operator.failures import UNREACHABLE, USAGE, Failure
from warren.cli.operator.move_from.move import Move, MoveAction, perform
from warren.cli.operator.move_from.move_state import StateFile
from warren.cli.operator.move_from.old_broker import OldBroker
from warren.cli.operator.move_from.steps import STEPS, MoveStep
from warren.cli.operator.parameters import flag, option
from warren.cli.operator.session import Arguments, Session

_STATE_FILE = "move-from.json"
_STEPS = ("step", "state", "what it does")
_QUEUES = (
    "vhost",
    "name",
    "type",
    "messages there",
    "unacknowledged there",
    "consumers there",
    "messages here",
)


def _move_from(session: Session, arguments: Arguments) -> None:
    old = OldBroker(arguments["old_uri"], arguments["management_uri"], arguments)
    try:
        move = Move(session, old, StateFile(Path(arguments["state"])), arguments["timeout"])
        step = _step(move, arguments)
        if step is None:
            _show(move, arguments)
        elif arguments["undo"]:
            _undo(move, step, arguments)
        else:
            _do(move, step, arguments)
    finally:
        old.close()


def _step(move: Move, arguments: Arguments) -> MoveStep | None:
    """The step that is meant: by name, or the last one that was done if it is to be undone."""
    name = arguments["step"]
    if name is None and arguments["undo"]:
        if not move.state.done:
            raise Failure("nothing to undo: no step is done")
        name = move.state.done[-1]
    return next((step for step in STEPS if step.name == name), None)


def _do(move: Move, step: MoveStep, arguments: Arguments) -> None:
    missing = [each.name for each in STEPS[: STEPS.index(step)] if each.name not in move.state.done]
    if missing:
        raise Failure(f"{step.name}: step {missing[0]!r} comes before it")
    _run(move, step.do(move), arguments)
    if not arguments["dry_run"]:
        if step.name not in move.state.done:
            move.state.done.append(step.name)
        move.save()
        move.session.say(f"step {step.name}: done")


def _undo(move: Move, step: MoveStep, arguments: Arguments) -> None:
    later = [name for name in move.state.done[::-1] if name != step.name]
    if step.name in move.state.done and move.state.done[-1] != step.name:
        raise Failure(f"{step.name}: undo step {later[0]!r} before it")
    _run(move, step.undo(move), arguments)
    if arguments["dry_run"]:
        return
    if move.kept:
        raise Failure(
            f"{len(move.kept)} objects were kept, since they are used; undo the step again to delete them"
        )
    move.state.done = [name for name in move.state.done if name != step.name]
    move.save()
    move.session.say(f"step {step.name}: undone")


def _run(move: Move, actions: Sequence[MoveAction], arguments: Arguments) -> None:
    """Show what is to be done, and do it if that was asked for."""
    if arguments["dry_run"] or not arguments["yes"]:
        if move.session.is_json:
            move.session.print_json([action.text for action in actions])
        for action in actions:
            move.session.say(f"would {action.text}" if action.run else action.text)
        if not arguments["dry_run"]:
            raise Failure("nothing was changed: give --yes, or --dry-run to only see this", USAGE)
        return
    perform(move, actions)


def _show(move: Move, arguments: Arguments) -> None:
    """Print the steps, and the queues of the old broker that have messages or consumers."""
    done = move.state.done
    steps = [(step.name, "done" if step.name in done else "", step.text) for step in STEPS]
    rows = _queue_rows(move)
    if move.session.is_json:
        move.session.print_json(
            {
                "steps": [dict(zip(("step", "state", "text"), row, strict=True)) for row in steps],
                "queues": [dict(zip(_QUEUES, row, strict=True)) for row in rows],
            }
        )
        return
    move.session.print_rows(_STEPS, steps)
    move.session.print_rows(_QUEUES, rows)
    following = next((step for step in STEPS if step.name not in done), None)
    if following is None:
        return
    move.session.say(f"next: {following.name}; --dry-run shows what it does, and --yes does it")
    if arguments["dry_run"]:
        _do(move, following, arguments)


def _queue_rows(move: Move) -> list[tuple[object, ...]]:
    try:
        queues = move.old.queues()
    except Failure as failure:
        if failure.status != UNREACHABLE:
            raise
        move.session.note(failure.message)
        return []
    here = {
        (row["vhost"], row["name"]): row["messages"] for row in move.rows("/queues", "vhost,name,messages")
    }
    return [
        (
            queue.vhost,
            queue.name,
            "stream" if queue.is_stream else "queue",
            queue.messages,
            queue.unacknowledged,
            queue.consumers,
            here.get((queue.vhost, queue.name)),
        )
        for queue in queues
        if queue.messages or queue.unacknowledged or queue.consumers
    ]


MOVE_FROM: tuple[OperatorCommand, ...] = (
    CustomCommand(
        group="",
        name="move-from",
        text=(
            "Move from a running RabbitMQ without stopping; without STEP, show how far the move is.\n\n"
            "URI is the AMQP address of the old broker, amqp://USER:PASSWORD@HOST:PORT; WARREN_OLD_USER and "
            "WARREN_OLD_PASSWORD are its credentials if it has none. The steps, in their order:\n\n\b\n"
            + "\n".join(f"  {step.name:<11} {step.text}" for step in STEPS)
        ),
        is_waiting=True,
        does=_move_from,
        takes=(
            click.Argument(["old_uri"], metavar="URI"),
            click.Argument(
                ["step"], required=False, type=click.Choice([step.name for step in STEPS]), metavar="[STEP]"
            ),
            option(
                "--management-uri",
                "management API of the old broker [default: port 15672 of its host]",
                envvar="WARREN_OLD_MANAGEMENT_URI",
            ),
            flag("--dry-run", text="show what the step would do; nothing is changed"),
            flag("--yes", text="take the step"),
            flag("--undo", text="undo the step, or the last one"),
            option(
                "--state", "file that has what was done, to undo it", default=_STATE_FILE, show_default=True
            ),
        ),
    ),
)
