"""The members of a quorum queue, each on a simulated disk, with a network that loses and delays messages.

Clients publish at whoever leads, and get and acknowledge there. These hold, whatever crashes:

- What was confirmed is in the queue until its acknowledgement is committed, once and in order of its confirm.
- What was acknowledged, and known as committed, never comes back.
- A second delivery says so.
- In the end all members have the same machine and the same messages, and have freed the space of all others.
"""

import random
from collections import deque

from msgspec import Struct
from tests.sim.disk import SimulatedDisk
from tests.sim.test_quorum_queue import Confirms, Port
from tests.unit.queues.samples import Host, Reader

from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.coroutine_driver import drive
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address, stored_copy
from warren.queues.queue import NACKED, Consumer, Delivery
from warren.queues.quorum.group import GroupMembership, QuorumGroup
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.quorum.raft_storage import QuorumPayload, QuorumSnapshot
from warren.replication.raft.change import ConfigurationChange, MemberChange, MemberChangeKind
from warren.replication.raft.raft_messages import Entry, RaftMessage
from warren.store.group_log import GroupLog
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

NUMBER = 7
# Steps until what is cut off has elected a leader, and all have the same.
SETTLE_STEPS = 400
IN_FLIGHT_MAX = 30
KINDS = (MemberChangeKind.VOTER, MemberChangeKind.LEARNER, MemberChangeKind.REMOVED)


class Sent(Struct):
    """A message on its way, and the messages of the queue that come with it."""

    sender: int
    message: RaftMessage
    # Of a snapshot: level, position in the group, message.
    contents: list[tuple[int, int, StoredMessage]]


class Member:
    """One replica: its disk, its store, and its queue while it runs."""

    def __init__(self, number: int, simulation: "QuorumMembers") -> None:
        self.number = number
        self.simulation = simulation
        self.disk = SimulatedDisk(simulation.chance)
        self.starts = 0
        self.readers: list[Reader] = []
        self.is_up = False

    def start(self) -> None:
        """Start with what is on the disk."""
        simulation, self.starts = self.simulation, self.starts + 1
        dependencies = RecoveryDependencies(
            random_bytes=simulation.chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        recovered = open_store(self.disk, Port(), dependencies)
        assert not recovered.damage
        self.store = recovered.store
        self.host = Host(simulation.now)
        self.confirms = Confirms()
        self.published: dict[int, int] = {}
        self.queue = QuorumQueue(
            "q", "/", self.host, simulation.settings,
            incarnation=Incarnation(self.number, self.starts),
            membership=GroupMembership(
                replica=self.number, send=self.send,
                voters=simulation.voters if self.number in simulation.voters else (),
                chance=simulation.chance.randrange,
            ),
        )  # fmt: skip
        self.queue.ended = self.ended
        transient = open_erased(SimulatedDisk(simulation.chance), Port(), simulation.chance.randbytes)
        self.queue.attach_store(Stores(self.store, transient), NUMBER)
        for level, found in recovered.queues.get(NUMBER, {}).items():
            self.queue.restore(level, found)
        self.is_up = True

    @property
    def group(self) -> QuorumGroup:
        """The replica."""
        group = self.queue.group
        assert group is not None
        return group

    @property
    def log(self) -> GroupLog:
        """Its log."""
        found = GroupLog.find(self.store, NUMBER)
        assert found is not None
        return found

    def stop(self, *, is_power_lost: bool) -> None:
        """Crash."""
        self.is_up = False
        self.note_deliveries()
        self.simulation.lost(self)
        (self.disk.lose_power if is_power_lost else self.disk.die)()

    def ended(self, queue: QuorumQueue, consumers: list[Consumer], unanswered: list[PendingBatch]) -> None:
        """Another one leads: what is unanswered may be there or not, and nothing is held any more."""
        assert queue is self.queue
        self.note_deliveries()
        self.simulation.lost(self)
        self.confirms = Confirms()
        self.published = {}
        self.queue = queue.successor()

    def send(self, number: int, messages: list[RaftMessage]) -> None:
        """Put messages on their way, with copies of what belongs to them."""
        for message in messages:
            entries = tuple(map(self._copied, message.entries))
            contents: list[tuple[int, int, StoredMessage]] = []
            if message.snapshot is not None:
                payload = message.snapshot.payload
                assert isinstance(payload, QuorumSnapshot)
                contents = self._contents(payload.ends)
            copied = RaftMessage(
                message.kind, message.to, message.sender, message.term, message.index, message.log_term,
                entries, message.commit, message.snapshot, message.is_rejected, message.hint,
                message.is_forced, message.context,
            )  # fmt: skip
            self.simulation.send(Sent(self.number, copied, contents))

    def _copied(self, entry: Entry) -> Entry:
        payload = entry.payload
        if not isinstance(payload, QuorumPayload):
            return entry
        messages = self.group.entry_messages(entry)
        copies = [None if each is None else _copy(each) for each in messages]
        return Entry(
            entry.term, entry.index, entry.kind, QuorumPayload(payload.runs, payload.commands, copies),
            size=entry.size,
        )  # fmt: skip

    def _contents(self, ends: dict[int, int]) -> list[tuple[int, int, StoredMessage]]:
        """The messages in the queue below `ends`."""
        found: list[tuple[int, int, StoredMessage]] = []
        for level, end in ends.items():
            for position, location in self.group.messages.rows(level):
                message = self.store.reader().read(location)
                assert message is not None
                if position < end:
                    found.append((level, position, _copy(message)))
        return found

    def receive(self, sent: Sent) -> None:
        """Take a message."""
        for level, position, message in sent.contents:
            if self.group.is_behind(sent.message):
                self.group.receive(_copy(message), level, position)
        message = sent.message
        entries = []
        for entry in message.entries:
            payload = entry.payload
            if isinstance(payload, QuorumPayload):
                assert payload.messages is not None
                copies = [None if each is None else _copy(each) for each in payload.messages]
                payload = QuorumPayload(payload.runs, payload.commands, copies)
            entries.append(Entry(entry.term, entry.index, entry.kind, payload, size=entry.size))
        self.group.step(
            RaftMessage(
                message.kind,
                message.to,
                message.sender,
                message.term,
                message.index,
                message.log_term,
                tuple(entries),
                message.commit,
                message.snapshot,
                message.is_rejected,
                message.hint,
                message.is_forced,
                message.context,
            )
        )

    def write(self, steps: int | None) -> None:
        """Have some steps of the disk done."""
        self.store.commit()
        self.disk.advance(steps)
        self.note_deliveries()

    def note_deliveries(self) -> None:
        """Record what consumers have got, and what was confirmed."""
        for reader in self.readers:
            for body, again in reader.got:
                self.simulation.delivered_now(int(body), again=again)
            reader.got.clear()
        for sequence in [one for one in self.published if one in self.confirms.confirmed]:
            self.simulation.confirmed.add(self.published.pop(sequence))


class QuorumMembers:
    """A group, its clients, and what is known about each message."""

    def __init__(self, seed: int, voters: int = 3, others: int = 0) -> None:
        """`others` can become members later."""
        self.chance = random.Random(seed)
        self.now = 0
        self.settings = QueueSettings(priority_max=None)
        self.voters = tuple(range(1, voters + 1))
        self.members = {number: Member(number, self) for number in range(1, voters + others + 1)}
        self.links: dict[tuple[int, int], deque[Sent]] = {}
        self.cut: set[tuple[int, int]] = set()
        self.number = 0
        # Messages: published, confirmed, delivered at some time, acknowledged, and that for certain.
        self.published: set[int] = set()
        self.confirmed: set[int] = set()
        self.delivered: set[int] = set()
        self.acknowledged: set[int] = set()
        self.gone: set[int] = set()
        self.terms: dict[int, int] = {}
        self.snapshot_count = 0
        # Snapshots that have arrived or are lost: sender and its start, receiver, and which of both.
        self.told: list[tuple[int, int, int, bool]] = []
        # What was handed out by leaders that lead no more: member and its start.
        self.stale: list[tuple[Member, int, Delivery]] = []
        for member in self.members.values():
            member.start()
            member.write(None)

    # --- what happens -----------------------------------------------------------------------------

    def leaders(self) -> list[Member]:
        """Those that lead, as far as they know, and have opened the queue."""
        return [member for member in self.running() if member.group.is_open]

    def running(self) -> list[Member]:
        """Those that run."""
        return [member for member in self.members.values() if member.is_up]

    def publish(self) -> None:
        """Publish a message at a leader."""
        leaders = self.leaders()
        if not leaders:
            return
        member = self.chance.choice(leaders)
        self.number += 1
        priority = self.chance.choice([0, 0, 0, 3])
        properties = BasicProperties(delivery_mode=2, priority=priority)
        body = b"%d" % self.number + BODY_END
        message = StoredMessage(encode_address("", "q"), properties.encode_list(), body, 0)
        message.flags, message.priority = PERSISTENT, priority
        self.published.add(self.number)
        sequence = len(member.published) + len(member.confirms.expected) + 1
        while sequence in member.confirms.expected:
            sequence += 1
        member.published[sequence] = self.number
        member.queue.publish(message, member.confirms, sequence)

    def consume(self) -> None:
        """Add or cancel a consumer of a leader."""
        for member in self.leaders()[:1]:
            if member.readers:
                reader = member.readers.pop()
                member.queue.remove_consumer(reader)
                member.note_deliveries()
                for delivery in reader.unsettled:
                    member.queue.requeue(delivery)
                member.queue.pump()
            else:
                member.readers.append(Reader(prefetch=self.chance.randrange(1, 5)))
                member.queue.add_consumer(member.readers[-1])
            member.note_deliveries()

    def settle(self) -> None:
        """Acknowledge or return a delivery."""
        for member in self.leaders():
            for reader in member.readers:
                if reader.unsettled:
                    delivery = reader.unsettled.pop(self.chance.randrange(len(reader.unsettled)))
                    if self.chance.random() < 0.2:
                        member.queue.requeue(delivery, NACKED)
                    else:
                        self._acknowledge(member, delivery)
                    member.queue.unpark(reader)
                    member.queue.pump()
                    member.note_deliveries()

    def _acknowledge(self, member: Member, delivery: Delivery) -> None:
        number = int(delivery.message.body)
        self.acknowledged.add(number)
        member.queue.acknowledge(delivery)

        async def wait() -> None:
            try:
                await member.queue.committed()
            except Exception:
                return
            self.gone.add(number)

        drive(wait())

    def send(self, sent: Sent) -> None:
        """Put a message on its way."""
        pair = sent.sender, sent.message.to
        self.snapshot_count += sent.message.snapshot is not None
        waiting = self.links.setdefault(pair, deque())
        waiting.append(sent)
        if len(waiting) > IN_FLIGHT_MAX:
            self._drop(waiting.popleft())

    def deliver(self) -> None:
        """Deliver the next message of some link, or lose it if that is cut."""
        self._tell()
        pairs = [pair for pair, waiting in self.links.items() if waiting]
        if not pairs:
            return
        pair = self.chance.choice(pairs)
        sent = self.links[pair].popleft()
        member = self.members[pair[1]]
        if pair in self.cut or not member.is_up or not self.members[pair[0]].is_up:
            self._drop(sent)
            return
        member.receive(sent)
        member.note_deliveries()
        if sent.message.snapshot is not None:
            self._told(sent, is_done=True)

    def _drop(self, sent: Sent) -> None:
        if sent.message.snapshot is not None:
            self._told(sent, is_done=False)

    def _told(self, sent: Sent, *, is_done: bool) -> None:
        """Tell the sender of a snapshot what has become of it, in a later step."""
        self.told.append((sent.sender, self.members[sent.sender].starts, sent.message.to, is_done))

    def _tell(self) -> None:
        while self.told:
            number, starts, to, is_done = self.told.pop()
            member = self.members[number]
            if member.is_up and member.starts == starts:
                member.group.snapshot_sent(to, is_done=is_done)

    def lose(self) -> None:
        """Lose the next message of some link."""
        pairs = [pair for pair, waiting in self.links.items() if waiting]
        if pairs:
            self._drop(self.links[self.chance.choice(pairs)].popleft())

    def tick(self) -> None:
        """Let time pass at one member."""
        running = self.running()
        if running:
            self.chance.choice(running).group.tick()

    def write(self) -> None:
        """Have one member write."""
        running = self.running()
        if running:
            self.chance.choice(running).write(self.chance.choice([1, 2, None]))

    def crash(self) -> None:
        """Crash a member; a majority may be down for a while."""
        running = self.running()
        if running:
            self.chance.choice(running).stop(is_power_lost=self.chance.random() < 0.5)

    def start(self) -> None:
        """Start a member that is down."""
        down = [member for member in self.members.values() if not member.is_up]
        if down:
            self._start(self.chance.choice(down))

    def isolate(self) -> None:
        """Cut a member off, or one direction of a link."""
        numbers = list(self.members)
        number = self.chance.choice(numbers)
        others = [other for other in numbers if other != number]
        if self.chance.random() < 0.5:
            self.cut |= {(number, other) for other in others} | {(other, number) for other in others}
        else:
            self.cut.add((number, self.chance.choice(others)))

    def heal(self) -> None:
        """End all cuts."""
        self.cut.clear()

    def hand_over(self) -> None:
        """Have a leader hand over."""
        for member in self.leaders():
            member.group.driver.hand_over()
            member.group.driver.flush()

    def change(self) -> None:
        """Have a leader add, promote or remove a member."""
        for member in self.leaders():
            kind = self.chance.choice(KINDS)
            replica = self.chance.choice(list(self.members))
            member.group.propose_change(ConfigurationChange((MemberChange(kind, replica),)))

    # --- what is known ------------------------------------------------------------------------------

    def delivered_now(self, number: int, *, again: bool) -> None:
        """Message `number` was delivered."""
        assert number in self.published
        assert number not in self.gone, f"message {number} comes back after its acknowledgement"
        assert again or number not in self.delivered, f"message {number} does not say that it comes again"
        self.delivered.add(number)

    def lost(self, member: Member) -> None:
        """What consumers of `member` had is not theirs any more, though they may settle it."""
        for reader in member.readers:
            self.stale += [(member, member.starts, delivery) for delivery in reader.unsettled]
        member.readers.clear()

    def settle_stale(self) -> None:
        """Settle what a former leader has handed out, which has no effect."""
        if self.stale:
            member, starts, delivery = self.stale.pop(self.chance.randrange(len(self.stale)))
            if member.is_up and member.starts == starts:
                settle = self.chance.choice([delivery.queue.acknowledge, delivery.queue.requeue])
                settle(delivery)
                delivery.queue.pump()

    def check_terms(self) -> None:
        """No term has two leaders."""
        for member in self.running():
            replica = member.group.driver.replica
            if replica.leads():
                term = replica.hard_state.term
                assert self.terms.setdefault(term, member.number) == member.number

    def pass_turn(self) -> None:
        """Have all members write, and deliver all messages."""
        for member in self.running():
            member.write(None)
        while any(self.links.values()):
            self.deliver()

    # --- the end --------------------------------------------------------------------------------------

    def settle_all(self) -> Member:
        """Heal everything, and return the leader when all have the same."""
        self.cut.clear()
        for member in self.members.values():
            if not member.is_up:
                self._start(member)
        for step in range(SETTLE_STEPS):
            for member in self.members.values():
                if step % 2:
                    member.group.tick()
                member.write(None)
            while any(self.links.values()):
                self.deliver()
                self.check_terms()
            leaders = self.leaders()
            if len(leaders) == 1 and self._is_quiet(leaders[0]):
                return leaders[0]
        raise AssertionError("the members do not agree again")

    def _members_of(self, leader: Member) -> list[Member]:
        return [self.members[number] for number in leader.group.driver.replica.configuration.members]

    def _is_quiet(self, leader: Member) -> bool:
        members = self._members_of(leader)
        applied = {member.group.driver.applied for member in members}
        last = {member.group.driver.replica.log.last_index() for member in members}
        is_idle = all(
            member.store.is_idle and not member.disk.is_busy and member.group.proposals.is_idle
            for member in members
        )
        return is_idle and len(applied) == 1 and applied == last

    def _start(self, member: Member) -> None:
        for pair in self.links:
            if member.number in pair:
                while self.links[pair]:
                    self._drop(self.links[pair].popleft())
        member.start()

    def bodies(self, member: Member) -> dict[tuple[int, int], bytes]:
        """The messages of a member, by level and position in the group."""
        found = {}
        for level in member.group.levels():
            for position, location in member.group.messages.rows(level):
                message = member.store.reader().read(location)
                assert message is not None
                found[level, position] = message.body
        return found

    def check_end(self) -> None:
        """All members have the same, and nothing that was confirmed is missing."""
        leader = self.settle_all()
        members = self._members_of(leader)
        machines = {member.group.machine.encode() for member in members}
        assert len(machines) == 1
        bodies = [self.bodies(member) for member in members]
        assert all(each == bodies[0] for each in bodies)
        for member in members:
            count = sum(segment.live for segment in member.store.segments.values())
            assert count == len(bodies[0]), f"member {member.number} has {count}, not {len(bodies[0])}"
            for level in member.group.levels():
                found = member.group.found(level)
                size = sum(len(body) for (at, _), body in bodies[0].items() if at == level)
                assert found.byte_count == size, f"member {member.number}: {found.byte_count}, not {size}"
        there = [int(body) for body in bodies[0].values()]
        assert len(set(there)) == len(there), "a message is there twice"
        missing = self.confirmed - set(there) - self.acknowledged
        assert not missing, f"confirmed, and lost: {sorted(missing)}"
        assert not self.gone & set(there)
        held = {int(each.message.body) for reader in leader.readers for each in reader.unsettled}
        ready = [int(peeked.message.body) for peeked in leader.queue.peek(0, len(there) + 1)]
        assert sorted(ready + list(held)) == sorted(there)


def _copy(message: StoredMessage) -> StoredMessage:
    copied = stored_copy(message, PERSISTENT)
    copied.priority = message.priority
    return copied
