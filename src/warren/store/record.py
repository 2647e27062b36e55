"""One record of a segment: a message, released or delivered positions, or the state of the log.

    record    │ size u32 │ checksum u32 │ kind u8 │ body, `size` bytes │
    checksum  CRC-32C over the number of the segment (u32), its salt, the kind and the body, so that the
              former content of a reused file does not pass for a record of this one

    MESSAGE   published at u64 ms │ flags u8 │ priority u8 │ address size u16 │ property list size u32
              │ count u32 │ references │ address │ property list │ content (all three as in model/message)
    RELEASE   ( queue u32 │ first position u64 │ count u64 ) …: these positions are settled
    DELIVERED ( queue u32 │ position u64 ) …: all positions before were delivered at least once
    BATCH     everything before this record was synced before it was written
    SEAL      the segment ends here, and another follows
    GROUP     size u64 │ key size u16 │ key │ value: the records in the next `size` bytes are valid only if
              all of them are present; then the marker `key` has this value from here on
    ENTRY     group u32 │ index u64 │ term u64 │ commit u64 │ kind u8 │ run count u16
              │ ( position u64 │ count u32 ) … │ commands: an entry of the Raft log of `group`, whose messages
              stand before it
    HARD      group u32 │ replica u32 │ term u64 │ vote u32 │ commit u64: the hard state of the replica
    STATE     the state of a replica, which replaces all that stands before it (drawn in `group_record`)
    CUT       group u32 │ index u64 │ ( position u64 │ offset u64 ) …: the entries from `index` on are void;
              the messages from `position` on are kept at their position + `offset`

    reference │ queue u32 │ position u64 │

All integers are big-endian. A queue is identified by the number that the metadata gave it, never by its name;
a position is the place of the message in its queue, with the priority level in the highest byte. The Raft
group of a replicated queue has the number of the queue.
"""

from google_crc32c import extend

from warren.limits import CONTENT_COPIED_MAX
from warren.model.message import StoredMessage, new_stored_message, published_at_of
from warren.store.packing import checksum_of, copied, pack, put

# 2: with GROUP. 3: messages have a flag for being dead-lettered. 4: with ENTRY, HARD, STATE and CUT.
VERSION = 4
DEATHS_SINCE = 3

MESSAGE = 1
RELEASE = 2
DELIVERED = 3
BATCH = 4
SEAL = 5
GROUP = 6
ENTRY = 7
HARD = 8
STATE = 9
CUT = 10

HEAD_SIZE = 9
# The place of the kind in a record.
KIND_AT = 8
REFERENCE_SIZE = 12
RUN_SIZE = 20
# The size of the body of a GROUP up to its key.
_GROUP_SIZE = 10
# The size of the body of a MESSAGE up to its references.
_FIXED_SIZE = 20
_COPIED_SIZE_MAX = CONTENT_COPIED_MAX

# The size of a message on disk beside its content, without its address and its property list.
MESSAGE_OVERHEAD = HEAD_SIZE + _FIXED_SIZE + REFERENCE_SIZE

_HEAD_SIZE = HEAD_SIZE
_REFERENCE_SIZE = REFERENCE_SIZE
_RUN_SIZE = RUN_SIZE
# A buffer for the kind and the fixed fields of a MESSAGE, filled in and copied into each record.
_FIXED = bytearray((MESSAGE,)) + bytes(_FIXED_SIZE)
# A buffer for a reference, filled in and copied into each record.
_REFERENCE = bytearray(REFERENCE_SIZE)
# The same for a run of positions, and for the kind of any other record.
_RUN = bytearray(RUN_SIZE)
_KIND = bytearray(1)


def checksum_seed(segment: int, salt: bytes) -> int:
    """The seed of the checksums of the records of segment number `segment`."""
    seed: int = extend(0, segment.to_bytes(4, "big") + salt)
    return seed


def encode(kind: int, body: bytes, seed: int) -> bytes:
    """A whole record of `kind` with `body`."""
    fixed = _KIND
    fixed[0] = kind
    return pack(
        seed,
        fixed=fixed,
        references=body,
        address=b"",
        property_list=b"",
        content=b"",
        is_copied=True,
    )


def encode_message(message: StoredMessage, references: bytes, seed: int, chunks: list[bytes]) -> None:
    """Add the record of `message` with its encoded `references` to `chunks`."""
    address = message.address
    property_list = message.property_list
    content = message.content
    fixed = _FIXED
    put(fixed, 1, 8, published_at_of(message))
    fixed[9] = message.flags
    fixed[10] = message.priority
    put(fixed, 11, 2, len(address))
    put(fixed, 13, 4, len(property_list))
    put(fixed, 17, 4, len(references) // _REFERENCE_SIZE)
    is_copied = len(content) <= _COPIED_SIZE_MAX
    chunks.append(
        pack(
            seed,
            fixed=fixed,
            references=references,
            address=address,
            property_list=property_list,
            content=content,
            is_copied=is_copied,
        )
    )
    if not is_copied:
        chunks.append(content)


def message_record_size(message: StoredMessage, references: bytes) -> int:
    """The size of the whole record of `message` with its encoded `references`."""
    parts = len(references) + len(message.address) + len(message.property_list) + len(message.content)
    return _HEAD_SIZE + _FIXED_SIZE + parts


def encode_reference(queue: int, position: int) -> bytes:
    """The encoded reference to `position` in the queue with number `queue`."""
    data = _REFERENCE
    put(data, 0, 4, queue)
    put(data, 4, 8, position)
    return copied(data, _REFERENCE_SIZE)


def encode_run(queue: int, first: int, count: int) -> bytes:
    """The encoded run of `count` positions of `queue` from `first` on."""
    data = _RUN
    put(data, 0, 4, queue)
    put(data, 4, 8, first)
    put(data, 12, 8, count)
    return copied(data, _RUN_SIZE)


def encode_group(size: int, key: bytes, value: bytes) -> bytes:
    """The body of a GROUP of records with `size` bytes."""
    return size.to_bytes(8, "big") + len(key).to_bytes(2, "big") + key + value


def group_record_size(key: bytes, value: bytes) -> int:
    """The size of the whole GROUP record for `key` and `value`."""
    return _HEAD_SIZE + _GROUP_SIZE + len(key) + len(value)


def group_size(data: bytes, at: int) -> int:
    """The size in bytes of the records that belong to the GROUP at `at`."""
    return uint64(data, at + _HEAD_SIZE)


def decode_marker(data: bytes, at: int, size: int) -> tuple[bytes, bytes]:
    """The key and value of the intact GROUP of `size` bytes at `at`."""
    key_at = at + _HEAD_SIZE + _GROUP_SIZE
    value_at = key_at + uint16(data, key_at - 2)
    assert value_at <= at + size
    return data[key_at:value_at], data[value_at : at + size]


def is_intact(data: bytes, at: int, seed: int) -> int:
    """The size of the whole record at `at`; 0 if there is no intact record."""
    source = data
    end = at + _HEAD_SIZE
    if end > len(data):
        return 0
    end += uint32(source, at)
    if end > len(data) or not source[at + 8]:
        return 0
    checksum = checksum_of(seed, data, at + 8, end)
    return end - at if checksum == uint32(source, at + 4) else 0


def decode_message(data: bytes, at: int, size: int) -> StoredMessage:
    """The message of the intact record of `size` bytes at `at`."""
    source = data
    body = at + _HEAD_SIZE
    address_at = first_reference(at) + reference_count(source, at) * _REFERENCE_SIZE
    list_at = address_at + uint16(source, body + 10)
    content_at = list_at + uint32(source, body + 12)
    # Slices of a C pointer are not bounds-checked.
    assert content_at <= at + size <= len(data)
    message = new_stored_message(
        source[address_at:list_at],
        source[list_at:content_at],
        source[content_at : at + size],
        uint64(source, body),
    )
    message.flags = source[body + 8]
    message.priority = source[body + 9]
    return message


def decode_body(data: bytes, at: int, size: int) -> bytes:
    """The body of the message of the intact record of `size` bytes at `at`."""
    source = data
    content_at = at + size - content_size(source, at, size)
    assert at < content_at < at + size <= len(data)
    return source[content_at : at + size - 1]


def first_reference(at: int) -> int:
    """The place of the first reference of the MESSAGE at `at`."""
    return at + _HEAD_SIZE + _FIXED_SIZE


def reference_count(data: bytes, at: int) -> int:
    """The number of references of the MESSAGE at `at`."""
    return uint32(data, at + _HEAD_SIZE + 16)


def content_size(data: bytes, at: int, size: int) -> int:
    """The size in bytes of the content of the MESSAGE of `size` bytes at `at`."""
    body = at + _HEAD_SIZE
    before = uint16(data, body + 10) + uint32(data, body + 12)
    return size - _HEAD_SIZE - _FIXED_SIZE - reference_count(data, at) * _REFERENCE_SIZE - before


def uint16(data: bytes, at: int) -> int:
    """The 16-bit integer at `at`."""
    return data[at] << 8 | data[at + 1]


def uint32(data: bytes, at: int) -> int:
    """The 32-bit integer at `at`."""
    high = uint16(data, at)
    return high << 16 | uint16(data, at + 2)


def uint64(data: bytes, at: int) -> int:
    """The 64-bit integer at `at`."""
    high = uint32(data, at)
    return high << 32 | uint32(data, at + 4)
