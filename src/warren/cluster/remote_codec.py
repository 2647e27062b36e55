"""The payloads that pass between a node and the home of its remote queues.

    payload    │ version u8 │ generation u32 │ index u64 │ vhost string │ item …

`generation` counts the sessions of one virtual host within that of the link; `index` is that of the metadata
that the sender has applied. Integers are big-endian, a string is a size in one byte and so many bytes.

To the home:

    NAME       │ queue u64 │ name string               which queue the number is, before its first use
    PUBLISH    │ flags u8 │ message │ unless SAME_QUEUES: count u16 │ queue u64 …
    SETTLE     │ how u8 │ first delivery u64 │ count u32
    ATTACH     │ request u32 │ queue u64 │ flags u8 │ priority i64 │ tag string │ table
    START      │ consumer u32 │ prefetch u32 │ messages to u64 │ bytes to u64   behind ATTACH
    CREDIT     │ consumer u32 │ messages to u64 │ bytes to u64
    DETACH     │ request u32, 0 for no answer │ consumer u32
    GET        │ request u32 │ queue u64 │ flags u8
    ASK        │ request u32 │ queue u64 │ what u8
    TOUCH      │ queue u64                             it was declared again
    FORGET     │ queue u64                             it was deleted: the number is not used any more
    REPLY      │ flags u8 │ message                    a direct reply, whose routing key names the requester
    ASK_REPLY  │ request u32 │ name string             whether there is such a requester: ANSWER with 1 or 0

To the leader of a quorum queue, which its members have agreed on:

    ENQUEUER   │ queue u64 │ run u64 │ first number u64   what is published has numbers from here on
    RESUME     │ queue u64                             what follows takes the place of what was refused
    ATTACH_AT  │ queue u64 │ request u32 │ flags u8 │ priority i64 │ stamp u64 │ tag string
    CLAIM      │ queue u64 │ consumer u32, 0 for none │ first place u64 │ count u32
    CLAIMED    │ queue u64                             this was all that is held
    SETTLE_AT  │ queue u64 │ how u8 │ first place u64 │ count u32

From the home:

    CONFIRM    │ queue u64 │ count u32                 the next publishes to it are safe
    REFUSE     │ queue u64 │ count u32                 the next publishes to it are not
    DELIVER    │ consumer u32 │ flags u8 │ attempts u32 │ message flags u8 │ message
    GOT        │ request u32 │ left u32 │ flags u8 │ attempts u32 │ message flags u8 │ message
    ANSWER     │ request u32 │ three numbers u64
    FAILED     │ request u32 │ code u16 │ size u16 │ text
    CANCELLED  │ consumer u32
    LOST       │                                       all that the generation had is lost

From the leader:

    DELIVER_AT │ consumer or request u32 │ flags u8 │ attempts u32 │ message flags u8 │ place u64 │ message
    SETTLED    │ queue u64 │ count u32                 the next items SETTLE_AT are committed
    NOT_LEADER │ queue u64                             what was sent since ENQUEUER is of no use
    LEADING    │ queue u64                             it leads, after NOT_LEADER

    message    │ content size u32 │ unless SAME_ADDRESS: size u16 │ address │
               │ unless SAME_PROPERTIES: size u32 │ property list │ content

The table of ATTACH is one of AMQP: the arguments of basic.consume that say what is read of a stream.
Address, property list and content are those of `model/message`. What is the same as in the message before, in
the same payload, is not repeated. A consumer has the number of the request that attached it. Deliveries have
numbers, from 1 on in each generation and counted at both ends, except those that need no acknowledgement.
Those of a quorum queue have places instead, which are the same for all its members. Its leader answers GET
with DELIVER_AT and ANSWER.

STARTED is a kind of payload without a head: its body is the name of a virtual host that runs again.
"""

from struct import Struct as Layout

from warren.limits import NAME_SIZE_MAX
from warren.wire.strings import encode_text

VERSION = 1

# Kinds of payloads: a part of one, to the home, from the home.
PART, TO_HOME, FROM_HOME, STARTED = 1, 2, 3, 4

NAME, PUBLISH, SETTLE, ATTACH, START, CREDIT, DETACH, GET, ASK, TOUCH, FORGET, REPLY, ASK_REPLY = range(1, 14)
CONFIRM, REFUSE, DELIVER, GOT, ANSWER, FAILED, CANCELLED, LOST = range(32, 40)

ENQUEUER, RESUME, ATTACH_AT, CLAIM, CLAIMED, SETTLE_AT = range(14, 20)
TO_LEADER = frozenset((ENQUEUER, RESUME, ATTACH_AT, CLAIM, CLAIMED, SETTLE_AT))
DELIVER_AT, SETTLED, NOT_LEADER, LEADING = range(40, 44)
FROM_LEADER = frozenset((SETTLED, NOT_LEADER, LEADING))
# The codes of FAILED for a request that another leader has to answer, and for one about a queue of whose
# declaration its home has not heard in time. All others are reply codes.
NO_LEADER, HOME_BEHIND = 0, 1

# Flags of a message; the first two are those of both directions.
SAME_ADDRESS, SAME_PROPERTIES, SAME_QUEUES, WANTS_CONFIRM, HAS_DIED = 1, 2, 4, 8, 16
NO_ACK = 4
# Flags of ATTACH and ATTACH_AT, with NO_ACK, which GET has as well; and of a consumer that an earlier leader
# has admitted.
IS_EXCLUSIVE = 1
IS_ATTACHED_AGAIN = 8
# What is asked.
INSPECT, PURGE, COMMIT, ECHO = 1, 2, 3, 4
# How a delivery is settled that no client has seen; others are settled as in `queues/queue`.
RETURNED = 6


_HEAD = Layout(">BIQ")


class MalformedPayload(ValueError):
    """A payload is not what this version writes: the session of the link ends."""


def encode_head(generation: int, index: int, vhost: str) -> bytes:
    """The head of a payload."""
    return _HEAD.pack(VERSION, generation, index) + encode_string(vhost)


def encode_string(text: str) -> bytes:
    """`text`, which is a name, behind its size."""
    data = encode_text(text)
    assert len(data) <= NAME_SIZE_MAX, "names are bounded where they are declared"
    return bytes((len(data),)) + data
