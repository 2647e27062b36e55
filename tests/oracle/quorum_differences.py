"""The recorded sections that Warren answers otherwise than RabbitMQ 3.10.8, by reason.

Each is played, and has to differ: one that does not any more is removed from here.
"""

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
# RabbitMQ counts the active consumer only, and activates the next one while a cancelled one holds messages;
# here a quorum queue does what a classic queue does.
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
    "time_to_live: An unacknowledged message does not expire, and one that is requeued late does.",
)
# A message enters the queue when it is on disk, and the counts for which this script waits are the same
# before.
AFTER_COMMIT = ("lengths: A message that went back to the head is dropped first.",)
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
        *REFUSED_DLX,
        *LIMIT_VALUES,
        *PLACES,
        *NEXT_CONSUMER,
        *CONDITIONAL,
        *TRANSACTION,
        *EXPIRY,
        *AFTER_COMMIT,
        *PRIORITY,
    )
)
