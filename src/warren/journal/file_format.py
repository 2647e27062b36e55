"""The metadata file: a snapshot of the metadata, and the commands applied since.

    file  │ "WRNMET" │ version u16 │ salt, 8 bytes │ checksum u32 │ ORIGIN │ HARD │ state │ batches …
    state │ BATCH or STATE …, which rebuild the snapshot │ STATE_END
    batch │ BATCH │ HARD or ENTRY …

Records have the format of the message store (`store/record`), with kinds of their own. As there, the salt is
random and part of each checksum, and a BATCH states that everything before it was synced: with it recovery
distinguishes a torn end, which loses nothing, from damage.

    ENTRY      a command with its index, its term and what the proposer stamped: `codec`; indexes have no
               gaps. Since version 8 also the empty entry of a new leader, and changes of the members
    HARD       the term and the vote of the node: `codec`
    STATE      a command that makes a part of the snapshot: `codec`. Since version 9 also the members of the
               cluster, and which proposals of each node are in it; queues have a home. Since version 10
               quorum queues have members; since version 11 virtual hosts can be protected
    STATE_END  the index and the term of the last entry in the snapshot, and the configuration of the group
               that agreed on it: `codec`
    ORIGIN     log id, 8 bytes; generation u64: identifies the file and its log. The high-water mark, a file
               beside it, refers to these

Versions 1 to 6, which are read and replaced by this one, contain effects on durable objects (`effects_codec`)
instead of commands: in their state since version 2 with many objects in one record, since version 3 with
paused queues, since version 4 with leases, since version 5 with numbers in doubt, since version 6 with the
users of parameters. Their STATE_END is an index u64. ORIGIN exists since version 5.
"""

from collections.abc import Sequence

from google_crc32c import value as checksum_of

from warren.store.record import checksum_seed, encode

VERSION = 11
# The first version that contains commands.
COMMANDS_SINCE = 7
NAME = "metadata"
# Its name while it is being written.
UNFINISHED_NAME = "metadata.new"

# The records of versions 1 to 6: commands that were the effect of one, and the end of the state.
EFFECTS = 1
BATCH = 2
EFFECTS_STATE_END = 3
ORIGIN = 4
ENTRY = 5
HARD = 6
STATE = 7
STATE_END = 8

HEAD_SIZE = 20
SALT_SIZE = 8
_MAGIC = b"WRNMET"
_SALT_AT = 8
_CHECKSUM_AT = 16


class JournalError(Exception):
    """The metadata file cannot be used; says where and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"{NAME}, byte {at}: {reason}")


def encode_head(salt: bytes) -> bytes:
    """The head of a file with `salt`."""
    head = _MAGIC + VERSION.to_bytes(2, "big") + salt
    checksum: int = checksum_of(head)
    return head + checksum.to_bytes(4, "big")


def seed_of(head: bytes) -> int:
    """The checksum seed of the records behind `head`; JournalError if this version cannot read the file."""
    if len(head) < HEAD_SIZE or head[: len(_MAGIC)] != _MAGIC:
        raise JournalError(0, "not a metadata file of Warren")
    if checksum_of(head[:_CHECKSUM_AT]) != int.from_bytes(head[_CHECKSUM_AT:HEAD_SIZE], "big"):
        raise JournalError(0, "the header is damaged")
    version = version_of(head)
    if version > VERSION:
        raise JournalError(
            len(_MAGIC),
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    return checksum_seed(0, head[_SALT_AT:_CHECKSUM_AT])


def version_of(head: bytes) -> int:
    """The format version of the file with `head`, which must be valid."""
    return int.from_bytes(head[len(_MAGIC) : _SALT_AT], "big")


def kept_name(version: int) -> str:
    """The name of the copy that is made of a file of format `version` before it is replaced."""
    return f"{NAME}.{version}"


def encode_origin(log_id: bytes, generation: int, seed: int) -> bytes:
    """The record that identifies the file."""
    return encode(ORIGIN, log_id + generation.to_bytes(8, "big"), seed)


def encode_batch(records: Sequence[tuple[int, bytes]], seed: int) -> list[bytes]:
    """The records of a batch with `records`, each with its kind and its body."""
    return [encode(BATCH, b"", seed), *(encode(kind, body, seed) for kind, body in records)]
