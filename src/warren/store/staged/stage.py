"""One stage: the rows of one attempt at one partition of a batch, in a file that is complete or absent.

    file │ "WRNSTG" │ version u16 │ salt, 8 bytes │ size u32 │ description, `size` bytes │ checksum u32
         │ chunks, as in streams/chunk … │ tail
    tail │ "WRNEND" │ rows u64 │ bytes of bodies u64 │ checksum u32 │

The name of the file is a number, `0000002a.stage`; while it is written it is `0000002a.stage.part`, and it is
synced before it is renamed. The description is JSON: the origin and destination of the rows. Checksums are
CRC-32C, and those behind the description start from the salt.
"""

import json
from collections.abc import Callable
from struct import Struct

import msgspec
from google_crc32c import extend
from google_crc32c import value as checksum_of
from msgspec.structs import asdict

from warren.limits import STAGED_CHUNK_ROWS_MAX, STAGED_CHUNK_SIZE, STAGED_SYNC_SIZE
from warren.model.message import Message
from warren.store.disk import CreateFile, DeleteFile, Disk, RenameFile, SyncDirectory, SyncFile, WriteFile
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.streams.chunk import HEAD_SIZE as CHUNK_HEAD_SIZE
from warren.store.streams.chunk import Chunk, ChunkBuilder, MessageRun, is_whole, read_head

VERSION = 1
SUFFIX = ".stage"
PART = ".part"
SALT_SIZE = 8
DESCRIPTION_SIZE_MAX = 16_384
_MAGIC = b"WRNSTG"
_HEAD = Struct(">6sH8sI")
_END = b"WRNEND"
_TAIL = Struct(">6sQQI")
_CHECKSUM_SIZE = 4


class StageDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The origin and the destination of the rows of a stage."""

    query: str
    batch: int
    partition: int
    attempt: int
    exchange: str
    user: str
    # Unix time, ms.
    created_at: int


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A complete file of rows."""

    number: int
    description: StageDescription
    rows: int
    byte_count: int
    # The size of the file in bytes; and the places where its chunks begin and end.
    size: int
    first: int
    end: int
    salt: bytes

    @property
    def name(self) -> str:
        """The file name."""
        return stage_name(self.number)


class StageWriter:
    """Writes one stage; its rows do not exist before `finish`."""

    def __init__(self, disk: Disk, number: int, description: StageDescription, salt: bytes) -> None:
        """Create the file. This and all other methods raise OSError if the disk fails."""
        self._disk = disk
        self._number = number
        self._description = description
        self._salt = salt
        self._part = stage_name(number) + PART
        self._builder = ChunkBuilder(0)
        self._pieces: list[bytes] = []
        text = json.dumps(asdict(description)).encode()
        head = _HEAD.pack(_MAGIC, VERSION, salt, len(text)) + text
        self._pieces.append(head + int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big"))
        self._first = len(self._pieces[0])
        # The bytes appended so far, and how many of them are written and synced.
        self.size = self._first
        self._written = 0
        self._synced = 0
        self.rows = 0
        self.byte_count = 0
        disk.perform([CreateFile(self._part, 0)])

    def add(self, message: Message) -> None:
        """Append one row."""
        self._builder.add(message)
        self.rows += 1
        self.byte_count += message.body_size
        if self._builder.count >= STAGED_CHUNK_ROWS_MAX or self._builder.size >= STAGED_CHUNK_SIZE:
            self._end_chunk()

    def add_run(self, run: MessageRun) -> None:
        """Append the rows of `run`, which differ only in their bodies."""
        left = run
        while True:
            builder = self._builder
            part = left.within(STAGED_CHUNK_SIZE - builder.size, STAGED_CHUNK_ROWS_MAX - builder.count)
            builder.add_run(part)
            self.rows += part.count
            self.byte_count += part.byte_count
            if builder.count >= STAGED_CHUNK_ROWS_MAX or builder.size >= STAGED_CHUNK_SIZE:
                self._end_chunk()
            if part.count == left.count:
                return
            left = left.without(part.count)

    def flush(self) -> None:
        """Write the buffered rows to the file."""
        if not self._pieces:
            return
        at, data = self._written, self._pieces
        self._pieces = []
        self._written = self.size
        self._disk.perform([WriteFile(self._part, at, data)])
        if self._written - self._synced >= STAGED_SYNC_SIZE:
            # Synced in parts, since others sync on the same device.
            self._disk.perform([SyncFile(self._part)])
            self._synced = self._written

    def finish(self) -> Stage:
        """Write and sync the rest, and rename the file: the stage is durable from here on."""
        if self._builder.count:
            self._end_chunk()
        end = self.size
        tail = _TAIL.pack(_END, self.rows, self.byte_count, 0)[:-_CHECKSUM_SIZE]
        self._append(tail + int(extend(_seed(self._salt), tail)).to_bytes(_CHECKSUM_SIZE, "big"))
        self.flush()
        name = stage_name(self._number)
        self._disk.perform([SyncFile(self._part), RenameFile(self._part, name), SyncDirectory()])
        return Stage(
            number=self._number,
            description=self._description,
            rows=self.rows,
            byte_count=self.byte_count,
            size=self.size,
            first=self._first,
            end=end,
            salt=self._salt,
        )

    def abandon(self) -> None:
        """Delete the unfinished file."""
        self._disk.perform([DeleteFile(self._part), DeleteFile(stage_name(self._number))])

    def _end_chunk(self) -> None:
        self._append(self._builder.encode(_sync_marker(self._salt), _seed(self._salt), 0))
        self._builder = ChunkBuilder(self.rows)

    def _append(self, data: bytes) -> None:
        self._pieces.append(data)
        self.size += len(data)


def open_stage(disk: Disk, number: int, size: int) -> Stage:
    """Open the stage with a file of `size` bytes; StoreFileError if it is damaged, OSError if unreadable."""
    name = stage_name(number)
    data = disk.read(name, 0, _HEAD.size + DESCRIPTION_SIZE_MAX + _CHECKSUM_SIZE)
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise StoreFileError(name, 0, "not a file of staged rows")
    _, version, salt, text_size = _HEAD.unpack_from(data)
    if version > VERSION:
        raise NewerFormatError(
            name,
            6,
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    first = _HEAD.size + text_size + _CHECKSUM_SIZE
    head = data[: first - _CHECKSUM_SIZE]
    if int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big") != data[len(head) : first]:
        raise StoreFileError(name, 0, "the head of the stage is damaged")
    tail_at = size - _TAIL.size
    tail = disk.read(name, tail_at, _TAIL.size) if tail_at >= first else b""
    if len(tail) < _TAIL.size or extend(_seed(salt), tail[:-_CHECKSUM_SIZE]) != _TAIL.unpack(tail)[-1]:
        raise StoreFileError(name, max(tail_at, 0), "the end of the stage is damaged")
    _, rows, body_bytes, _ = _TAIL.unpack(tail)
    return Stage(
        number=number,
        description=StageDescription(**json.loads(head[_HEAD.size :])),
        rows=rows,
        byte_count=body_bytes,
        size=size,
        first=first,
        end=tail_at,
        salt=salt,
    )


def read_chunk(disk: Disk, stage: Stage, at: int) -> Chunk:
    """The chunk of `stage` at `at`; StoreFileError if it is damaged, OSError if it cannot be read."""
    data = disk.read(stage.name, at, min(STAGED_CHUNK_SIZE + CHUNK_HEAD_SIZE, stage.end - at))
    seed = _seed(stage.salt)
    head = read_head(data, 0, _sync_marker(stage.salt), seed)
    if head is None:
        raise StoreFileError(stage.name, at, "rows are damaged")
    size = CHUNK_HEAD_SIZE + head.size
    if size > len(data):
        data = disk.read(stage.name, at, size)
    if not is_whole(data, 0, head, seed):
        raise StoreFileError(stage.name, at, "rows are damaged")
    return Chunk(data, 0, head)


def verify(disk: Disk, stage: Stage, admit: Callable[[bytes], object]) -> None:
    """Read all of `stage`, and call `admit` with each address.

    Raises StoreFileError, OSError, or what `admit` raises.
    """
    at, rows = stage.first, 0
    while at < stage.end:
        chunk = read_chunk(disk, stage, at)
        for address in {shape.address for shape in chunk.shapes}:
            admit(address)
        if chunk.first != rows:
            raise StoreFileError(stage.name, at, "rows are missing")
        rows += chunk.count
        at += chunk.size
    if at != stage.end or rows != stage.rows:
        raise StoreFileError(stage.name, at, "rows are missing")


def stage_name(number: int) -> str:
    """The file name of the stage with `number`."""
    return f"{number:08x}{SUFFIX}"


def _seed(salt: bytes) -> int:
    seed: int = extend(0, salt)
    return seed


def _sync_marker(salt: bytes) -> int:
    return int.from_bytes(salt[:4], "big")
