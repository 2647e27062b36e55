"""Interpreter of scripts that drive a group of replicas, one command at a time.

The commands and what they print are those of the published vectors. Nothing happens between commands:
messages wait until they are delivered or dropped, and with asynchronous storage writes wait until a command
performs them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.raft import texts
from tests.raft.datadriven import Directive, parse
from tests.raft.storage import MachineStorage
from tests.raft.trace_texts import Level, TextTrace

from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    Transition,
)
from warren.replication.raft.raft_messages import Entry, EntryKind, MessageKind, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings, ReadMode
from warren.replication.raft.ready import Ready, Written
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

UNBOUNDED = 1 << 62
ELECTION_TICKS, HEARTBEAT_TICKS = 3, 1
LETTERS = {letter: kind for kind, letter in texts.LETTERS.items()}
TRANSITIONS = {
    "auto": Transition.AUTO,
    "implicit": Transition.JOINT_AUTO_LEAVE,
    "explicit": Transition.JOINT_EXPLICIT,
}
READ_MODES = {"safe": ReadMode.SAFE, "lease-based": ReadMode.LEASE}
PROPOSAL_DROPPED = "raft proposal dropped"
# The lines below these commands are their input; below any other one they are commands.
WITH_INPUT = frozenset({"propose-conf-change", "step"})


@dataclass
class Acknowledgement:
    """An acknowledgement of the storage, or of the state machine, on its way to its replica."""

    to: int
    text: str
    deliver: Callable[[], None]


@dataclass
class Node:
    """A replica, its storage, and what waits for the storage and the state machine."""

    id: int
    replica: Replica
    storage: MachineStorage
    settings: RaftSettings
    append_work: list[Ready] = field(default_factory=list)
    apply_work: list[tuple[Entry, ...]] = field(default_factory=list)


# What waits to be delivered.
Waiting = RaftMessage | Acknowledgement


class Interaction:
    """A group of replicas, the messages between them, and what the commands print."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.waiting: list[Waiting] = []
        self._level = Level.DEBUG
        self._printed = ""
        self._indent = ""
        self._commands: dict[str, Callable[[Directive], None]] = {
            # A place for a debugger.
            "_breakpoint": lambda _: None,
            "add-nodes": self._add_nodes,
            "campaign": lambda directive: self._node(directive).replica.campaign(),
            "compact": self._compact,
            "deliver-msgs": self._deliver,
            "forget-leader": lambda directive: self._node(directive).replica.forget_leader(),
            "log-level": self._set_level,
            "process-append-thread": lambda directive: self._each(
                directive, "processing append thread", self._append
            ),
            "process-apply-thread": lambda directive: self._each(
                directive, "processing apply thread", self._apply
            ),
            "process-ready": lambda directive: self._each(directive, "handling Ready", self._process_ready),
            "propose": self._propose,
            "propose-conf-change": self._propose_change,
            "raft-log": self._show_log,
            "raft-state": self._show_states,
            "report-unreachable": self._report_unreachable,
            "send-snapshot": self._send_snapshot,
            "set-randomized-election-timeout": self._set_election_timeout,
            "stabilize": self._stabilize,
            "status": self._show_progress,
            "tick-election": lambda directive: self._tick(directive, ELECTION_TICKS),
            "tick-heartbeat": lambda directive: self._tick(directive, HEARTBEAT_TICKS),
            "transfer-leadership": self._transfer,
        }

    def execute(self, directive: Directive) -> str:
        """Execute a command, and those in the lines below it; return what they printed."""
        self._printed = self._indent = ""
        self._commands[directive.command](directive)
        if directive.command not in WITH_INPUT:
            for line in directive.input.splitlines():
                following = parse(line, directive.line)
                self._commands[following.command](following)
        return self._printed or "ok"

    # Printing.

    def _print(self, text: str) -> None:
        if self._level is not Level.NONE:
            self._printed += "".join(
                f"{self._indent}{line}\n" for line in text.removesuffix("\n").split("\n")
            )

    def _print_error(self, text: str) -> None:
        """Print what no level suppresses."""
        self._printed += f"{self._indent}{text}\n"

    def _log(self, level: Level, text: str) -> None:
        if level >= self._level:
            self._print(f"{level.name} {text}")

    def _set_level(self, directive: Directive) -> None:
        self._level = Level[directive.names[0].upper()]

    def _indented(self, action: Callable[[Node], None], node: Node) -> None:
        self._indent += "  "
        action(node)
        self._indent = self._indent[2:]

    # Nodes.

    def _node(self, directive: Directive) -> Node:
        return self.nodes[int(directive.names[0]) - 1]

    def _chosen(self, directive: Directive) -> list[Node]:
        return [self.nodes[int(name) - 1] for name in directive.names]

    def _each(self, directive: Directive, what: str, action: Callable[[Node], None]) -> None:
        nodes = self._chosen(directive)
        for node in nodes:
            if len(nodes) == 1:
                action(node)
            else:
                self._print(f"> {node.id} {what}")
                self._indented(action, node)

    def _add_nodes(self, directive: Directive) -> None:
        options = directive.options
        configuration = Configuration(
            voters=tuple(sorted(map(int, directive.values("voters") or []))),
            learners=tuple(sorted(map(int, directive.values("learners") or []))),
        )
        index = int(options.get("index", 0))
        snapshot = Snapshot(index, 1 if index else 0, configuration)
        settings = RaftSettings(
            election_ticks=ELECTION_TICKS,
            heartbeat_ticks=HEARTBEAT_TICKS,
            pre_vote=directive.flag("prevote"),
            check_quorum=directive.flag("checkquorum"),
            read_mode=READ_MODES[options.get("read-only", "safe")],
            async_storage=directive.flag("async-storage-writes"),
            sync_term_first=directive.flag("sync-term-first"),
            step_down_on_removal=directive.flag("step-down-on-removal"),
            hand_over_before_removal=directive.flag("hand-over-before-removal"),
            slow_storage_ticks=int(options.get("slow-storage-ticks", 0)),
            commit_in_votes=directive.flag("commit-in-votes"),
            validate_changes=not directive.flag("disable-conf-change-validation"),
            batch_proposals=directive.flag("batch-proposals"),
            forward_proposals=True,
            append_bytes_max=int(options.get("append-bytes", UNBOUNDED)),
            in_flight_messages_max=int(options.get("inflight", UNBOUNDED)),
            in_flight_bytes_max=int(options.get("inflight-bytes", UNBOUNDED)),
            uncommitted_bytes_max=int(options.get("uncommitted-bytes", UNBOUNDED)),
            applying_bytes_max=int(options.get("max-committed-size-per-ready", UNBOUNDED)),
        )
        for _ in range(int(directive.names[0])):
            node = len(self.nodes) + 1
            storage = MachineStorage(snapshot)
            self.nodes.append(Node(node, self._replica(node, storage, settings), storage, settings))

    def _replica(self, node: int, storage: MachineStorage, settings: RaftSettings) -> Replica:
        dependencies = RaftDependencies(storage, lambda _: 0, TextTrace(node, self._log))
        return Replica(node, dependencies, settings, applied=storage.newest.index)

    # What replicas are asked.

    def _propose(self, directive: Directive) -> None:
        payload = directive.names[1].encode()
        if not self._node(directive).replica.propose(payload, len(payload)):
            self._print_error(PROPOSAL_DROPPED)

    def _propose_change(self, directive: Directive) -> None:
        members = tuple(MemberChange(LETTERS[token[0]], int(token[1:])) for token in directive.input.split())
        change = ConfigurationChange(
            members,
            TRANSITIONS[directive.options.get("transition", "auto")],
            texts.OLDER_CHANGE if directive.flag("v1") else b"",
        )
        if not self._node(directive).replica.propose_change(change):
            self._print_error(PROPOSAL_DROPPED)

    def _transfer(self, directive: Directive) -> None:
        options = directive.options
        self.nodes[int(options["from"]) - 1].replica.transfer(int(options["to"]))

    def _tick(self, directive: Directive, ticks: int) -> None:
        for _ in range(ticks):
            self._node(directive).replica.tick()

    def _set_election_timeout(self, directive: Directive) -> None:
        self._node(directive).replica.election_timeout = int(directive.options["timeout"])

    def _report_unreachable(self, directive: Directive) -> None:
        node, peer = self._chosen(directive)
        node.replica.unreachable(peer.id)

    def _send_snapshot(self, directive: Directive) -> None:
        node, peer = self._chosen(directive)
        message = RaftMessage(
            MessageKind.SNAPSHOT, peer.id, node.id, node.replica.hard_state.term,
            snapshot=node.storage.snapshot(),
        )  # fmt: skip
        self.waiting.append(message)
        self._print(texts.message_text(message))

    def _compact(self, directive: Directive) -> None:
        storage = self._node(directive).storage
        storage.compact(int(directive.names[1]), storage.newest.configuration)
        self._show_log(directive)

    # What they show.

    def _show_log(self, directive: Directive) -> None:
        storage = self._node(directive).storage
        if storage.log:
            self._print(texts.lines(map(texts.entry_text, storage.log)))
        else:
            self._print(
                f"log is empty: first index={storage.first_index()}, last index={storage.last_index()}"
            )

    def _show_states(self, _: Directive) -> None:
        for node in self.nodes:
            replica = node.replica
            voter = "Voter" if replica.configuration.is_voter(node.id) else "Non-Voter"
            soft = replica.soft_state
            self._print(
                f"{node.id}: {texts.ROLES[soft.role]} ({voter}) "
                f"Term:{replica.hard_state.term} Lead:{soft.leader}"
            )

    def _show_progress(self, directive: Directive) -> None:
        for peer, progress in self._node(directive).replica.progress.items():
            self._print(f"{peer}: {texts.progress_text(progress)}")

    # What they want to have done.

    def _process_ready(self, node: Node) -> None:
        ready = node.replica.ready()
        if ready is None:
            self._print("<empty Ready>")
        else:
            self._perform(node, ready)

    def _perform(self, node: Node, ready: Ready) -> None:
        if not node.settings.async_storage:
            messages = [
                *ready.messages, *(message for message in ready.messages_after if message.to != node.id)
            ]  # fmt: skip
            self._print(texts.ready_text(ready, list(map(texts.message_text, messages))))
            node.storage.write(ready.hard_state, ready.entries, ready.snapshot)
            node.storage.carry(ready)
            self._apply_entries(node, ready.committed)
            self.waiting += messages
            node.replica.advance(ready)
            return
        shown = list(map(texts.message_text, ready.messages))
        writes = ready.hard_state is not None or ready.entries or ready.snapshot is not None
        if writes or ready.messages_after:
            shown.append(texts.with_responses(texts.append_head(node.id, ready), _responses(node, ready)))
            node.append_work.append(ready)
        if ready.committed:
            head = texts.apply_head(node.id, ready.committed)
            shown.append(texts.with_responses(head, [texts.applied_text(node.id, ready.committed)]))
            node.apply_work.append(ready.committed)
        self._print(texts.ready_text(ready, shown))
        self.waiting += ready.messages

    def _append(self, node: Node) -> None:
        if not node.append_work:
            self._print("no append work to perform")
            return
        ready = node.append_work.pop(0)
        self._print(f"Processing:\n{texts.append_head(node.id, ready)}\nResponses:")
        node.storage.write(ready.hard_state, ready.entries, ready.snapshot)
        node.storage.carry(ready)
        for response in _responses(node, ready):
            self._print(response)
        self.waiting += ready.messages_after
        if ready.written is not None:
            self.waiting.append(_acknowledgement(node, ready.written, ready.snapshot))

    def _apply(self, node: Node) -> None:
        if not node.apply_work:
            self._print("no apply work to perform")
            return
        entries = node.apply_work.pop(0)
        self._print(f"Processing:\n{texts.apply_head(node.id, entries)}\nResponses:")
        self._apply_entries(node, entries)
        text = texts.applied_text(node.id, entries)
        self._print(text)
        self.waiting.append(Acknowledgement(node.id, text, lambda: node.replica.applied(entries[-1].index)))

    def _apply_entries(self, node: Node, entries: tuple[Entry, ...]) -> None:
        """Apply entries to a machine that appends payloads, and keep a snapshot of it."""
        for entry in entries:
            configuration = node.storage.configuration
            if entry.kind is EntryKind.CHANGE:
                configuration = node.replica.apply_change(entry)
            node.storage.has_applied(entry, configuration)

    # Delivering.

    def _deliver(self, directive: Directive) -> None:
        found = 0
        kind = directive.options.get("type", "")
        for key, values in directive.arguments:
            if key == "drop":
                for value in values:
                    found += self._deliver_to(int(value), kind, is_dropped=True)
            elif key != "type":
                found += self._deliver_to(int(key), kind)
        if not found:
            self._print("no messages")

    def _deliver_to(self, replica: int, kind: str = "", *, is_dropped: bool = False) -> int:
        """Deliver or drop what waits for a replica, of one kind or of all.

        What does not leave its node is not dropped.
        """
        taken = [
            each for each in self.waiting
            if each.to == replica and not (is_dropped and _is_local(each)) and kind in ("", kind_text(each))
        ]  # fmt: skip
        self.waiting = [each for each in self.waiting if not any(each is other for other in taken)]
        for each in taken:
            text = each.text if isinstance(each, Acknowledgement) else texts.message_text(each)
            self._print(f"dropped: {text}" if is_dropped else text)
            if is_dropped:
                continue
            if isinstance(each, Acknowledgement):
                each.deliver()
            elif not self.nodes[replica - 1].replica.step(each):
                self._print("raft: cannot step as peer not found")
        return len(taken)

    def _stabilize(self, directive: Directive) -> None:
        level = self._level
        self._level = Level[directive.options.get("log-level", level.name).upper()]
        nodes = self._chosen(directive) or self.nodes
        while True:
            # Each step is taken by all of them before the next one.
            progress = [
                self._stabilize_ready(nodes),
                self._stabilize_messages(nodes),
                self._stabilize_work(nodes, "append", self._append),
                self._stabilize_work(nodes, "apply", self._apply),
            ]
            if not any(progress):
                break
        self._level = level

    def _stabilize_ready(self, nodes: list[Node]) -> bool:
        is_done = True
        for node in nodes:
            ready = node.replica.ready()
            if ready is not None:
                is_done = False
                self._print(f"> {node.id} handling Ready")
                self._indent = "  "
                self._perform(node, ready)
                self._indent = ""
        return not is_done

    def _stabilize_messages(self, nodes: list[Node]) -> bool:
        is_done = True
        for node in nodes:
            if any(each.to == node.id for each in self.waiting):
                is_done = False
                self._print(f"> {node.id} receiving messages")
                self._indent = "  "
                self._deliver_to(node.id)
                self._indent = ""
        return not is_done

    def _stabilize_work(self, nodes: list[Node], kind: str, action: Callable[[Node], None]) -> bool:
        is_done = True
        for node in nodes:
            work = node.append_work if kind == "append" else node.apply_work
            if work:
                is_done = False
                self._print(f"> {node.id} processing {kind} thread")
                while work:
                    self._indented(action, node)
        return not is_done


def _responses(node: Node, ready: Ready) -> list[str]:
    """Return what is sent when the writes of a Ready are synced, as text."""
    responses = list(map(texts.message_text, ready.messages_after))
    if ready.written is not None:
        responses.append(texts.written_text(node.id, ready.written, ready.snapshot))
    return responses


def _acknowledgement(node: Node, written: Written, snapshot: Snapshot | None) -> Acknowledgement:
    text = texts.written_text(node.id, written, snapshot)
    return Acknowledgement(node.id, text, lambda: node.replica.written(written))


def kind_text(waiting: Waiting) -> str:
    """Return the kind of a message as text."""
    return waiting.text.split()[1] if isinstance(waiting, Acknowledgement) else texts.KINDS[waiting.kind]


def _is_local(waiting: Waiting) -> bool:
    return isinstance(waiting, Acknowledgement) or waiting.sender == waiting.to
