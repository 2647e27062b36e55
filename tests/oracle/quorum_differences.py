"""What Warren answers otherwise than RabbitMQ 3.10.8, by reason: recorded sections, and answers over HTTP.

Each section is played, and has to differ, except AFTER_COMMIT: one that does not any more is removed from
here. What the HTTP API answers has to be exactly what is said here.
"""

from typing import Any, Final

# RabbitMQ counts a channel with an unacknowledged basic.get, and a cancelled consumer that holds messages,
# as a consumer each; here the consumers count.
COUNTS = (
    "consuming: basic.get counts the messages that remain.",
    "consuming: A consumer is cancelled and its unacknowledged messages are not requeued.",
    "dead_letters: A cycle of messages over the length ends.",
    "lengths: Unacknowledged messages do not count for the length.",
    "lengths: Requeued messages over the length are dropped at the head.",
    "publishing: A transaction acknowledges when it is committed.",
    "purging: Deleting counts the ready messages.",
    "requeue: A consumer that is cancelled keeps its messages, and a message it rejects goes back.",
)
# RabbitMQ counts the active consumer only; here all count, as with a classic queue.
SINGLE_ACTIVE = (
    "single_active_consumer: A cancelled consumer holds messages, and the next one is active at once.",
    "single_active_consumer: The messages of a closed channel go to the next active consumer in order.",
    "single_active_consumer: The prefetch of the active consumer limits although others are free.",
    "single_active_consumer: A cancelled waiting consumer.",
)
# RabbitMQ refuses consumers on a channel with a global prefetch; here it works as with a classic queue.
GLOBAL = (
    "consuming: A global prefetch is accepted, and no consumer is then.",
    "consuming: A global prefetch after the consumer.",
    "consuming: A global prefetch hinders consumers without acknowledgements, too.",
)
# RabbitMQ ignores that a consumer asks to be exclusive; here it is.
EXCLUSIVE = (
    "consuming: An exclusive consumer is not alone.",
    "consuming: A consumer may be exclusive beside another.",
    "single_active_consumer: A consumer may be exclusive beside a single active consumer.",
)
# A dead letter has the headers x-last-death-… of RabbitMQ 4 as well, as those of classic queues have here;
# and only RabbitMQ sorts the headers.
LAST_DEATH = (
    "dead_letters: A rejected message is dead-lettered with the reason rejected.",
    "dead_letters: Several rejected messages are dead-lettered in order.",
    "dead_letters: Without a routing key the dead letter keeps its own.",
    "dead_letters: A message that is dropped for the length has the reason maxlen.",
    "dead_letters: An expired message has the reason expired, and loses its expiration.",
    "dead_letters: A cycle of rejected messages goes on.",
    "dead_letters: The entries of x-death grow over two queues.",
    "dead_letters: At least once: each reason arrives.",
    "dead_letters: At least once by a policy.",
    "delivery_limit: The message over the limit is dead-lettered with the reason delivery_limit.",
    "delivery_limit: Closing channels counts for the limit.",
    "delivery_limit: A dead letter begins with a count of its own in the next quorum queue.",
)
# RabbitMQ refuses when there is one message more than the limit, and until four fifths of it are left; here
# the limit is exact, as with a classic queue.
FULL = (
    "dead_letters: A message that is refused is not dead-lettered.",
    "dead_letters: At least once: dead letters that wait keep a full queue from accepting again.",
    "lengths: reject-publish refuses when there is one message more than the limit, and until "
    "there is one less.",
    "lengths: reject-publish does not count unacknowledged messages.",
    "lengths: reject-publish without confirms drops the published message.",
    "lengths: reject-publish to another publisher, too.",
    "lengths: reject-publish by a policy.",
    "lengths: Purging a full queue lets it accept again.",
    "lengths: reject-publish accepts again when four fifths of the limit are ready.",
    "publishing: A message that one of two queues refuses is refused.",
)
# RabbitMQ tries again three minutes later; here a new binding has dead letters sent that wait for a target.
ROUTED = (
    "dead_letters: At least once: a dead letter without a target is not ready, not purged, and not tried "
    "again within seconds.",
)
# RabbitMQ drops the oldest message with reject-publish-dlx; here the new one is refused and dead-lettered.
REFUSED_DLX = ("dead_letters: Overflow reject-publish-dlx drops the oldest message.",)
# RabbitMQ accepts delivery limits of any type, and treats a negative one like 0; here it must be an
# integer, and -1 is no limit, as in RabbitMQ 4.
LIMIT_VALUES = (
    "declaring: Invalid values of arguments are refused.",
    "delivery_limit: A negative limit means one delivery too.",
    "delivery_limit: A limit that is a string does not limit, but rejected messages go to the head.",
)
# RabbitMQ returns messages to the tail, or to the head in the order of return with a delivery limit; here
# they return to their places, as in a classic queue.
PLACES = (
    "requeue: Without a delivery limit a rejected message goes to the tail.",
    "requeue: Without a delivery limit several messages of one nack keep their order at the tail.",
    "requeue: The two messages of a queue take turns when each is rejected.",
    "requeue: basic.recover requeues what the channel has.",
    "requeue: basic.recover to a consumer delivers again to it.",
    "requeue: A header x-delivery-count of the publisher is replaced, others are kept.",
    "requeue: With a delivery limit messages are delivered again in the order in which they were rejected.",
    "requeue: Messages of two consumers of a closed channel go to the head, consumer by consumer.",
    "requeue: The consumers of a closed channel requeue in the order of their tags, not of "
    "their subscriptions.",
    "requeue: Without a delivery limit messages that are rejected go to the tail in the order "
    "in which they were rejected.",
)
# RabbitMQ offers a returned message to the next consumer; here it goes to whoever is ready first in turn.
NEXT_CONSUMER = ("requeue: Another consumer gets what a consumer rejects.",)
# RabbitMQ refuses to delete a quorum queue with if-unused or if-empty; here both are obeyed.
CONDITIONAL = (
    "purging: A quorum queue is not deleted only if it is unused.",
    "purging: A quorum queue is not deleted only if it is empty.",
    "purging: A quorum queue is not deleted only if it is unused and empty.",
    "purging: A quorum queue is not deleted conditionally although it is in use.",
)
# RabbitMQ drops what a transaction publishes beyond the limit, and says that it is committed; here it is
# refused.
TRANSACTION = ("publishing: A transaction to a full queue.",)
# RabbitMQ expires messages at the head only; here they expire wherever they are.
EXPIRY = (
    "time_to_live: A message with an expiration behind one without stays until it comes to the head.",
    "time_to_live: A message with a shorter expiration behind one with a longer.",
)
# A message enters the queue when it is on disk, and the counts for which this script waits are the same
# before. Whether the answers differ depends on the disk.
AFTER_COMMIT = (
    "lengths: A message that went back to the head is dropped first.",
    "time_to_live: An unacknowledged message does not expire, and one that is requeued late does.",
)
# RabbitMQ ignores consumer priorities with a single active consumer; here the highest is active, as in
# RabbitMQ 4.
PRIORITY = ("single_active_consumer: A priority does not choose the next active consumer.",)

DIFFERENCES = frozenset(
    (
        *COUNTS,
        *SINGLE_ACTIVE,
        *GLOBAL,
        *EXCLUSIVE,
        *LAST_DEATH,
        *FULL,
        *ROUTED,
        *REFUSED_DLX,
        *LIMIT_VALUES,
        *PLACES,
        *NEXT_CONSUMER,
        *CONDITIONAL,
        *TRANSACTION,
        *EXPIRY,
        *PRIORITY,
    )
)

# --- over HTTP, by `name` of the broker, or its `answers` ---------------------------------------------------

# RabbitMQ counts a basic.get without an acknowledgement as a consumer, as in COUNTS.
CONSUMERS_OF_ONE_GET: Final = {"rabbitmq": 1, "warren": 0}
# RabbitMQ is stopped, and Warren is killed: messages below the reach, which is 64 messages or more ahead of
# deliveries, count as delivered once, since they may have been. By redelivered and x-delivery-count.
BELOW_REACH: Final = {"rabbitmq": ("false", "0l"), "warren": ("true", "1l")}
# Field by field of the queue `q`: what RabbitMQ has, and what Warren has; `...` is a field that is missing.
FIELDS: Final[dict[str, tuple[Any, Any]]] = {
    # As above; no consumer is no utilisation.
    "consumers": (1, 0),
    "consumer_capacity": (float, 0),
    "consumer_utilisation": (float, 0),
    # RabbitMQ reads the messages of a quorum queue from disk. Here they are in memory until they are paged
    # out, and are counted there.
    "message_bytes_ram": (0, 6),
    "messages_ram": (0, 3),
    # More than RabbitMQ 3.10 tells: the state of the group, what is in quarantine or delayed, and the limit.
    "commit_index": (..., int),
    "delivery_limit": (..., 3),
    "messages_delayed": (..., 0),
    "messages_quarantined": (..., 0),
    "oldest_ready_at": (..., int),
    "replicas": (..., list),
    "term": (..., int),
    # The name that RabbitMQ 4 has, beside that of 3.10.
    "single_active_consumer_tag": (..., None),
}
# And of one queue by itself, since it is asked of the consumers.
FIELDS_OF_ONE: Final[dict[str, Any]] = {"oldest_unacknowledged_at": int}
# What RabbitMQ 4.3.6 has instead. It counts the bytes of properties too, which are 2 without any, and a
# basic.get is the consumer 1.
FIELDS_OF_RABBITMQ_4: Final[dict[str, Any]] = {
    "message_bytes": 12,
    "message_bytes_persistent": 12,
    "message_bytes_ready": 8,
    "message_bytes_unacknowledged": 4,
    "single_active_consumer_ctag": ...,
    "single_active_consumer_tag": "1",
    "delayed_retry": "disabled",
    "delivery_limit": 3,
    "internal": False,
    "internal_owner": False,
    "messages_active_priorities": 1,
    "messages_by_priority": {"4": 2},
    "messages_delayed": 0,
    "messages_ready_returned": 0,
    "publishers": 0,
}
# What an entry of the list of RabbitMQ 4.3.6 does not have, although the queue alone has.
NOT_LISTED_BY_RABBITMQ_4: Final[dict[str, Any]] = {
    "garbage_collection": ...,
    "operator_policy": ...,
    "policy": ...,
}
# The fields with the tag of the single active consumer, and the bytes of a dead letter with the body `four`.
SINGLE_ACTIVE_TAGS: Final = {
    "rabbitmq": ("single_active_consumer_ctag",),
    "rabbitmq 4": ("single_active_consumer_tag",),
    "warren": ("single_active_consumer_ctag", "single_active_consumer_tag"),
}
DEAD_LETTER_BYTES: Final = {"rabbitmq": 4, "rabbitmq 4": 6, "warren": 4}
# RabbitMQ 3.10 returns what was got to the tail; here it returns to its place, as in RabbitMQ 4, which has no
# x-delivery-count at a first delivery, and does not count one that ended with basic.nack.
GOT: Final[dict[str, tuple[Any, ...]]] = {
    "rabbitmq": ([("a", False, 1, 0)], [("b", False, 1, 0), ("a", True, 0, 1)], [("b", True, 1, 1)]),
    "rabbitmq 4": ([("a", False, 1, None)], [("a", True, 1, 1), ("b", False, 0, None)], [("a", True, 1, 1)]),
    "warren": ([("a", False, 1, 0)], [("a", True, 1, 1), ("b", False, 0, 0)], [("a", True, 1, 2)]),
}
# if-unused and if-empty are obeyed, as in CONDITIONAL: the queue is deleted, and the second finds none.
OBEYED: Final[dict[str, int]] = {"q?if-unused=true": 204, "q?if-empty=true": 404}
# RabbitMQ 4 has these routes, and so has Warren.
LATER_ROUTES: Final = {"rabbitmq": 404, "rabbitmq 4": 200, "warren": 200}
# Valid in RabbitMQ 4, as in LIMIT_VALUES: policies for queues of a type, no limit, the size of a group in a
# cluster, and what is refused or dropped when a queue is full, in operator policies too.
VALID_APPLY_TO: Final = ("quorum_queues", "classic_queues")
VALID_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"delivery-limit": -1},
    {"target-group-size": 3},
    {"overflow": "reject-publish"},
)
# RabbitMQ 4 reads the field `default_queue_type`, which it shows; so does Warren.
DEFAULT_TYPE: Final = {"rabbitmq": "undefined", "rabbitmq 4": "quorum", "warren": "quorum"}
# The arguments of a queue without any that cannot have the default type of its vhost.
OTHER_TYPE: Final[dict[str, dict[str, str]]] = {
    "rabbitmq": {},
    "rabbitmq 4": {"x-queue-type": "classic"},
    "warren": {},
}
# RabbitMQ skips an entry of definitions that it cannot declare, and says that all were imported. Here nothing
# of such definitions is imported, and the answer says why.
IMPOSSIBLE_ENTRY: Final = {"rabbitmq": 204, "warren": 400}
# What RabbitMQ 4 adds to a quorum queue in definitions.
ALSO_EXPORTED: Final[dict[str, dict[str, str]]] = {
    "rabbitmq": {},
    "rabbitmq 4": {"type": "quorum"},
    "warren": {},
}
# RabbitMQ 4 does not know these keys of policies any more; here they are accepted, as in 3.10.
REFUSED_BY_RABBITMQ_4: Final = {
    "ha-mode": '[{<<"ha-mode">>,<<"all">>}] are not recognised policy settings',
    "queue-master-locator": "use of deprecated queue-master-locator argument is not permitted",
}
