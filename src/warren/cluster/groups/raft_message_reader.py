"""Decodes messages of the Raft core with the messages of their queues: see `cluster/groups/group_payloads`.

Nothing that another node sends is trusted: sizes and counts are compared with what is left of the payload
before anything is made of that size, and what a store or the Raft core would not take is refused.
"""

from struct import Struct as Layout

from warren.cluster.groups.group_payloads import (
    ABSENT,
    ENTRY_HEAD,
    HAS_COMMIT,
    HAS_CONTEXT,
    HAS_DIED,
    HAS_ENTRIES,
    HAS_HINT,
    HAS_INDEX,
    HAS_SNAPSHOT,
    IS_FORCED,
    IS_REJECTED,
    LEVEL_SHIFT,
    NUMBER_END,
    POSITIONS,
    RUN,
    SAME_ADDRESS,
    SAME_PRIORITY,
    SAME_PROPERTIES,
    SAME_TIME,
    VERSION,
)
from warren.cluster.node_link import PayloadError
from warren.errors import AmqpError
from warren.limits import EXPIRY_MS_MAX
from warren.limits_raft import (
    GROUP_COMMANDS_SIZE_MAX,
    GROUP_CONFIGURATION_SIZE_MAX,
    GROUP_MACHINE_SIZE_MAX,
    GROUP_POSITION_MAX,
    QUORUM_PRIORITY_MAX,
)
from warren.model.message import (
    DIED,
    HAS_EXPIRATION,
    HAS_HEADERS,
    PERSISTENT,
    StoredMessage,
    new_stored_message,
)
from warren.queues.quorum.batch_codec import QuorumFormatError, decode
from warren.queues.quorum.raft_storage import (
    QuorumPayload,
    QuorumSnapshot,
    decode_configuration,
    new_quorum_payload,
)
from warren.replication.raft.change import ChangeRefused, Configuration, decode_change
from warren.replication.raft.raft_messages import (
    Entry,
    EntryKind,
    MessageKind,
    RaftMessage,
    Snapshot,
    new_entry,
)
from warren.store.group_record import PositionRun, message_count_of, new_position_run
from warren.wire.properties import PropertyScan, text_at

_CONTENT_FLAGS = SAME_ADDRESS | SAME_PROPERTIES | SAME_PRIORITY | SAME_TIME | HAS_DIED
# Looked up once: an attribute of an enum costs 0.1 µs interpreted, and finding one by its number more.
_ENTRY_KINDS = {int(kind): kind for kind in EntryKind}
_MESSAGE_KINDS = {int(kind): kind for kind in MessageKind}
_NORMAL = EntryKind.NORMAL
_APPEND = MessageKind.APPEND
_SNAPSHOT = MessageKind.SNAPSHOT
_PROPOSE = MessageKind.PROPOSE
_NUMBER_END = NUMBER_END
_LEVEL_SHIFT = LEVEL_SHIFT
_POSITIONS = POSITIONS
_POSITION_MAX = GROUP_POSITION_MAX
_PRIORITY_MAX = QUORUM_PRIORITY_MAX
_ENTRY_HEAD_SIZE = ENTRY_HEAD.size
_RUN_SIZE = RUN.size
_ABSENT = ABSENT
_SAME_ADDRESS = SAME_ADDRESS
_SAME_PROPERTIES = SAME_PROPERTIES
_SAME_PRIORITY = SAME_PRIORITY
_SAME_TIME = SAME_TIME
_HAS_DIED = HAS_DIED
_DIED = DIED
_CONTENT_END = 0xCE
_DELIVERY_MODE_MAX = 2


class RaftMessageReader:
    """Reads one payload; PayloadError if it is not what this version writes."""

    __slots__ = (
        "_address", "_at", "_data", "_end", "_flags", "_priority", "_properties",
        "_published_at", "_scan",
    )  # fmt: skip

    def __init__(self, payload: bytes, *, is_versioned: bool = True) -> None:
        """Read the version, if the payload begins with it. PayloadError if it is another one."""
        self._data = payload
        self._at = 0
        self._end = len(payload)
        self._scan = PropertyScan()
        self.begin_contents()
        if is_versioned:
            self.check_version()

    @property
    def is_at_end(self) -> bool:
        """True behind the last byte."""
        return self._at == self._end

    @property
    def left(self) -> int:
        """The number of bytes that were not read."""
        return self._end - self._at

    # --- numbers ------------------------------------------------------------------------------------

    def check_version(self) -> None:
        """Read a version. PayloadError if it is another one."""
        version = self.number(1)
        if version != VERSION:
            raise PayloadError(f"a payload of groups of version {version}")

    def number(self, size: int) -> int:
        """An unsigned integer of `size` bytes."""
        data = self._data
        at = self._at
        end = at + size
        if end > self._end:
            raise PayloadError(f"a payload of groups is cut short at byte {at}")
        self._at = end
        value = 0
        while at < end:
            value = value << 8 | data[at]
            at += 1
        return value

    def octets(self, size: int) -> bytes:
        """The next `size` bytes."""
        at = self._at
        end = at + size
        if end > self._end:
            raise PayloadError(f"a payload of groups is cut short at byte {at}")
        self._at = end
        return self._data[at:end]

    def numbers(self, layout: Layout) -> tuple[int, ...]:
        """The numbers of `layout`."""
        at, size = self._at, layout.size
        if size > self._end - at:
            raise PayloadError(f"a payload of groups is cut short at byte {at}")
        self._at = at + size
        return layout.unpack_from(self._data, at)

    def index(self) -> int:
        """A term or an index."""
        found = self.number(8)
        if found >= _NUMBER_END:
            raise PayloadError(f"a term or index of {found}")
        return found

    def place(self) -> tuple[int, int]:
        """A priority level, and a position in it."""
        key = self.number(8)
        level, position = key >> _LEVEL_SHIFT, key & _POSITIONS
        _check_place(key, level, position)
        return level, position

    def ends(self) -> dict[int, int]:
        """The positions behind the last messages, by priority level."""
        count = self.number(2)
        found = dict(self.place() for _ in range(min(count, QUORUM_PRIORITY_MAX + 1)))
        if len(found) != count:
            raise PayloadError(f"{count} ends of {len(found)} priority levels")
        return found

    # --- messages of the Raft core ------------------------------------------------------------------

    def message(self) -> tuple[int, RaftMessage]:
        """The next message, and the number of its group."""
        group, kind, flags = self.number(8), self.number(1), self.number(1)
        to, sender, term = self.number(4), self.number(4), self.number(8)
        if not group or not to or not sender or term >= _NUMBER_END:
            raise PayloadError(f"a message of replica {sender} to {to} of group {group} in term {term}")
        index = log_term = 0
        if flags & HAS_INDEX:
            index, log_term = self.index(), self.index()
        commit = self.index() if flags & HAS_COMMIT else 0
        hint = self.index() if flags & HAS_HINT else 0
        context = self.octets(self.number(1)) if flags & HAS_CONTEXT else b""
        named = _kind(kind)
        entries: tuple[Entry, ...] = ()
        if flags & HAS_ENTRIES:
            if named is not _APPEND:
                raise PayloadError(f"a {named.name} with entries")
            entries = self._entries(index + 1)
        if bool(flags & HAS_SNAPSHOT) is not (named is _SNAPSHOT):
            raise PayloadError(f"a {named.name} with flags {flags:#x}")
        snapshot = self._snapshot() if flags & HAS_SNAPSHOT else None
        return group, RaftMessage(
            named, to, sender, term, index, log_term, entries, commit, snapshot, bool(flags & IS_REJECTED),
            hint, bool(flags & IS_FORCED), context,
        )  # fmt: skip

    def _entries(self, first: int) -> tuple[Entry, ...]:
        count = self.number(4)
        if not count or count > self.left // _ENTRY_HEAD_SIZE or first + count >= _NUMBER_END:
            raise PayloadError(f"{count} entries from index {first} on in {self.left} bytes")
        return tuple([self._entry(first + place) for place in range(count)])

    def _entry(self, index: int) -> Entry:
        term, kind, size = self.number(8), self.number(1), self.number(4)
        commands_size, run_count = self.number(4), self.number(2)
        named = _ENTRY_KINDS.get(kind)
        if not 0 < term < _NUMBER_END or named is None:
            raise PayloadError(f"entry {index} of kind {kind} in term {term}")
        if commands_size > GROUP_COMMANDS_SIZE_MAX or run_count * _RUN_SIZE > self.left:
            raise PayloadError(f"entry {index} with {run_count} runs and commands of {commands_size} bytes")
        runs = self._runs(index, run_count)
        commands = self.octets(commands_size)
        if named is _NORMAL and (runs or commands):
            payload = self._quorum_payload(index, runs, commands)
            if not size:
                raise PayloadError(f"entry {index} has a payload, and no size")
            return new_entry(term, index, payload, size)
        if runs:
            raise PayloadError(f"the change of members {index} has messages")
        if size != commands_size:
            raise PayloadError(f"entry {index} of {commands_size} bytes is said to have {size}")
        if named is not _NORMAL:
            try:
                decode_change(commands)
            except ChangeRefused as error:
                raise PayloadError(f"entry {index}: {error}") from None
        return Entry(term, index, named, commands, size=size)

    def _runs(self, index: int, run_count: int) -> tuple[PositionRun, ...]:
        found: list[PositionRun] = []
        for _ in range(run_count):
            key, count = self.number(8), self.number(4)
            level, first = key >> _LEVEL_SHIFT, key & _POSITIONS
            _check_place(key, level, first)
            if not count or first + count > _POSITION_MAX:
                raise PayloadError(f"entry {index} has {count} messages from position {first} on")
            found.append(new_position_run(level, first, count))
        return tuple(found)

    def _quorum_payload(self, index: int, runs: tuple[PositionRun, ...], commands: bytes) -> QuorumPayload:
        """The payload of an entry, with its messages; its commands are valid."""
        count = message_count_of(runs)
        if count > self.left:
            # Each of them has a byte at least.
            raise PayloadError(f"entry {index} has {count} messages in {self.left} bytes")
        try:
            batch = decode(commands, runs)
        except QuorumFormatError as error:
            raise PayloadError(f"the commands of entry {index}: {error}") from None
        self.begin_contents()
        messages = [self.content() for _ in range(count)]
        payload: QuorumPayload = new_quorum_payload(runs, commands)
        payload.messages = messages
        payload.is_placed = False
        payload.batch = batch
        return payload

    def _snapshot(self) -> Snapshot:
        index, term = self.index(), self.index()
        configuration = self._configuration()
        size = self.number(4)
        if size > GROUP_MACHINE_SIZE_MAX:
            raise PayloadError(f"a machine of {size} bytes")
        machine = self.octets(size)
        if not index or not term:
            raise PayloadError(f"a snapshot of index {index} in term {term}")
        return Snapshot(index, term, configuration, QuorumSnapshot(machine, self.ends()))

    def _configuration(self) -> Configuration:
        size = self.number(4)
        if size > GROUP_CONFIGURATION_SIZE_MAX:
            raise PayloadError(f"a configuration of {size} bytes")
        try:
            configuration = decode_configuration(self.octets(size))
        except ValueError as error:
            raise PayloadError(str(error)) from None
        groups = (
            configuration.voters, configuration.outgoing, configuration.learners, configuration.learners_next
        )  # fmt: skip
        if not configuration.voters or any(list(each) != sorted({*each} - {0}) for each in groups):
            raise PayloadError(f"a configuration that no group has: {configuration}")
        return configuration

    # --- messages of a queue ------------------------------------------------------------------------

    def begin_contents(self) -> None:
        """Begin with a message that repeats nothing of those before."""
        self._address: bytes | None = None
        self._properties: bytes | None = None
        self._flags = 0
        self._priority = 0
        self._published_at = -1

    def content(self) -> StoredMessage | None:
        """The next message; None if it is absent, since it was settled."""
        flags = self.number(1)
        if flags == _ABSENT:
            return None
        if flags & ~_CONTENT_FLAGS:
            raise PayloadError(f"a message with flags {flags:#x}")
        if flags & _SAME_TIME == 0:
            self._published_at = self.number(6)
        if flags & _SAME_PRIORITY == 0:
            self._priority = self.number(1)
        size = self.number(4)
        if flags & _SAME_ADDRESS == 0:
            self._address = _checked_address(self.octets(self.number(2)))
        if flags & _SAME_PROPERTIES == 0:
            self._take_properties(self.octets(self.number(4)))
        address = self._address
        properties = self._properties
        if address is None or properties is None or self._published_at < 0:
            raise PayloadError("the first message is said to be like the one before")
        body = self.octets(size)
        data = body
        if not size or data[size - 1] != _CONTENT_END:
            raise PayloadError("the body of a message without its end")
        message = new_stored_message(address, properties, body, self._published_at)
        message.flags = self._flags | _DIED if flags & _HAS_DIED else self._flags
        message.priority = self._priority
        return message

    def _take_properties(self, properties: bytes) -> None:
        """Check `properties`, and determine the flags of messages that have them."""
        scan = self._scan
        try:
            scan.scan(properties, 0, len(properties))
        except AmqpError as error:
            raise PayloadError(error.message) from None
        if scan.delivery_mode > _DELIVERY_MODE_MAX:
            raise PayloadError(f"a message with delivery mode {scan.delivery_mode}")
        # One without that mode is stored as well.
        flags = PERSISTENT
        if scan.headers_at:
            flags |= HAS_HEADERS
        if scan.expiration_at:
            flags |= HAS_EXPIRATION
            _check_expiration(text_at(properties, scan.expiration_at))
        self._flags = flags
        self._properties = properties


def _check_place(key: int, level: int, position: int) -> None:
    """PayloadError unless `key` is a `position` of a priority `level` that a group may have."""
    if level > _PRIORITY_MAX or position > _POSITION_MAX:
        raise PayloadError(f"a position of {key:#x}")


def _kind(number: int) -> MessageKind:
    """The kind of a message; PayloadError if no member of a group sends such."""
    kind = _MESSAGE_KINDS.get(number)
    if kind is None:
        raise PayloadError(f"a message of the unknown kind {number}")
    if kind is _PROPOSE:
        raise PayloadError("a proposal, which nobody passes on")
    return kind


def _checked_address(address: bytes) -> bytes:
    """The `address`, which must be two short strings."""
    size = len(address)
    if size:
        key_at = address[0] + 1
        if key_at < size and key_at + 1 + address[key_at] == size:
            return address
    raise PayloadError("an address that is not exchange and routing key")


def _check_expiration(text: str) -> None:
    """PayloadError unless `text` is a number of ms, as is checked where a message is published."""
    try:
        number = int(text)
    except ValueError:
        raise PayloadError(f"expiration {text!r}") from None
    if not 0 <= number <= EXPIRY_MS_MAX:
        raise PayloadError(f"expiration {text!r}")
