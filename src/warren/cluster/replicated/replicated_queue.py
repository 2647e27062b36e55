"""A quorum queue as every node of a cluster has it: in front of the queue of its leader, wherever that is.

    this node leads:      channel ─▶ ReplicatedQueue ─▶ QuorumQueue
    another node leads:   channel ─▶ ReplicatedQueue ─▶ LeaderTraffic ═ link ═▶ ServedQueue ─▶ QuorumQueue
    nobody leads:         publishes and settlements are kept, methods wait

Channels do not notice that the leader changes: their consumers remain, what they hold can be settled, and
what they have published is answered once, by the leader that has it.

Invariants: what is not answered is in `publishes`, or was published to the queue that leads here. What is
held is in `unsettled`, or is a delivery of the queue that leads here.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from warren.cluster.home_request import HomeAnswer, HomeRequest
from warren.cluster.remote_codec import ASK, COMMIT, INSPECT, PURGE
from warren.cluster.replicated.leader_absence import LeaderAbsence
from warren.cluster.replicated.leader_change import (
    await_claims,
    claim_all,
    keep_held,
    keep_published,
    publish_again,
)
from warren.cluster.replicated.leader_traffic import LeaderTraffic
from warren.cluster.replicated.led_queue import LedQueue
from warren.cluster.replicated.replicated_dependencies import ReplicatedDependencies
from warren.cluster.replicated.served_nodes import ServedNodes
from warren.cluster.request_errors import unavailable
from warren.errors import HomeDown, InternalError, NotFound, NotLeading
from warren.flow.credit import PublishCredit
from warren.limits_cluster import (
    LEADER_ABSENCE_MS_MAX,
    LEADER_TRANSFER_MS_MAX,
    REMOTE_HELD_SIZE_MAX,
    REPLICATED_UNANSWERED_SIZE_MAX,
)
from warren.metadata.commands import LeadQueue
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import ACCEPTED, BEHIND, NACKED, REFUSED, UNAVAILABLE, Consumer, Delivery
from warren.queues.queue_counts import QueueCounts
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.claimed_queue import ClaimedQueue
from warren.queues.quorum.claims import Claims
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.queues.vhost_queue import VhostQueue
from warren.store.recovered_queue import RecoveredQueue
from warren.vhost.vhost import VirtualHost

_ACKNOWLEDGE = 0
_REJECT = 1
_ACCEPTED = ACCEPTED
_BEHIND = BEHIND
_REFUSED_AS_AWAY = REFUSED | UNAVAILABLE
_HELD_SIZE_MAX = REMOTE_HELD_SIZE_MAX
_UNANSWERED_SIZE_MAX = REPLICATED_UNANSWERED_SIZE_MAX
Value = TypeVar("Value")


class ReplicatedQueue(LedQueue):
    """A quorum queue whose leader may be any node."""

    __slots__ = (
        "_absence", "_after", "_changes", "_credit", "_dependencies", "_enqueuer", "_is_gone", "_number",
        "_served_nodes", "_term", "_traffic",
    )  # fmt: skip

    def __init__(
        self,
        record: QueueRecord,
        vhost: VirtualHost,
        settings: QueueSettings,
        dependencies: ReplicatedDependencies,
    ) -> None:
        super().__init__(record.name, vhost, settings, dependencies.local)
        self._dependencies = dependencies
        self._after = dependencies.after
        self._number = record.number
        # The term in which this node leads; 0 while it does not, or while there is no other member.
        self._term = 0
        run = dependencies.incarnation
        self._enqueuer = Enqueuer(run.node, run.number)
        self._traffic = LeaderTraffic(self, self, name=record.name, number=record.number, run=run.number)
        self._absence = LeaderAbsence(vhost.turn, dependencies.after)
        # What publishers wait for that have published too much.
        self._credit = PublishCredit(dependencies.later)
        # True if nobody will ever lead: the only member, or half of the first ones, are gone for good.
        self._is_gone = False
        # How often the leader has changed.
        self._changes = 0
        self._served_nodes = ServedNodes(self, dependencies)

    def begin(self, *, is_new: bool) -> None:
        """Begin with the replica on this node, if there is one; `is_new` if it never had one before."""
        self._local.replaced = self._use_replica
        self._local.begin(is_new=is_new)
        self._use_replica()
        self._dependencies.leaders.listen(self._number, self.leader_came)
        self.leader_came()

    # --- for each message -----------------------------------------------------------------------------

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Publish `message` to the leader, or keep it for the next one: ACCEPTED, perhaps with BEHIND.

        REFUSED if this node leads, and the queue is full; with UNAVAILABLE if nobody will ever lead.
        """
        leader = self._leader
        if leader is not None:
            return leader.publish(message, confirmation, sequence)
        if self.is_deleted:
            return _ACCEPTED
        if self._is_gone:
            return _REFUSED_AS_AWAY
        traffic = self._traffic
        traffic.publishes.add(message, confirmation, sequence)
        result = traffic.send(message)
        if traffic.publishes.byte_count >= self._held_max():
            if not self._credit.is_spent:
                self._credit.spend()
            self._host.behind = self._credit
            return result | _BEHIND
        return result

    def acknowledge(self, delivery: Delivery) -> None:
        """Settle `delivery`, which another node has delivered."""
        self._settle(delivery, _ACKNOWLEDGE)

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery`, which another node has delivered, to its place for `reason`."""
        self._settle(delivery, reason)

    def reject(self, delivery: Delivery) -> None:
        """Dead-letter or drop `delivery`, which another node has delivered and which was rejected."""
        self._settle(delivery, _REJECT)

    def consumer_ready(self, consumer: Consumer) -> None:
        """Unpark `consumer`, which can take messages again."""
        leader = self._leader
        if leader is not None:
            leader.consumer_ready(consumer)
        else:
            self.unpark(consumer)

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`; `pump` delivers ready messages."""
        leader = self._leader
        if leader is not None:
            leader.unpark(consumer)
        else:
            consumer.is_parked = False
            self._traffic.unpark(consumer)

    def outgoing(self, delivery: Delivery) -> Message:
        """The message of `delivery` as it is sent to a client, if it was fetched or delivered before."""
        return delivery.message if delivery.queue is self else delivery.queue.outgoing(delivery)

    # --- for each method ------------------------------------------------------------------------------

    async def inspect(self) -> QueueCounts:
        """The numbers of its messages and of its consumers."""
        return await self._led(self._inspect, "waiting for")

    async def _inspect(self) -> QueueCounts:
        if self._leader is not None:
            return await self._leader.inspect()
        ready, consumers, delayed = await self._ask(INSPECT)
        self._counts = QueueCounts(ready, consumers, delayed)
        return self._counts

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it; None if there is
        none.

        With `no_ack` it is settled when it has arrived.
        """
        return await self._led(partial(self._fetch, no_ack), "waiting for")

    async def _fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        if self._leader is not None:
            return await self._leader.fetch(no_ack)
        answer = await self._answer(self._traffic.fetch(no_ack))
        delivery, left = answer[:2]
        if not isinstance(delivery, Delivery):
            return None
        if no_ack:
            self._settle(delivery, _ACKNOWLEDGE)
        return delivery, left

    async def purge(self) -> int:
        """Drop the ready messages; returns their number."""
        return await self._led(self._purge, "waiting for")

    async def _purge(self) -> int:
        if self._leader is not None:
            return await self._leader.purge()
        return (await self._ask(PURGE))[0]

    async def committed(self) -> None:
        """Wait until the leader has committed what was done with its messages before."""
        await self._led(self._commit, "waiting for")

    async def _commit(self) -> None:
        if self._leader is not None:
            await self._leader.committed()
        else:
            await self._ask(COMMIT)

    async def transfer(self, node: int) -> bool:
        """Have the replica on `node` lead, by way of the replica here; False if it does not in time."""
        record, group = self._local.record, None if self._replica is None else self._replica.group
        replica = record.replica_on(node)
        until = self._host.turn.now() + LEADER_TRANSFER_MS_MAX
        if replica and group is not None:
            while self._dependencies.leaders.leader_of(record) != node:
                group.retire(replica)
                try:
                    await self._absence.change(until, self._timed_out("moving the leader of"))
                except InternalError:
                    break
        return self._dependencies.leaders.leader_of(record) == node

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added; otherwise it has its place at the leader."""
        traffic = self._traffic
        traffic.stamps.pop(consumer, None)
        stamp = traffic.new_stamp(self._host.turn.now(), self._enqueuer.node)
        await self._led(partial(self._admit, consumer, stamp), "consuming from")

    async def _admit(self, consumer: Consumer, stamp: int) -> None:
        traffic = self._traffic
        if self._leader is not None:
            await self._leader.admit(consumer)
            traffic.stamps[consumer] = stamp
            return
        request = traffic.attach(consumer, stamp)
        is_admitted = False
        try:
            await self._answer(request)
            is_admitted = True
        finally:
            if is_admitted:
                traffic.stamps[consumer] = stamp
            else:
                traffic.detach(consumer)

    def add_consumer(self, consumer: Consumer) -> None:
        """Let `consumer` get messages, which was admitted in this turn."""
        if self._leader is not None:
            self._leader.add_consumer(consumer)
        else:
            self._traffic.start(consumer)

    async def end_deliveries(self, consumer: Consumer) -> None:
        """Deliver nothing more to `consumer`, which is removed next; what was sent to it has arrived then."""
        if self._leader is not None:
            await self._leader.end_deliveries(consumer)
            return
        request = self._traffic.end_deliveries(consumer)
        if request is not None:
            try:
                await self._answer(request)
            except (NotFound, NotLeading):
                # The session or the queue has ended; what the leader has sent does not come any more.
                return
            self._traffic.drop(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`; its unacknowledged messages stay with its channel."""
        if self._leader is not None:
            self._traffic.stamps.pop(consumer, None)
            self._leader.remove_consumer(consumer)
        else:
            self._traffic.detach(consumer)

    # --- what the metadata say ------------------------------------------------------------------------

    def touch(self) -> None:
        """Restart the timer of x-expires, since the queue was declared again."""
        if self._leader is not None:
            self._leader.touch()
        else:
            self._traffic.tell_touched()

    def members_changed(self, record: QueueRecord) -> None:
        """Follow the record, which says other members, or another leader."""
        self._local.changed(record)
        if self._leader is not None and record.members and not self._term:
            # It has other members now.
            self._announce(self._leader)
        if self._replica is not None:
            self._begin_to_lead(self._replica)
        self.leader_came()

    def left(self, found: Mapping[int, RecoveredQueue]) -> None:
        """Release what the store of this node has `found` of a replica that is not here any more."""
        self._local.leave(found)

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready messages, as far as this node knows.
        """
        self.is_deleted = True
        consumers = list(self._traffic.stamps)
        self._traffic.stamps.clear()
        count = 0 if self._replica is None else self._replica.delete()
        self._end(NotFound(f"no queue '{self.name}' in vhost '{self.vhost_name}'"))
        for consumer in consumers:
            consumer.cancelled()
        self._traffic.publishes.complete()
        self._renew_credit()
        return count

    def end(self) -> None:
        """The virtual host has ended on this node, and with it all channels."""
        if not self.is_deleted:
            self._end(NotLeading("the virtual host has ended"))

    # --- what is known here ---------------------------------------------------------------------------

    @property
    def traffic(self) -> LeaderTraffic:
        """What is under way to a leader on another node, for reading."""
        return self._traffic

    @property
    def replica(self) -> QuorumQueue | None:
        """The queue of the replica on this node, which leads or may lead next; None if there is none."""
        return self._replica

    def replica_here(self) -> VhostQueue:
        """The queue of the replica on this node, whoever leads; itself if there is none."""
        return self if self._replica is None else self._replica

    def led_here(self) -> VhostQueue:
        """The queue of the replica on this node if it leads, or may lead next; else itself."""
        replica = self._replica
        if replica is None or self._leads_elsewhere():
            return self
        return replica

    def consumers(self) -> Iterator[Consumer]:
        """The consumers that this node knows, oldest first."""
        return iter(list(self._traffic.stamps)) if self._leader is None else self._leader.consumers()

    # --- what other nodes do with the queue that leads here ---------------------------------------------

    @property
    def served_nodes(self) -> ServedNodes:
        """The other nodes that use the queue while it leads here."""
        return self._served_nodes

    def node_ended(self, node: int) -> None:
        """The run of `node` has ended: its consumers have failed, and it claims nothing."""
        self._served_nodes.node_ended(node)

    # --- what the leader does -------------------------------------------------------------------------

    def leader_came(self) -> None:
        """Another node may lead now, or this one."""
        if self.is_deleted or self._leader is not None:
            return
        traffic = self._traffic
        record, dependencies = self._local.record, self._dependencies
        if record.never_begins or not any(dependencies.is_member(each.node) for each in record.replicas):
            self._lose()
            return
        node = dependencies.leaders.leader_of(record)
        if not node or node == self._enqueuer.node:
            traffic.follow(None)
            if node and self._replica is not None and self._replica.is_down:
                # It refuses what is published, and says why.
                self._begin_to_lead(self._replica)
            return
        home = dependencies.home_of(node)
        self._local.ask_for_another()
        if traffic.is_connected and traffic.follows(home):
            return
        traffic.follow(home)
        if traffic.is_reachable:
            traffic.connect()
            self._changed()
            self._renew_credit()

    def check_reachable(self) -> None:
        """HomeDown if nobody will ever lead."""
        if self._is_gone:
            home = self._dependencies.home_of(self._local.record.home)
            raise unavailable(self._traffic, home.node_name, self.vhost_name)

    def leader_went(self) -> None:
        """The session with the leader is lost, or it leads no more."""
        self._changes += 1

    def answers_came(self) -> None:
        """Publishes were answered."""
        if self._credit.is_spent and self._traffic.publishes.byte_count < self._held_max() >> 1:
            self._credit.renew()

    # --- private --------------------------------------------------------------------------------------

    def _settle(self, delivery: Delivery, how: int) -> None:
        """Settle `delivery`, unless its leader does not have it any more."""
        unsettled, place = self._traffic.unsettled, delivery.position
        if unsettled.held.get(place) is delivery:
            del unsettled.held[place]
            self._traffic.settle(how, place)

    def _held_max(self) -> int:
        return _UNANSWERED_SIZE_MAX if self._traffic.is_connected else _HELD_SIZE_MAX

    def _renew_credit(self) -> None:
        if self._credit.is_spent:
            self._credit.renew()

    def _use_replica(self) -> None:
        """Use the queue of the replica that is here now."""
        replica = self._replica = self._local.queue
        if replica is not None:
            replica.make_claims = self._began
            replica.ended = self._ended
            if replica.settings != self.settings:
                replica.apply_settings(self.settings)
            if self._is_paused:
                replica.pause()

    def _leads_elsewhere(self) -> bool:
        return self._dependencies.leaders.leader_of(self._local.record) not in (0, self._enqueuer.node)

    def _changed(self) -> None:
        self._changes += 1
        self._dependencies.later(lambda _: self._absence.changed())

    async def _led(self, ask: Callable[[], Awaitable[Value]], what: str) -> Value:
        """What the leader answers to `ask`, or the next one; InternalError if there is none for too long."""
        until = self._host.turn.now() + LEADER_ABSENCE_MS_MAX
        while True:
            self._check_exists()
            while self._leader is None and not self._traffic.is_connected:
                self._check_exists()
                await self._absence.change(until, self._timed_out(what))
            self._check_exists()
            changes, leader = self._changes, self._leader
            try:
                return await ask()
            except (HomeDown, NotLeading):
                pass
            except InternalError:
                if leader is None or leader.is_restored or leader.is_down:
                    raise
            if changes == self._changes:
                await self._absence.change(until, self._timed_out(what))

    def _lose(self) -> None:
        """Nobody will ever lead: nobody answers, and nothing can be settled."""
        traffic = self._traffic
        if self._is_gone:
            return
        self._is_gone = True
        traffic.follow(None)
        traffic.publishes.refuse_all()
        traffic.unsettled.clear()
        consumers = list(traffic.stamps)
        traffic.stamps.clear()
        for consumer in consumers:
            consumer.cancelled()
        self._changed()
        self._renew_credit()

    def _check_exists(self) -> None:
        self.check_reachable()
        if self.is_deleted:
            raise NotFound(f"no queue '{self.name}' in vhost '{self.vhost_name}'")

    def _timed_out(self, what: str) -> str:
        return f"timed out {what} quorum queue '{self.name}' in vhost '{self.vhost_name}'"

    async def _ask(self, what: int) -> tuple[int, int, int]:
        answer = await self._answer(self._traffic.request(ASK, what))
        assert len(answer) == 3
        return answer

    async def _answer(self, request: HomeRequest) -> HomeAnswer:
        """The answer to `request`, which is withdrawn if nobody waits for it any more."""
        self._absence.bound(
            request, self._host.turn.now() + LEADER_ABSENCE_MS_MAX, self._timed_out("waiting for")
        )
        try:
            return await request
        except InternalError:
            # If nobody has answered in time, somebody may do that yet.
            self._traffic.withdraw(request)
            raise
        finally:
            if not request.is_done:
                self._traffic.withdraw(request)

    def _end(self, error: Exception) -> None:
        """Forget everything that is under way."""
        self._served_nodes.end()
        self._leader = None
        self._dependencies.ended()
        self._dependencies.reconciler.leadership_ended(self._number)
        self._local.end()
        self._traffic.end()
        self._traffic.unsettled.clear()
        self._dependencies.leaders.forget(self.vhost_name, self._local.record)
        self._dependencies.later(lambda _: self._absence.end(error))

    # --- this node leads --------------------------------------------------------------------------------

    def _began(self, replica: ClaimedQueue) -> Claims:
        """The replica on this node begins to lead, or was recovered, and delivers nothing yet."""
        assert isinstance(replica, QuorumQueue)
        self._replica, self._leader = replica, None
        self._traffic.follow(None)
        dependencies, node = self._dependencies, self._enqueuer.node
        dependencies.later(lambda _: self._begin_to_lead(replica))
        return await_claims(replica, node, dependencies, lambda: self._replica is replica)

    def _begin_to_lead(self, leader: QuorumQueue) -> None:
        """Pass everything to `leader` from now on, which is on this node."""
        if self.is_deleted or self._leader is not None or leader is not self._replica:
            return
        if not leader.is_restored and not leader.is_down:
            return
        if not self._announce(leader):
            return
        if self._is_paused:
            leader.pause()
        if not leader.is_down:
            claim_all(self._traffic.unsettled, leader)
        self._leader = leader
        if not leader.is_down:
            publish_again(self._traffic.publishes, leader, self._enqueuer)
            for consumer, stamp in self._traffic.stamps.items():
                leader.claims.attach(consumer, stamp)
            leader.claims.told(self._enqueuer.node)
        self._renew_credit()
        self._changed()
        self._served_nodes.began(leader)

    def _announce(self, leader: QuorumQueue) -> bool:
        """Tell all nodes that this one leads; False if it is not agreed on yet that the group has begun.

        Nothing is accepted before that: a member without data could be taken for a new one.
        """
        group, record = leader.group, self._local.record
        if group is None:
            return True
        dependencies, number = self._dependencies, self._number
        if record.members:
            self._tell_home()
            if record.initial_replicas:
                return False
            self._term = group.driver.replica.hard_state.term
            dependencies.leaders.opened(number, self._term)
        dependencies.led[number] = group
        dependencies.reconciler.leadership_began(number, self.vhost_name, self.name)
        return True

    def _tell_home(self) -> None:
        """Have the metadata say that this node leads, unless they do."""
        record, node = self._local.record, self._enqueuer.node
        if record.home == node and not record.initial_replicas:
            return
        self._dependencies.proposals.propose(
            f"have node {node} be the home of queue '{self.name}' in vhost '{self.vhost_name}'",
            LeadQueue(vhost=self.vhost_name, queue=self.name, number=self._number, node=node),
            lambda: self._replica is not None and self._replica.is_restored,
        )

    def _ended(self, replica: QuorumQueue, consumers: list[Consumer], unanswered: list[PendingBatch]) -> None:
        """The replica on this node leads no more: keep everything for the next leader."""
        is_known = self._leader is replica
        self._leader = None
        self._dependencies.led.pop(self._number, None)
        self._dependencies.reconciler.leadership_ended(self._number)
        if self._term:
            self._dependencies.leaders.resigned(self._number, self._term)
            self._term = 0
        if is_known:
            keep_held(self._traffic.unsettled, replica, self, self._host)
            keep_published(self._traffic.publishes, unanswered, self._enqueuer)
            self._traffic.publishes.continue_behind(replica.last_number(self._enqueuer))
        self._served_nodes.stopped()
        self._dependencies.leadership_listener.leadership_ended(replica)
        self._local.stopped_leading(replica.successor())
        self._use_replica()
        self._changes += 1
        self._dependencies.later(lambda _: self.leader_came())
