"""The payloads that pass between the replicas of groups on two nodes.

    purpose  │ kind           │ body
    control, │ MESSAGES       │ version u8 │ message of the Raft core …
    data     │ PART           │ the beginning of a payload of the next kind that is not PART
    data     │ LEADERS        │ version u8 │ ( group u64 │ term u64 │ leads u8 ) …
    control  │ SLEEP          │ version u8 │ ( group u64 │ term u64 │ commit u64 ) …: its leader ticks no more
             │ WAKE           │ version u8 │ group u64 …
             │ DIGEST         │ version u8 │ hash u64 … of the groups that sleep, by their bucket: 256
             │ SLEEPING       │ version u8 │ ( bucket u8 │ count u32 │ row … ) …
    bulk     │ BEGIN          │ transfer u32 │ version u8 │ message with a snapshot
             │ PULL           │ transfer u32 │ chunks that may be sent u32 │ count u16 │ ( end u64 ) …
             │ CHUNK          │ transfer u32 │ item …, see below
             │ END            │ transfer u32
             │ RESULT         │ transfer u32 │ whether the snapshot was taken u8

    message  │ group u64 │ kind u8 │ flags u8 │ to u32 │ sender u32 │ term u64
             │ INDEX: index u64, log term u64 │ COMMIT: commit u64 │ HINT: hint u64
             │ CONTEXT: size u8, context │ ENTRIES: count u32, entry … │ SNAPSHOT: snapshot
    entry    │ term u64 │ kind u8 │ size u32, as the Raft core counts it │ size of commands u32
             │ run count u16 │ ( position u64 │ count u32 ) … │ commands │ content … in order of the runs
    snapshot │ index u64 │ term u64 │ size u32 │ configuration │ size u32 │ machine │ count u16 │ end u64 …
    content  │ flags u8 │ unless SAME_TIME: published at u48 ms │ unless SAME_PRIORITY: priority u8
             │ size u32 │ unless SAME_ADDRESS: size u16, address │ unless SAME_PROPERTIES: size u32, list
             │ body and its end; only the flags if it is ABSENT, since it was settled before it was sent
    row      │ group u64 │ term u64 │ leader u32
    item     │ position u64 │ 0 u32 │ content: a message of a snapshot
             │ position u64 │ count u32: messages that are in the snapshot, and that the receiver has

All integers are big-endian; each position and each end has its priority level in the highest byte. Entries of
a message follow its index. Address, property list and body are those of `model/message`; what is the same as
in the content before, in the same entry or chunk, is not repeated. A payload larger than a link takes at a
time passes in parts.
"""

from enum import IntEnum
from struct import Struct as Layout

VERSION = 1


class GroupPayload(IntEnum):
    """The kinds of payloads; the numbers are those on the wire, where others have none of them."""

    MESSAGES = 32
    PART = 33
    LEADERS = 34
    SLEEP = 35
    WAKE = 36
    DIGEST = 37
    SLEEPING = 38
    BEGIN = 40
    PULL = 41
    CHUNK = 42
    END = 43
    RESULT = 44


KINDS = frozenset(map(int, GroupPayload))

# Flags of a message.
IS_REJECTED, IS_FORCED, HAS_INDEX, HAS_COMMIT, HAS_HINT, HAS_CONTEXT, HAS_ENTRIES, HAS_SNAPSHOT = (
    1, 2, 4, 8, 16, 32, 64, 128
)  # fmt: skip
# Flags of a content.
ABSENT, SAME_ADDRESS, SAME_PROPERTIES, SAME_PRIORITY, SAME_TIME, HAS_DIED = 1, 2, 4, 8, 16, 32

TWO_NUMBERS = Layout(">QQ")
NUMBER = Layout(">Q")
COUNT = Layout(">I")
SHORT_COUNT = Layout(">H")
ENTRY_HEAD = Layout(">QBIIH")
RUN = Layout(">QI")
LEADER_ROW = Layout(">QQB")
SLEEP_ROW = Layout(">QQQ")
SLEEPING_HEAD = Layout(">BI")
SLEEPING_ROW = Layout(">QQI")

LEVEL_SHIFT = 56
POSITIONS = (1 << LEVEL_SHIFT) - 1
# Terms and indexes are below this, so that what follows them is a number of 64 bits as well.
NUMBER_END = 1 << 63
