"""One file of a store: a head, then records until it is sealed or the log ends in it.

    file  │ "WRNSEG" │ version u16 │ number u32 │ salt, 8 octets │ checksum u32 │ records … │

Its name is its number, `00000012.segment`; numbers only grow. A file is made whole, all zero, and is used
again for another segment when nothing in it is needed any more (`spare-00000003`). The salt is random, and
goes into the checksum of each record: nothing that a client publishes can pass for a record.
"""

from google_crc32c import value as checksum_of

from warren.limits import SEGMENT_SIZE
from warren.store.cursor import QueueCursor
from warren.store.position_set import PositionSet
from warren.store.record import DEATHS_SINCE, VERSION, checksum_seed
from warren.store.relocation_map import RelocationMap

MAGIC = b"WRNSEG"
HEAD_SIZE = 24
SALT_SIZE = 8
_SALT_AT = 12
_CHECKSUM_AT = 20
SUFFIX = ".segment"
SPARE_PREFIX = "spare-"
# No number of a segment is longer: the head of a file has room for 32 bits.
_DIGITS_MAX = 10
# Records are larger than this, shifted: each has a slot of its own.
_SLOT_SHIFT = 5


class StoreFileError(Exception):
    """A file of the store cannot be used: which one, where, and why."""

    def __init__(
        self,
        name: str,
        at: int,
        reason: str,
        *,
        messages: int | None = None,
        queues: tuple[int, ...] = (),
    ) -> None:
        super().__init__(f"{name}, octet {at}: {reason}")
        self.name = name
        self.at = at
        self.reason = reason
        # How many messages are lost by it at most, and of which queues by number, as far as that is known.
        self.messages = messages
        self.queues = queues


class NewerFormatError(StoreFileError):
    """A newer version of Warren has written the file."""


class Segment:
    """What is known of one segment while the store is open."""

    __slots__ = (
        "capacity", "count", "cursors", "gone", "home", "is_retired", "is_retiring", "is_sealed",
        "knows_deaths", "live", "live_octets", "moved", "name", "number", "octets", "queues", "seed", "size",
    )  # fmt: skip

    def __init__(self, number: int, capacity: int = SEGMENT_SIZE, *, is_erased: bool = False) -> None:
        self.number = number
        # The name of its file.
        self.name = segment_name(number)
        # Octets of its file, and how many of them are used.
        self.capacity = capacity
        self.size = HEAD_SIZE
        # How many messages were written to it, and the numbers of some queues of which they are.
        self.count = 0
        self.queues: set[int] = set()
        # Octets of the messages in it, each counted for all queues that it was written for.
        self.octets = 0
        # Of these references, how many are needed still, and about how many octets.
        self.live = 0
        self.live_octets = 0
        # What of it is done with, as `slot_of` counts, where no lane says so: in a store that is erased.
        self.gone = PositionSet() if is_erased else None
        # Place of a record -> where its message is now; and place of a copy -> where queues think that it is.
        self.moved: RelocationMap | None = None
        self.home: RelocationMap | None = None
        self.is_sealed = False
        # True when its file is going to be let go, and when it is: others may think that messages are here.
        self.is_retiring = False
        self.is_retired = False
        # What the checksums of its records start from.
        self.seed = 0
        # False if it is of a format in which messages do not say whether they died.
        self.knows_deaths = True
        # The lanes of which some state stands in it.
        self.cursors: set[QueueCursor] = set()

    @property
    def is_dead(self) -> bool:
        """True if no queue needs a message of it, and none ever will."""
        return self.is_sealed and not self.live

    def add_references(self, references: int, octets: int) -> None:
        """So many queues need a message of `octets` in it."""
        self.octets += references * octets
        self.live += references
        self.live_octets += references * octets

    def drop_references(self, references: int, octets: int) -> None:
        """So many queues need a message of `octets` in it no more."""
        self.live -= references
        self.live_octets -= references * octets


def slot_of(at: int) -> int:
    """The slot of the record at `at`, which no other has."""
    return at >> _SLOT_SHIFT


def segment_name(number: int) -> str:
    """The name of the file of segment `number`."""
    return f"{number:08d}{SUFFIX}"


def number_of(name: str) -> int | None:
    """The number of the segment whose file is called `name`; None for a file that is none of ours."""
    digits = name.removesuffix(SUFFIX)
    if len(digits) > _DIGITS_MAX or not digits.isdecimal() or name != segment_name(int(digits)):
        return None
    return int(digits)


def is_spare(name: str) -> bool:
    """True if `name` is that of a file which was a segment, and is to be one again."""
    return name.startswith(SPARE_PREFIX) and name.removeprefix(SPARE_PREFIX).isdecimal()


def encode_head(number: int, salt: bytes) -> bytes:
    """The head of the file of segment `number`."""
    head = MAGIC + VERSION.to_bytes(2, "big") + number.to_bytes(4, "big") + salt
    checksum: int = checksum_of(head)
    return head + checksum.to_bytes(4, "big")


def was_begun(octets: bytes, number: int) -> bool:
    """Whether segment `number` was written to, of which `octets` are all there is.

    A file that was only made is zero, or has a part of a head where its first write was torn, with nothing
    behind it; one that was only given another name has its old head.
    """
    head = octets[:HEAD_SIZE]
    if not any(head) or not octets[HEAD_SIZE:].strip(b"\0"):
        return False
    is_intact = checksum_of(head[:_CHECKSUM_AT]) == int.from_bytes(head[_CHECKSUM_AT:], "big")
    return not is_intact or int.from_bytes(head[8:12], "big") == number


def knows_deaths(head: bytes) -> bool:
    """Whether messages say that they died in the format of `head`, which can be read."""
    return int.from_bytes(head[6:8], "big") >= DEATHS_SINCE


def seed_of(head: bytes, number: int) -> int:
    """What the checksums of the records behind `head` start from.

    SegmentError unless it is the head of segment `number`, of a version that can be read.
    """
    name = segment_name(number)
    if len(head) < HEAD_SIZE or head[: len(MAGIC)] != MAGIC:
        raise StoreFileError(name, 0, "this is no segment of a message store")
    if checksum_of(head[:_CHECKSUM_AT]) != int.from_bytes(head[_CHECKSUM_AT:HEAD_SIZE], "big"):
        raise StoreFileError(name, 0, "the head of the segment is damaged")
    version = int.from_bytes(head[6:8], "big")
    if version > VERSION:
        raise NewerFormatError(
            name, 6, f"format {version} is newer than {VERSION}, the newest that this version reads"
        )
    found = int.from_bytes(head[8:12], "big")
    if found != number:
        raise StoreFileError(name, 8, f"this is segment {found} under another name")
    return checksum_seed(number, head[_SALT_AT:_CHECKSUM_AT])
