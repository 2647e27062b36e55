"""What passes between the clients of a node and the queue that begins, or ends, to lead on this node.

begins:  what clients hold ─▶ claimed    what was settled ─▶ settled again    what was published ─▶ again
ends:    what clients hold ─▶ kept                                            what was published ─▶ kept
"""

from collections.abc import Callable
from functools import partial

from warren.cluster.publish_answers import PublishAnswers
from warren.cluster.replicated.numbered_publishes import NumberedPublish, NumberedPublishes
from warren.cluster.replicated.replicated_dependencies import ReplicatedDependencies
from warren.cluster.replicated.unsettled_places import UnsettledPlaces
from warren.limits_cluster import CLAIMS_MS_MAX
from warren.queues.leadership_listener import LeadershipListener
from warren.queues.queue import CHANNEL_ENDED, REFUSED, Queue, QueueHost
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.claimed_queue import REPEATED
from warren.queues.quorum.claims import LEASES, Claims
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_queue import QuorumQueue

_ACKNOWLEDGE = 0
_REJECT = 1


def claim_all(unsettled: UnsettledPlaces, leader: QuorumQueue) -> None:
    """Have the clients of this node go on with what they hold, and settle what was under way.

    A message that is rejected may come back as a dead letter: it waits with what is published again.
    """
    held, unsettled.held = unsettled.held, {}
    under_way = unsettled.take_under_way()
    for place, delivery in held.items():
        claimed = leader.claim(place)
        if claimed is not None:
            delivery.message = claimed.message
            delivery.attempts, delivery.failures = claimed.attempts, claimed.failures
            delivery.move(leader, claimed.position)
    for how, place in under_way:
        claimed = leader.claim(place)
        if claimed is None:
            continue
        if how == _ACKNOWLEDGE:
            leader.acknowledge(claimed)
        elif how == _REJECT:
            leader.reject(claimed)
        elif how <= CHANNEL_ENDED:
            leader.requeue(claimed, how)
        else:
            leader.give_back(claimed)


def publish_again(publishes: NumberedPublishes, leader: QuorumQueue, enqueuer: Enqueuer) -> None:
    """Publish what no leader has answered, and then answer: whoever is answered may publish, behind these."""
    repeated = refused = 0
    for number, publish in enumerate(publishes.numbered(), publishes.first):
        result = leader.publish_as(publish.message, publishes, number, enqueuer=enqueuer, number=number)
        if result & REFUSED:
            refused = number
            break
        if result & REPEATED:
            repeated = number
    publishes.forget_refused()
    if repeated:
        publishes.done(repeated, repeated)
    if refused:
        publishes.refuse_from(refused)


def keep_held(unsettled: UnsettledPlaces, ended: QuorumQueue, front: Queue, host: QueueHost) -> None:
    """Keep what the clients of this node have got from the queue that has `ended`, as from `front`."""
    for holder in list(host.holders):
        for delivery in holder.held():
            if delivery.queue is ended:
                place = ended.group_place(delivery)
                delivery.move(front, place)
                unsettled.held[place] = delivery


def keep_published(publishes: NumberedPublishes, unanswered: list[PendingBatch], enqueuer: Enqueuer) -> None:
    """Keep what `enqueuer`, which is this node, has published and is not committed."""
    for batch in unanswered:
        kept: list[NumberedPublish] = []
        first = at = 0
        for run in batch.batch.enqueued:
            if run.enqueuer == enqueuer:
                first = first or run.first
                kept += [NumberedPublish(each, None, 0) for each in batch.messages[at : at + run.count]]
            at += run.count
        if kept:
            # All of a batch are committed at once, and so they are answered.
            kept[-1].more = [
                each
                for each in batch.confirms()
                if each[0] is not publishes and not isinstance(each[0], PublishAnswers)
            ]
            publishes.add_placed(first, kept)


def await_claims(
    leader: QuorumQueue, node: int, dependencies: ReplicatedDependencies, is_wanted: Callable[[], bool]
) -> Claims:
    """What `leader`, on `node`, awaits before it delivers anything, as long as it `is_wanted`.

    Other nodes are awaited for a time. Messages of leases are never delivered to anybody else, since whoever
    was granted a lease may have read them: this node has to know first what was agreed on before.
    """
    others = dependencies.others()
    claims = Claims(leader.add_consumer, (LEASES, node, *others))
    dependencies.proposals.when_current(
        partial(_claim_leases, dependencies.leadership_listener, leader, claims), is_wanted
    )
    if others:
        dependencies.after(CLAIMS_MS_MAX, partial(claims.told, *others))
    return claims


def _claim_leases(listener: LeadershipListener, leader: QuorumQueue, claims: Claims) -> None:
    if not leader.is_down:
        listener.leadership_began(leader)
    claims.told(LEASES)
