"""Commands of the project's own scripts: crashes, messages that arrive twice or out of nowhere, reads.

    restart N [commit=carried] [applied=INDEX]   loses what is not written; begins again with what is
    hand-over N                                  the best other voter is to lead
    read-index N CONTEXT                         asks for the index that a read must see
    report-snapshot FROM TO [failed]             a snapshot has been transferred, or has not
    duplicate-msgs N [type=KIND]                 what waits for N will arrive twice
    step KIND from= to= [term= log= commit= hint= rejected forced context= snapshot=TERM/INDEX]
                                                 a message arrives; its entries follow, as `term/index text`

With `commit=carried` the commit index is lost unless entries that are written carry it. With `applied` the
state machine goes back to how it was after that entry.
"""

from tests.raft import texts
from tests.raft.datadriven import Directive
from tests.raft.interaction import Acknowledgement, Interaction, Node, kind_text

from warren.replication.raft.raft_messages import Entry, HardState, RaftMessage, Snapshot

KINDS = {text: kind for kind, text in texts.KINDS.items()}


class FaultyInteraction(Interaction):
    """A group of replicas that crash, over a network that repeats messages."""

    def __init__(self) -> None:
        super().__init__()
        self._commands |= {
            "restart": self._restart,
            "read-index": lambda directive: self._node(directive).replica.read_index(
                directive.names[1].encode()
            ),
            "hand-over": lambda directive: self._print(f"to {self._node(directive).replica.hand_over()}"),
            "report-snapshot": self._report_snapshot,
            "duplicate-msgs": self._duplicate,
            "step": self._step,
        }

    def _restart(self, directive: Directive) -> None:
        node, options = self._node(directive), directive.options
        node.append_work, node.apply_work = [], []
        self.waiting = [
            each for each in self.waiting if not isinstance(each, Acknowledgement) or each.to != node.id
        ]
        storage = node.storage
        if "applied" in options:
            storage.go_back(int(options["applied"]))
        if options.get("commit") == "carried":
            hard = storage.hard_state
            commit = max(storage.carried_commit, storage.base.index)
            storage.hard_state = HardState(hard.term, hard.vote, commit)
        node.replica = self._replica(node.id, storage, node.settings)

    def _report_snapshot(self, directive: Directive) -> None:
        names = directive.names
        self._node(directive).replica.snapshot_sent(int(names[1]), is_done="failed" not in names)

    def _duplicate(self, directive: Directive) -> None:
        kind = directive.options.get("type", "")
        found = [
            each
            for each in self.waiting
            if each.to == self._node(directive).id
            if not isinstance(each, Acknowledgement) and kind in ("", kind_text(each))
        ]
        self.waiting += found
        self._print(texts.lines(map(texts.message_text, found)))

    def _step(self, directive: Directive) -> None:
        options = directive.options
        term, _, index = options.get("log", "0/0").partition("/")
        message = RaftMessage(
            KINDS[directive.names[0]], int(options["to"]), int(options["from"]), int(options.get("term", 0)),
            int(index), int(term), tuple(map(_entry, directive.input.splitlines())),
            int(options.get("commit", 0)), hint=int(options.get("hint", 0)),
            is_rejected="rejected" in directive.names, is_forced="forced" in directive.names,
            context=options.get("context", "").encode(), snapshot=self._snapshot(options),
        )  # fmt: skip
        node: Node = self.nodes[message.to - 1]
        if not node.replica.step(message):
            self._print("raft: cannot step as peer not found")

    def _snapshot(self, options: dict[str, str]) -> Snapshot | None:
        """Return a snapshot of the configuration that the receiver has."""
        if "snapshot" not in options:
            return None
        term, _, index = options["snapshot"].partition("/")
        replica = self.nodes[int(options["to"]) - 1].replica
        return Snapshot(int(index), int(term), replica.configuration)


def _entry(line: str) -> Entry:
    """Return an entry that is written as `term/index text`."""
    where, _, text = line.partition(" ")
    term, _, index = where.partition("/")
    return Entry(int(term), int(index), payload=text.encode(), size=len(text))
