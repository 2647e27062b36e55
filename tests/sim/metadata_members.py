"""Members of a metadata group on disks that lose what is not synced, over links that break.

A run is a list of actions. Each is complete by itself: its numbers choose among what there is when it is
executed, so that any part of the list is a run as well, and a failure shrinks. Messages of the Raft core are
lost, repeated and reordered; proposals and refusals stay in order on a link, and are lost with it. Everything
that is sent is encoded and decoded.

After each action these hold:

- One history: all members apply the same command with the same reply at an index, or a snapshot of it.
- Once: a command that was proposed is applied once at most, and its answer is the reply of that.
- Certain: what was answered is in the history of every member that has got so far, also after a power cut.
- A barrier ends when its member has applied all that was answered anywhere before it began.
- Election safety: a term has at most one leader.

At the end everything works again: all is answered, and all members have the same metadata. What clients were
told of some names, by declaring, deleting and looking for them at any member, is linearizable.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from tests.sim.disk import SimulatedDisk
from tests.sim.metadata_commands import any_command
from tests.sim.test_journal_replay import everything

from warren.errors import AmqpError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.message_codec import (
    MessageCodec,
    decode_proposal,
    decode_refusal,
    encode_proposal,
    encode_refusal,
)
from warren.journal.proposal import Proposal
from warren.journal.recovery import recover
from warren.metadata.commands import (
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.replication.raft.change import (
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.raft_messages import RaftMessage
from warren.simulation.linearizability import ClientOperation, HistoryVerdict, check, partitioned
from warren.store.disk import CreateFile, SyncFile, WriteFile

MEMBERS = 5
KINDS = (MemberChangeKind.VOTER, MemberChangeKind.LEARNER, MemberChangeKind.REMOVED)


class Action(NamedTuple):
    """What happens, and numbers that choose where."""

    name: str
    one: int
    other: int


class Applied(NamedTuple):
    """A command in the history, and what became of it."""

    command: MetadataCommand
    context: CommandContext
    reply: Reply


class Answer:
    """A future that resumes the coroutine awaiting it in a turn of its own."""

    def __init__(self, later: Callable[[], None]) -> None:
        self._later = later
        self._done = False

    def set_result(self, result: None, /) -> None:
        self._done = True
        self._later()

    def done(self) -> bool:
        return self._done

    def __await__(self) -> Generator["Answer", None, None]:
        if not self._done:
            yield self


class Access(NamedTuple):
    """A declaration, a deletion or a look-up of a name."""

    kind: str
    name: str


class Names:
    """What becomes of one name: whether there is a queue with it."""

    def begin(self) -> bool:
        return False

    def step(self, state: bool, access: Access, /) -> tuple[bool, object]:
        if access.kind == "declare":
            return True, Outcome.EXISTING if state else Outcome.DONE
        if access.kind == "delete":
            return False, Outcome.DONE if state else Outcome.MISSING
        return state, state


class Request:
    """A coroutine of a client at one member: a proposal, or a barrier that says whether it was needed."""

    def __init__(
        self, member: "Member", command: MetadataCommand | None, access: Access | None = None
    ) -> None:
        self.member = member
        # What it does with a name of which the history is checked.
        self.access = access
        self.called = member.group.next_moment()
        self.command = command
        # Who requests it, which no other request has.
        self.user = f"op {member.group.next_request()}"
        # The highest index that had been answered anywhere as it began.
        self.answered = member.group.answered
        self.reply: Reply | None = None
        self.error: AmqpError | None = None
        self.is_over = False
        # What a barrier says.
        self.was_outdated: bool | None = None
        self._index = member.metadata.index
        member.beginning = self
        self._coroutine = self.run(member.journal)
        self.resume()

    async def run(self, journal: Journal) -> None:
        if self.command is not None:
            self.reply = await journal.propose(self.command, self.user)
            return
        self.was_outdated = await journal.is_outdated(self._index)
        assert self.was_outdated == (self.member.metadata.index > self._index)

    def resume(self) -> None:
        try:
            self._coroutine.send(None)
        except StopIteration:
            self.is_over = True
        except AmqpError as error:
            self.is_over = True
            self.error = error
        if self.is_over:
            self.member.group.ended(self)


class Recorded(Metadata):
    """Metadata whose history is compared with that of the other members."""

    __slots__ = ("on_applied",)

    def __init__(self) -> None:
        super().__init__()
        self.on_applied: Callable[[Applied], None] | None = None

    def apply(self, command: MetadataCommand, context: CommandContext) -> Reply:
        reply = super().apply(command, context)
        # What a snapshot changes has no number.
        if self.on_applied is not None and context.serial:
            self.on_applied(Applied(command, context, reply))
        return reply


class Member:
    """One node: its disk, and its run if it is up."""

    def __init__(self, number: int, group: "MetadataMembers", chance: random.Random) -> None:
        self.number = number
        self.group = group
        self.chance = chance
        self.disk = SimulatedDisk(chance)
        self.is_up = False
        self.run = 0
        self.codec = MessageCodec(None)
        self.beginning: Request | None = None
        self.turns: deque[Callable[[], None]] = deque()

    def start(self) -> None:
        self.is_up = True
        self.run += 1
        self.turns.clear()
        self.metadata = Recorded()
        # What a start applies again, or for the first time, is in the history as well.
        self.metadata.on_applied = lambda applied: self.group.applied(self, applied)
        found = recover(self.disk, self.metadata, node=self.number)
        assert (found.damage, found.loss) == ([], None), f"{self.number} {found.damage} {found.loss}"
        self.group.started(self)
        dependencies = JournalDependencies(
            now=lambda: self.group.now,
            random_bytes=self.chance.randbytes,
            make_future=self._make_future,
            report=lambda error: None,
            incarnation=Incarnation(self.number, self.run),
            others=self,
            is_joining=self.number > 1,
        )
        self.journal = Journal(self.metadata, self.disk, dependencies, found)
        self.journal.begin()

    def stop(self, *, is_power_lost: bool) -> None:
        self.is_up = False
        self.disk.fault = None
        if is_power_lost:
            self.disk.lose_power()
        else:
            self.disk.die()
        self.group.stopped(self)

    def _make_future(self) -> Answer:
        request = self.beginning
        assert request is not None
        return Answer(lambda: self.turns.append(request.resume))

    # Port `OtherMembers`.

    def send(self, messages: Sequence[RaftMessage]) -> None:
        for message in messages:
            image = b"" if message.snapshot is None else b"".join(message.snapshot.payload)  # type: ignore[arg-type]
            self.group.network.append((self.number, message.to, self.codec.encode(message), image))

    def forward(self, leader: int, proposal: Proposal) -> None:
        self.group.link(self.number, leader).append(("proposal", encode_proposal(proposal)))

    def refuse(self, proposal: Proposal, reply: Reply) -> None:
        self.group.link(self.number, proposal.incarnation.node).append(
            ("refusal", encode_refusal(proposal, reply))
        )

    # What arrives.

    def receive(self, kind: str, data: bytes, sender: int) -> None:
        if kind == "proposal":
            self.journal.take_forwarded(decode_proposal(data, sender))
        else:
            refusal = decode_refusal(data)
            self.journal.take_refusal(refusal.incarnation, refusal.serial, refusal.reply)


class MetadataMembers:
    """The members, the network, and what was applied and answered so far."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 1_000
        self.network: list[tuple[int, int, bytes, bytes]] = []
        self.links: dict[tuple[int, int], deque[tuple[str, bytes]]] = {}
        self.cut: set[tuple[int, int]] = set()
        # What was applied, by index, and of each proposal where.
        self.history: dict[int, Applied] = {}
        self.places: dict[str, int] = {}
        self.answered = 0
        self.requests: list[Request] = []
        self.leaders: dict[int, int] = {}
        self.declared = 0
        self.requested = 0
        # Calls and returns, and what was told of the names that are accessed.
        self.moment = 0
        self.accesses: list[ClientOperation[Access, object]] = []
        self.unanswered: list[Request] = []
        # Counted, so that the tests can say that it happened.
        self.counts: dict[str, int] = {}
        self.members = {number: Member(number, self, self.chance) for number in range(1, MEMBERS + 1)}
        first = self.members[1]
        first.start()
        self._settle_first(PutVhost(name="v"))
        self._settle_first(PutVhost(name="w"))
        self._settle_first(PutVhost(name="names"))
        for number in range(2, MEMBERS + 1):
            self.members[number].start()
        self.actions: dict[str, Callable[[Member, int], None]] = {
            "deliver": lambda _, other: self._deliver(other),
            "lose": lambda _, other: self._pick(other) and None,
            "repeat": lambda _, other: self._repeat(other),
            "pass": lambda member, other: self.pass_next(member.number, 1 + other % MEMBERS),
            "break": lambda member, other: self.break_link(member.number, 1 + other % MEMBERS),
            "tick": lambda member, _: member.journal.tick(),
            "write": lambda member, other: member.disk.advance((1, 2, None)[other % 3]),
            "turn": lambda member, _: self.turn(member),
            "propose": lambda member, other: self._propose(member, other),
            "barrier": lambda member, other: self._look_up(member, other),
            "access": self._access,
            "change": self._change,
            "hand over": lambda member, _: member.journal.give_up_leadership() and None,
            "cut": lambda member, other: self._cut(member.number, 1 + other % MEMBERS),
            "isolate": lambda member, _: self.isolate(member.number),
            "heal": lambda *_: self.cut.clear(),
            "crash": lambda member, other: member.stop(is_power_lost=other % 2 == 0),
            "fail": self._fail,
            "sent": lambda member, other: member.journal.snapshot_sent(
                1 + other % MEMBERS, is_done=other % 3 > 0
            ),
            "wait": lambda member, other: self._wait(member, other),
        }

    def perform(self, action: Action) -> None:
        """Perform an action, and check what must hold."""
        member = self.members[1 + action.one % MEMBERS]
        if action.name == "start":
            if not member.is_up:
                member.start()
        elif member.is_up:
            self.actions[action.name](member, action.other)
        self._observe()

    # --- the network ------------------------------------------------------------------------------

    def link(self, sender: int, to: int) -> deque[tuple[str, bytes]]:
        """What is under way from one member to another, in order."""
        return self.links.setdefault((sender, to), deque())

    def _pick(self, number: int) -> tuple[int, int, bytes, bytes] | None:
        return self.network.pop(number % len(self.network)) if self.network else None

    def _deliver(self, number: int) -> None:
        # Mostly in order, and sometimes any.
        found = self._pick(0 if number % 4 else number // 4)
        if found is not None:
            self.arrive(*found)

    def arrive(self, sender: int, to: int, data: bytes, image: bytes) -> None:
        """A message of the Raft core arrives, unless its way is cut."""
        member = self.members[to]
        if (sender, to) in self.cut or not member.is_up:
            return
        if image:
            self.counts["snapshots"] = self.counts.get("snapshots", 0) + 1
        member.journal.step(member.codec.decode(data, image))

    def _repeat(self, number: int) -> None:
        if self.network:
            self.network.append(self.network[number % len(self.network)])

    def pass_next(self, sender: int, to: int) -> None:
        """Let the next proposal or refusal arrive."""
        link = self.link(sender, to)
        if link and (sender, to) not in self.cut and self.members[to].is_up:
            self.members[to].receive(*link.popleft(), sender)

    def break_link(self, one: int, other: int) -> None:
        """Lose a link with all that is under way on it, which both ends are told."""
        for sender, to in ((one, other), (other, one)):
            self.link(sender, to).clear()
            if self.members[sender].is_up:
                self.members[sender].journal.forward_again(to)

    def _cut(self, one: int, other: int) -> None:
        self.cut |= {(one, other), (other, one)}

    def isolate(self, number: int) -> None:
        for other in self.members:
            if other != number:
                self._cut(number, other)

    # --- what clients and operators do --------------------------------------------------------------

    def _request(self, member: Member, command: MetadataCommand | None, access: Access | None = None) -> None:
        self.requests.append(Request(member, command, access))

    def _look_up(self, member: Member, number: int) -> None:
        self._request(member, None, Access("look up", f"n{number % 3}"))

    def _access(self, member: Member, number: int) -> None:
        name = f"n{number % 3}"
        if number // 3 % 2:
            declare = DeclareQueue(vhost="names", name=name, durable=number % 5 > 0)
            self._request(member, declare, Access("declare", name))
        else:
            self._request(member, DeleteQueue(vhost="names", name=name), Access("delete", name))

    def _propose(self, member: Member, number: int) -> None:
        self.declared += 1
        command: MetadataCommand
        if number % 3:
            command = DeclareQueue(vhost="v", name=f"q{self.declared}", durable=number % 2 == 0)
        else:
            command = any_command(random.Random(number))
        self._request(member, command)

    def _change(self, member: Member, number: int) -> None:
        kind = KINDS[number // MEMBERS % 3]
        # Of a member alone, a crash may lose what does not survive a restart, after it was answered.
        if len(member.journal.group.replica.configuration.members) <= 2 and kind is MemberChangeKind.REMOVED:
            return
        change = ConfigurationChange((MemberChange(kind, 1 + number % MEMBERS),))
        if member.journal.propose_change(change):
            self.counts["changes"] = self.counts.get("changes", 0) + 1

    def _fail(self, member: Member, number: int) -> None:
        member.disk.fault = ((SyncFile, WriteFile, CreateFile)[number % 3], (5, 28)[number % 2])

    def _wait(self, member: Member, number: int) -> None:
        self.now += number % 2_000
        member.journal.maintain()

    def turn(self, member: Member) -> None:
        if member.turns:
            member.turns.popleft()()

    def _settle_first(self, command: MetadataCommand) -> None:
        first = self.members[1]
        self._request(first, command)
        first.disk.advance()
        while first.turns:
            first.turns.popleft()()

    # --- what is observed -----------------------------------------------------------------------------

    def next_moment(self) -> int:
        """The time of the next call or return, which no other has."""
        self.moment += 1
        return self.moment

    def next_request(self) -> int:
        """The number of the next request."""
        self.requested += 1
        return self.requested

    def started(self, member: Member) -> None:
        """A run has begun with what was on the disk."""
        index = member.metadata.index
        member.index = index
        self.check_snapshot(member)

    def stopped(self, member: Member) -> None:
        """A run has ended: nobody waits for its answers."""
        for request in self.requests:
            if request.member is member and not request.is_over:
                request.is_over = True
                self._note_access(request, None)
        self.requests = [request for request in self.requests if not request.is_over]
        for other in self.members:
            if other != member.number:
                self.break_link(member.number, other)

    def applied(self, member: Member, applied: Applied) -> None:
        """A member has applied a command."""
        index = applied.context.index
        known = self.history.setdefault(index, applied)
        assert known == applied, f"member {member.number} has {applied} at {index}, which is {known}"
        if applied.reply.outcome is Outcome.SKIPPED:
            self.counts["skipped"] = self.counts.get("skipped", 0) + 1
        elif applied.context.user.startswith("op "):
            place = self.places.setdefault(applied.context.user, index)
            assert place == index, f"{applied.command} is applied at {place} and at {index}"

    def _note_access(self, request: Request, output: object) -> None:
        """Note what a client was told of a name; None if it was told nothing, or an error."""
        if request.access is None:
            return
        if output is None:
            self.unanswered.append(request)
        else:
            operation = ClientOperation(request.access, output, request.called, self.next_moment())
            self.accesses.append(operation)

    def ended(self, request: Request) -> None:
        """A client was answered, or told an error."""
        output: object = None
        if request.reply is not None:
            output = request.reply.outcome
        elif request.access is not None and request.access.kind == "look up" and request.error is None:
            vhost = request.member.metadata.vhost("names")
            output = vhost is not None and request.access.name in vhost.topology.queues
        self._note_access(request, output)
        if request.command is None:
            if request.error is None:
                index = request.member.metadata.index
                assert index >= request.answered, f"a barrier ends at {index} before {request.answered}"
                self.counts["barriers"] = self.counts.get("barriers", 0) + 1
            return
        if request.reply is None:
            return
        place = self.places.get(request.user)
        if place is None:
            assert request.reply.outcome is Outcome.REFUSED, f"{request.command} is answered and not applied"
            return
        assert self.history[place].reply == request.reply
        assert request.member.metadata.index >= place
        self.answered = max(self.answered, place)
        self.counts["answers"] = self.counts.get("answers", 0) + 1

    def check_snapshot(self, member: Member) -> None:
        """A member begins with, or was sent, a state."""

    def _observe(self) -> None:
        for member in self.members.values():
            if member.is_up and member.journal.group.is_leader:
                term, _ = member.journal.group.leader
                known = self.leaders.setdefault(term, member.number)
                assert known == member.number, f"two leaders in term {term}"
        self.requests = [request for request in self.requests if not request.is_over]

    # --- the end ----------------------------------------------------------------------------------------

    def leader(self) -> Member:
        """The member that leads, in the highest term of those that believe it."""
        leaders = [
            member for member in self.members.values() if member.is_up and member.journal.group.is_leader
        ]
        return max(leaders, key=lambda member: member.journal.group.leader[0])

    def check_names(self) -> None:
        """Check that what clients were told of names is linearizable.

        What they were not told of is known here: it has happened at any time after the call, or never.
        """
        end = self.next_moment()
        late = [
            ClientOperation(
                request.access, self.history[self.places[request.user]].reply.outcome, request.called, end
            )
            for request in self.unanswered
            if request.access is not None and request.user in self.places
        ]
        for name, part in partitioned([*self.accesses, *late], lambda access: access.name).items():
            found = check(part, Names())
            assert found.verdict is HistoryVerdict.LINEARIZABLE, f"{name}: {found} of {part}"

    def settle(self, rounds: int) -> bool:
        """Let everything work again; return whether all is answered, and everywhere the same."""
        self.cut.clear()
        for member in self.members.values():
            member.disk.fault = None
            if not member.is_up:
                member.start()
        for number in range(rounds):
            self.now += 100
            for member in self.members.values():
                member.journal.tick()
                if number % 10 == 0:
                    member.journal.maintain()
                    for other in self.members:
                        member.journal.snapshot_sent(other, is_done=False)
            self.drain()
            self._observe()
            if not self.requests and self._is_equal():
                return True
        return False

    def drain(self) -> None:
        """Let everything arrive and be written, as far as members are up and not cut off."""
        up = {number: member for number, member in self.members.items() if member.is_up}
        for _ in range(10):
            messages, self.network = self.network, []
            for found in messages:
                self.arrive(*found)
            for sender in self.members:
                for to in up:
                    while self.link(sender, to) and (sender, to) not in self.cut:
                        self.pass_next(sender, to)
            for member in up.values():
                member.disk.advance()
                while member.turns:
                    self.turn(member)

    def _is_equal(self) -> bool:
        leaders = [member for member in self.members.values() if member.journal.group.is_leader]
        if len(leaders) != 1:
            return False
        journal = leaders[0].journal
        voters = journal.group.replica.configuration.voters
        group = [self.members[number] for number in voters]
        if any(member.metadata.index != leaders[0].metadata.index for member in group):
            return False
        if journal.group.log.unapplied_count:
            return False
        for member in group:
            assert everything(member.metadata) == everything(leaders[0].metadata)
        return True
