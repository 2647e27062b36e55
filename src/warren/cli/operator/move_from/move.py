"""One move: the two brokers, what was done so far, and changes of Warren that can be undone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warren.cli.operator.failures import REFUSED, Failure, ObjectNotFound
from warren.cli.operator.management_client import Row, filled
from warren.cli.operator.move_from.adaptation import (
    Definitions,
    Entry,
    added_and_changed,
    identity,
    label,
    new_entries,
)
from warren.cli.operator.move_from.move_state import MoveState, StateFile
from warren.cli.operator.move_from.old_broker import OldBroker
from warren.cli.operator.session import Session

# The path of an entry that is deleted by a request without conditions.
_PATHS = {
    "vhosts": "/vhosts/{name}",
    "users": "/users/{name}",
    "permissions": "/permissions/{vhost}/{user}",
    "topic_permissions": "/topic-permissions/{vhost}/{user}/{exchange}",
    "parameters": "/parameters/{component}/{vhost}/{name}",
    "global_parameters": "/global-parameters/{name}",
    "policies": "/policies/{vhost}/{name}",
    "queues": "/queues/{vhost}/{name}?if-empty=true&if-unused=true",
    "exchanges": "/exchanges/{vhost}/{name}?if-unused=true",
}
# The order in which entries are deleted: what links need goes first, so that nothing is moved any more.
DELETED = (
    "parameters", "policies", "global_parameters", "queues", "exchanges", "bindings", "topic_permissions",
    "permissions", "users", "vhosts",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAction:
    """A part of a step, as one line shows it; without `run`, the line says what another part does."""

    text: str
    run: Callable[[], None] | None = None


class Move:
    """A move from an old broker; what its steps have in common."""

    def __init__(self, session: Session, old: OldBroker, file: StateFile, timeout_s: float) -> None:
        self.session = session
        self.api = session.api
        self.old = old
        self.timeout_s = timeout_s
        # The objects that could not be deleted when a step was undone, because they are used: their sections,
        # and what identifies them.
        self.kept: list[tuple[str, Entry]] = []
        self._file = file
        self.state: MoveState = file.load(old.name)

    @property
    def user(self) -> str:
        """The user who runs the move, with whose rights links and shovels publish in Warren."""
        return self.api.target.user

    @property
    def vhosts(self) -> list[str]:
        """The virtual hosts of the old broker."""
        return self.state.vhosts

    def save(self) -> None:
        """Save the state. Raises Failure."""
        self._file.save(self.state)

    # --- definitions --------------------------------------------------------------------------------

    def planned(self, step: str, definitions: Definitions) -> list[MoveAction]:
        """The actions that give Warren `definitions`: a line for each change, and one that makes them."""
        plan: Row = self.api.send("POST", "/warren/definitions/plan", definitions)
        actions = [MoveAction(text=_planned_text(item)) for item in plan["items"]]
        if plan["items_total"] > len(plan["items"]):
            actions.append(MoveAction(text=f"… {plan['items_total']} changes in all"))
        actions += [MoveAction(text=f"left out: {text}") for text in plan["skipped"]]
        actions.append(
            MoveAction(
                text=f"apply the changes; {plan['totals']['keep']} definitions stay as they are",
                run=lambda: self._apply(step, definitions, plan["fingerprint"]),
            )
        )
        return actions

    def _apply(self, step: str, definitions: Definitions, fingerprint: str) -> None:
        added, changed = added_and_changed(self.api.get("/definitions"), definitions)
        for section, entries in added.items():
            self._remember(step, section, entries, changed.get(section, []))
        self.save()
        path = f"/warren/definitions/apply?fingerprint={fingerprint}"
        answer: Row = self.api.send("POST", path, definitions)
        for item in answer["items"]:
            if item["outcome"] == "failed":
                self.session.note(f"{item['kind']} {item['name']}: {item['reason']}")
        if answer["failed"]:
            raise Failure(f"{answer['applied']} applied, {answer['failed']} failed")

    def setting(self, step: str, section: str, entry: Entry, body: object) -> MoveAction:
        """The action that sets `entry` of a section by a PUT of `body`, and remembers what was there."""
        path = filled(_PATHS[section], entry)

        def run() -> None:
            try:
                old = _exported(section, self.api.get(path))
            except ObjectNotFound:
                old = None
            added = [identity(section, entry)] if old is None else []
            self._remember(step, section, added, [] if old is None else [old])
            self.save()
            self.api.send("PUT", path, body)

        return MoveAction(text=f"set {label(section, entry)}", run=run)

    def _remember(self, step: str, section: str, added: list[Entry], changed: list[Entry]) -> None:
        """Remember what a step changes, unless it did before: undoing goes back to before the move."""
        all_added = self.state.added.setdefault(step, {}).setdefault(section, [])
        all_changed = self.state.changed.setdefault(step, {}).setdefault(section, [])
        known = [*all_added, *all_changed]
        all_added += new_entries(section, known, added)
        all_changed += new_entries(section, known, changed)

    def undoing(self, step: str, sections: Sequence[str] = DELETED) -> list[MoveAction]:
        """The actions that delete what a step has added, and restore what it has changed."""
        added, changed = self.state.added.get(step, {}), self.state.changed.get(step, {})
        deletions = [
            self._deletion(step, section, entry) for section in sections for entry in added.get(section, ())
        ]
        return deletions + [
            self._restoration(step, section, entry)
            for section in sections
            for entry in changed.get(section, ())
        ]

    def _deletion(self, step: str, section: str, entry: Entry) -> MoveAction:
        def run() -> None:
            try:
                self._delete(section, entry)
            except ObjectNotFound:
                pass
            except Failure as failure:
                if failure.status != REFUSED:
                    raise
                self.kept.append((section, entry))
                self.session.note(f"kept {label(section, entry)}: {failure.message}")
                return
            self.state.added[step][section].remove(entry)

        return MoveAction(text=f"delete {label(section, entry)}", run=run)

    def _delete(self, section: str, entry: Entry) -> None:
        """Delete an entry, unless it is used. Raises Failure."""
        path = "" if section == "bindings" else filled(_PATHS[section], entry)
        if section == "bindings":
            self._unbind(entry)
            return
        if section == "vhosts" and self.api.get(filled("/queues/{name}", entry), {"columns": "name"}):
            raise Failure("it has queues")
        if section == "queues" and self._is_copy(entry):
            path = path.partition("?")[0]
        self.api.send("DELETE", path)

    def _is_copy(self, entry: Entry) -> bool:
        """True if a stream has nothing but what was copied from the old broker, which still has it."""
        place = [entry["vhost"], entry["name"]]
        copied = sum(each[2] for each in self.state.moved if each[:2] == place)
        queue = self.queue(*place)
        is_stream = any(each[:2] == place for each in self.state.streams)
        return is_stream and queue is not None and queue["messages"] == copied

    def _restoration(self, step: str, section: str, entry: Entry) -> MoveAction:
        def run() -> None:
            self.api.send("POST", "/definitions", {section: [entry]})
            self.state.changed[step][section].remove(entry)

        return MoveAction(text=f"restore {label(section, entry)}", run=run)

    def _unbind(self, entry: Entry) -> None:
        """Delete a binding, unless an end that was deleted has taken it along, or its queue is kept."""
        queue = {"vhost": entry["vhost"], "name": entry["destination"]}
        if entry["destination_type"] == "queue" and ("queues", queue) in self.kept:
            raise Failure("its queue is kept")
        kind = "q" if entry["destination_type"] == "queue" else "e"
        path = filled("/bindings/{vhost}/e/{source}/{kind}/{destination}", entry | {"kind": kind})
        for row in self.api.get(path):
            if (row["routing_key"], row["arguments"]) == (entry["routing_key"], entry["arguments"]):
                self.api.send("DELETE", path + filled("/{properties_key}", row))

    # --- queues -------------------------------------------------------------------------------------

    def queue(self, vhost: str, name: str) -> Row | None:
        """The queue of Warren; None if there is none."""
        try:
            found: Row = self.api.get(filled("/queues/{vhost}/{name}", {"vhost": vhost, "name": name}))
        except ObjectNotFound:
            return None
        return found

    def rows(self, path: str, columns: str) -> list[Row]:
        """The rows of a list of Warren."""
        return list(self.api.rows(path, {"columns": columns}, self.session.progress))


def perform(move: Move, actions: Iterable[MoveAction]) -> None:
    """Run `actions` in their order, with a line for each. Raises the Failure of the first that fails."""
    try:
        for action in actions:
            move.session.say(action.text)
            if action.run is not None:
                action.run()
    finally:
        move.save()


def _exported(section: str, row: Row) -> Entry:
    """The fields of a row of the API that an export has."""
    fields: dict[str, tuple[str, ...]] = {
        "policies": ("vhost", "name", "pattern", "apply-to", "definition", "priority"),
        "permissions": ("vhost", "user", "configure", "write", "read"),
        "parameters": ("vhost", "component", "name", "value"),
    }
    return {field: row[field] for field in fields[section]}


def _planned_text(item: Mapping[str, Any]) -> str:
    name = f"{item['name']!r}"
    if "destination" in item:
        name = f"{item['name']} -> {item['destination']} {item['routing_key']}".rstrip()
    where = f" in vhost {item['vhost']!r}" if item.get("vhost") else ""
    why = f": {item['reason']}" if item.get("reason") else ""
    kind = item.get("component") or item["kind"].replace("_", " ")
    return f"{item['action']} {kind} {name}{where}{why}"
