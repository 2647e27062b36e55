"""One segment file of a store: a head, then records up to a SEAL or the end of the log.

    file  │ "WRNSEG" │ version u16 │ number u32 │ salt, 8 bytes │ checksum u32 │ records … │

The name of the file is its number, `00000012.segment`; numbers only grow. A file is created at full size with
zeros, and reused for another segment when nothing in it is needed any more (`spare-00000003`). The random
salt is part of the checksum of each record, so that no content published by a client can pass for a record.
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
# No number is longer: the head of a file has 32 bits for it.
_DIGITS_MAX = 10
# Every record is larger than this shift, so each has a slot of its own.
_SLOT_SHIFT = 5


class StoreFileError(Exception):
    """A file of the store is damaged or unreadable; says which file, where, and why."""

    def __init__(
        self,
        name: str,
        at: int,
        reason: str,
        *,
        messages: int | None = None,
        queues: tuple[int, ...] = (),
    ) -> None:
        super().__init__(f"{name}, byte {at}: {reason}")
        self.name = name
        self.at = at
        self.reason = reason
        # The maximum number of messages lost, and the numbers of their queues, as far as known.
        self.messages = messages
        self.queues = queues


class NewerFormatError(StoreFileError):
    """The file was written by a newer version of Warren."""


class Segment:
    """The state of one segment while the store is open."""

    __slots__ = (
        "byte_count", "capacity", "count", "cursors", "gone", "home", "is_retired", "is_retiring",
        "is_sealed", "knows_deaths", "live", "live_bytes", "moved", "name", "number", "queues", "seed",
        "size",
    )  # fmt: skip

    def __init__(self, number: int, capacity: int = SEGMENT_SIZE, *, is_erased: bool = False) -> None:
        self.number = number
        # The file name.
        self.name = segment_name(number)
        # The size of the file in bytes, and how much of it is used.
        self.capacity = capacity
        self.size = HEAD_SIZE
        # The number of messages written to it, and the numbers of some of their queues.
        self.count = 0
        self.queues: set[int] = set()
        # The bytes of its messages, each counted once for each queue that it was written for.
        self.byte_count = 0
        # The number of live references to its messages, and their approximate bytes.
        self.live = 0
        self.live_bytes = 0
        # The settled slots (see `slot_of`), in a store that is erased at the next start and so records no
        # positions.
        self.gone = PositionSet() if is_erased else None
        # Place of a record -> current location of its message; and place of a copy -> the location that
        # queues have.
        self.moved: RelocationMap | None = None
        self.home: RelocationMap | None = None
        self.is_sealed = False
        # True when its file is going to be retired, and when it was: queues may still have locations in it.
        self.is_retiring = False
        self.is_retired = False
        # The seed of the checksums of its records.
        self.seed = 0
        # False if its format has no flag for dead-lettered messages.
        self.knows_deaths = True
        # The cursors with state in it, of queues that were not deleted.
        self.cursors: set[QueueCursor] = set()

    @property
    def is_dead(self) -> bool:
        """True if no queue has a live message in it, and none ever will."""
        return self.is_sealed and not self.live

    def add_references(self, references: int, byte_count: int) -> None:
        """Add `references` references to a message of `byte_count` bytes."""
        self.byte_count += references * byte_count
        self.live += references
        self.live_bytes += references * byte_count

    def drop_references(self, references: int, byte_count: int) -> None:
        """Remove `references` references to a message of `byte_count` bytes."""
        self.live -= references
        self.live_bytes -= references * byte_count


def slot_of(at: int) -> int:
    """The slot of the record at `at`; no two records have the same one."""
    return at >> _SLOT_SHIFT


def segment_name(number: int) -> str:
    """The file name of segment `number`."""
    return f"{number:08d}{SUFFIX}"


def number_of(name: str) -> int | None:
    """The number of the segment with the file `name`; None if it is not a segment file."""
    digits = name.removesuffix(SUFFIX)
    if len(digits) > _DIGITS_MAX or not digits.isdecimal() or name != segment_name(int(digits)):
        return None
    return int(digits)


def is_spare(name: str) -> bool:
    """True if `name` is the name of a spare file, kept to be reused as a segment."""
    return name.startswith(SPARE_PREFIX) and name.removeprefix(SPARE_PREFIX).isdecimal()


def encode_head(number: int, salt: bytes) -> bytes:
    """The head of the file of segment `number`."""
    head = MAGIC + VERSION.to_bytes(2, "big") + number.to_bytes(4, "big") + salt
    checksum: int = checksum_of(head)
    return head + checksum.to_bytes(4, "big")


def was_begun(data: bytes, number: int) -> bool:
    """True if segment `number`, whose file contains `data`, was ever written to.

    A file that was only created is zero, or has a torn head with nothing behind it. A spare file has its new
    head before it is renamed; one that earlier versions of Warren had only renamed still has its old head.
    """
    head = data[:HEAD_SIZE]
    if not any(head) or not data[HEAD_SIZE:].strip(b"\0"):
        return False
    is_intact = checksum_of(head[:_CHECKSUM_AT]) == int.from_bytes(head[_CHECKSUM_AT:], "big")
    return not is_intact or int.from_bytes(head[8:12], "big") == number


def knows_deaths(head: bytes) -> bool:
    """True if messages in the format of the valid `head` have a flag for being dead-lettered."""
    return int.from_bytes(head[6:8], "big") >= DEATHS_SINCE


def seed_of(head: bytes, number: int) -> int:
    """The checksum seed of the records behind `head`.

    Raises StoreFileError unless it is the head of segment `number` in a readable version.
    """
    name = segment_name(number)
    if len(head) < HEAD_SIZE or head[: len(MAGIC)] != MAGIC:
        raise StoreFileError(name, 0, "not a segment of a message store")
    if checksum_of(head[:_CHECKSUM_AT]) != int.from_bytes(head[_CHECKSUM_AT:HEAD_SIZE], "big"):
        raise StoreFileError(name, 0, "the head of the segment is damaged")
    version = int.from_bytes(head[6:8], "big")
    if version > VERSION:
        raise NewerFormatError(
            name,
            6,
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    found = int.from_bytes(head[8:12], "big")
    if found != number:
        raise StoreFileError(name, 8, f"the file is segment {found} under another name")
    return checksum_seed(number, head[_SALT_AT:_CHECKSUM_AT])
