"""What a batch consists of that is being published: decided once, before the first of its rows is in a queue.

    file │ "WRNPLN" │ version u16 │ size u32 │ plan, JSON, `size` octets │ checksum u32 │

Its name is a number, `0000002b.plan`. While it is there its batch is being published, also after a restart.
"""

import json
from dataclasses import asdict, dataclass
from struct import Struct

from google_crc32c import value as checksum_of

from warren.store.disk import CreateFile, Disk, RenameFile, SyncDirectory, SyncFile, WriteFile
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.staged.stage import PART

VERSION = 1
SUFFIX = ".plan"
_MAGIC = b"WRNPLN"
_HEAD = Struct(">6sHI")
_CHECKSUM_SIZE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlan:
    """Which stages are published, in which order, and for whom."""

    number: int
    query: str
    batch: int
    user: str
    # Numbers of stages.
    stages: list[int]
    rows: int

    @property
    def name(self) -> str:
        """Its file."""
        return plan_name(self.number)


def write_plan(disk: Disk, plan: CommitPlan) -> None:
    """It is decided, whatever happens from here on. OSError: perhaps it is, perhaps not."""
    text = json.dumps(asdict(plan)).encode()
    head = _HEAD.pack(_MAGIC, VERSION, len(text)) + text
    octets = head + int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big")
    part = plan.name + PART
    disk.perform(
        [
            CreateFile(part, len(octets)),
            WriteFile(part, 0, [octets]),
            SyncFile(part),
            RenameFile(part, plan.name),
            SyncDirectory(),
        ]
    )


def open_plan(disk: Disk, number: int, size: int) -> CommitPlan:
    """The plan with `number`. SegmentError if it is damaged, OSError if it cannot be read."""
    name = plan_name(number)
    octets = disk.read(name, 0, size)
    if len(octets) < _HEAD.size or octets[: len(_MAGIC)] != _MAGIC:
        raise StoreFileError(name, 0, "this is no plan")
    _, version, text_size = _HEAD.unpack_from(octets)
    if version > VERSION:
        raise NewerFormatError(
            name, 6, f"format {version} is newer than {VERSION}, the newest that this version reads"
        )
    head = octets[: _HEAD.size + text_size]
    if int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big") != octets[len(head) :]:
        raise StoreFileError(name, 0, "the plan is damaged")
    return CommitPlan(**json.loads(head[_HEAD.size :]))


def plan_name(number: int) -> str:
    """The file of the plan with `number`."""
    return f"{number:08x}{SUFFIX}"
