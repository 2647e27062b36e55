"""The steps of a move: what each does, what must be done before, and how it is undone."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warren.cli.operator.failures import Failure, ObjectNotFound
from warren.cli.operator.management_client import filled
from warren.cli.operator.move_from.adaptation import (
    UPSTREAM,
    Entry,
    adapt,
    federating_policies,
    foreign_policies,
    label,
    new_entries,
)
from warren.cli.operator.move_from.drain import Drainer, QueueDrain, delete_shovel
from warren.cli.operator.move_from.move import Move, MoveAction
from warren.cli.operator.move_from.old_broker import OldQueue
from warren.cli.operator.waiting import wait

_PREFETCH = 1000
_ALL = ".*"
_RIGHTS = ("configure", "write", "read")
# What makes the links; the permissions are needed until all messages are returned.
_LINKED = ("parameters", "policies")
# RabbitMQ collects statistics every 5 s, and shows for as long what was acknowledged meanwhile.
STATISTICS_S, _STATISTICS_S_MAX = 6.0, 20.0
# How often queues are drained that have messages again.
_PASSES_MAX = 10

Actions = Sequence[MoveAction]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep:
    """A step, with its actions as of now."""

    name: str
    text: str
    do: Callable[[Move], Actions]
    undo: Callable[[Move], Actions]


def _import(move: Move) -> Actions:
    export = move.old.definitions()
    adapted = adapt(export, move.user)
    if "federate" in move.state.done:
        # Those in Warren have the key that federates queues.
        known = move.api.get("/policies")
        adapted.imported["policies"] = new_entries("policies", known, adapted.imported["policies"])

    def keep() -> None:
        move.state.vhosts = [entry["name"] for entry in export["vhosts"]]
        move.state.withheld = adapted.withheld
        move.save()

    held = [
        MoveAction(text=f"left for 'finish': {label(section, entry)}")
        for section, entries in adapted.withheld.items()
        for entry in entries
    ]
    left_out = [MoveAction(text=f"left out: {text}") for text in adapted.left_out]
    planned = move.planned("import", adapted.imported)
    return [
        *planned[:-1],
        *held,
        *left_out,
        MoveAction(text="save what is left for 'finish'", run=keep),
        planned[-1],
    ]


def _federate(move: Move) -> Actions:
    actions = []
    for vhost in move.vhosts:
        where = {"vhost": vhost, "user": move.user}
        if not _may_all(move, where):
            body = dict.fromkeys(_RIGHTS, _ALL)
            actions.append(move.setting("federate", "permissions", where | body, body))
    policies: list[Entry] = move.api.get("/policies")
    for policy in federating_policies(policies, move.vhosts):
        body = {key: policy[key] for key in ("pattern", "apply-to", "priority", "definition")}
        actions.append(move.setting("federate", "policies", policy, body))
    for vhost in move.vhosts:
        upstream = {"vhost": vhost, "component": "federation-upstream", "name": UPSTREAM}
        value = {"uri": move.old.uri(vhost), "prefetch-count": _PREFETCH}
        actions.append(move.setting("federate", "parameters", upstream, upstream | {"value": value}))
    for policy in foreign_policies(policies, move.vhosts):
        text = (
            f"left as it is: policy {policy['name']!r} in vhost {policy['vhost']!r}, which federates already"
        )
        actions.append(MoveAction(text=text))
    return actions


def _may_all(move: Move, where: Entry) -> bool:
    try:
        found = move.api.get(filled("/permissions/{vhost}/{user}", where))
    except ObjectNotFound:
        return False
    return all(found[right] == _ALL for right in _RIGHTS)


def _unfederate(move: Move) -> Actions:
    """Take the links away, and return what is in Warren's queues to the old broker."""
    links, rights = move.undoing("federate", _LINKED), move.undoing("federate", ("permissions",))
    lines = [
        MoveAction(text=f"return {drain.messages} messages of {drain.place}") for drain in _returns(move)
    ]
    lines += [
        MoveAction(text=f"left in Warren: {row['messages']} messages of stream {row['name']!r}")
        for row in move.rows("/queues", "vhost,name,type,messages")
        if row["type"] == "stream" and row["vhost"] in move.vhosts and row["messages"]
    ]
    return [*links, *lines, MoveAction(text="return all messages", run=lambda: _return(move)), *rights]


def _returns(move: Move) -> list[QueueDrain]:
    """The queues of Warren with messages that the old broker has as well."""
    known = {(queue.vhost, queue.name) for queue in move.old.queues() if not queue.is_stream}
    return [
        QueueDrain(vhost=vhost, name=name, is_stream=False, messages=count)
        for (vhost, name), count in _ready_here(move).items()
        if count and (vhost, name) in known
    ]


def _ready_here(move: Move) -> dict[tuple[str, str], int]:
    rows = move.rows("/queues", "vhost,name,messages_ready")
    return {(row["vhost"], row["name"]): row["messages_ready"] for row in rows}


def _return(move: Move) -> None:
    _drain_all(Drainer(move, lambda places: _ready_here(move), is_returning=True), lambda: _returns(move))


def _drain_all(drainer: Drainer, drains: Callable[[], list[QueueDrain]]) -> None:
    """Move what `drains` finds until it finds nothing. Raises Failure if messages come all the time."""
    for _ in range(_PASSES_MAX):
        found = drains()
        if not found:
            return
        drainer.run(found)
    places = ", ".join(drain.place for drain in found)
    raise Failure(f"messages still arrive in {places}: move the publishers first, and run the step again")


def _drain(move: Move) -> Actions:
    queues, known = move.old.queues(), _ready_here(move)
    actions = [
        _declaration(move, queue)
        for queue in queues
        if (queue.messages or queue.is_stream) and (queue.vhost, queue.name) not in known
    ]
    lines = [
        MoveAction(text=f"move {drain.messages} messages of {drain.place}") for drain in _drains(move, queues)
    ]
    lines += [
        MoveAction(text=f"wait for {queue.unacknowledged} unacknowledged messages of {_place(queue)}")
        for queue in queues
        if queue.unacknowledged and not queue.is_stream
    ]
    return [*actions, *lines, MoveAction(text="move until nothing is left", run=lambda: _move_all(move))]


def _place(queue: OldQueue) -> str:
    return QueueDrain(vhost=queue.vhost, name=queue.name, is_stream=queue.is_stream, messages=0).place


def _declaration(move: Move, queue: OldQueue) -> MoveAction:
    """The declaration of a queue that the old broker's clients have declared since the import."""
    entry = {"vhost": queue.vhost, "name": queue.name}
    path = filled("/queues/{vhost}/{name}", entry)

    def run() -> None:
        move.api.send("PUT", path, dict(queue.declaration))

    return MoveAction(text=f"declare {_place(queue)}, as the old broker has it", run=run)


def _drains(move: Move, queues: Sequence[OldQueue], *, reads_streams: bool = False) -> list[QueueDrain]:
    """The queues with messages, and the streams that have others than when they were copied.

    With `reads_streams` all streams: their statistics may be older than their messages.
    """
    copied = {(vhost, name): messages for vhost, name, messages in move.state.streams}

    def has_more(queue: OldQueue) -> bool:
        if not queue.is_stream:
            return queue.messages > 0
        return reads_streams or copied.get((queue.vhost, queue.name), 0) != queue.messages

    return [
        QueueDrain(
            vhost=queue.vhost,
            name=queue.name,
            is_stream=queue.is_stream,
            messages=queue.messages,
            is_resumed=(queue.vhost, queue.name) in copied,
        )
        for queue in queues
        if has_more(queue)
    ]


def _move_all(move: Move) -> None:
    drainer = Drainer(move, move.old.ready, is_returning=False)
    drainer.run(_drains(move, move.old.queues(), reads_streams=True))
    _drain_all(drainer, lambda: _drains(move, move.old.queues()))
    _await_acknowledgements(move)


def _await_acknowledgements(move: Move) -> None:
    """Wait until the old broker shows nothing as unacknowledged. Raises Failure with what is left."""
    wait(move.session, _STATISTICS_S_MAX, lambda: "; ".join(_left(move)))


def _left(move: Move) -> list[str]:
    queues = move.old.queues()
    left = [
        f"{drain.place} has changed since it was copied"
        if drain.is_resumed
        else f"{drain.messages} messages are left in {drain.place}"
        for drain in _drains(move, queues)
    ]
    return left + [
        f"{queue.unacknowledged} messages of {_place(queue)} are unacknowledged at the old broker"
        for queue in queues
        if queue.unacknowledged and not queue.is_stream
    ]


def _stop_draining(move: Move) -> Actions:
    return [
        MoveAction(
            text=f"delete shovel {name!r} in vhost {vhost!r}",
            run=lambda vhost=vhost, name=name: delete_shovel(move, vhost, name),  # type: ignore[misc]
        )
        for vhost, name, _ in move.state.shovels
    ]


def _disconnect(move: Move) -> Actions:
    links = [
        MoveAction(text=f"link of queue {row['queue']!r} in vhost {row['vhost']!r}: {row['forwarded']} moved")
        for row in move.rows("/federation-links", "vhost,queue,upstream,forwarded")
        if row["upstream"] == UPSTREAM and row.get("forwarded")
    ]
    left = [MoveAction(text=text, run=_refuse_left) for text in _left(move)]
    check = MoveAction(text="count what is left", run=lambda: _check_empty(move))
    return [*links, *left, *move.undoing("federate"), check]


def _refuse_left() -> None:
    raise Failure("the old broker is not empty: run 'drain' again")


def _check_empty(move: Move) -> None:
    """Count again: what a link had fetched and Warren had not confirmed is back in the old broker."""
    if move.state.streams:
        # There is no event: the old broker counts the messages of a stream when it collects statistics.
        time.sleep(STATISTICS_S)
    if left := _left(move):
        raise Failure(f"{'; '.join(left)}: run 'drain' again")


def _finish(move: Move) -> Actions:
    if not move.state.withheld:
        return [MoveAction(text="nothing was left for this step")]
    stopped = MoveAction(text="make sure that the old broker has stopped", run=lambda: _check_stopped(move))
    return [stopped, *move.planned("finish", move.state.withheld)]


def _check_stopped(move: Move) -> None:
    if move.old.is_answering():
        raise Failure(
            f"{move.old.name} answers: stop it first, "
            "since Warren takes over its links and the name of its cluster"
        )


STEPS = (
    MoveStep(
        name="import",
        text="take the definitions over, except what moves messages by itself",
        do=_import,
        undo=lambda move: move.undoing("import"),
    ),
    MoveStep(
        name="federate",
        text="let Warren's queues fetch what their consumers have time for",
        do=_federate,
        undo=_unfederate,
    ),
    MoveStep(
        name="drain",
        text="move what is left in queues, and copy streams",
        do=_drain,
        undo=_stop_draining,
    ),
    MoveStep(
        name="disconnect",
        text="take the links to the old broker away",
        do=_disconnect,
        undo=_federate,
    ),
    MoveStep(
        name="finish",
        text="when the old broker has stopped: begin with its shovels, upstreams and cluster name",
        do=_finish,
        undo=lambda move: move.undoing("finish"),
    ),
)
