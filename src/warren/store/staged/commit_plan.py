"""The plan of a commit: the stages of the batch, decided once before its first row is published.

    file │ "WRNPLN" │ version u16 │ size u32 │ plan, JSON, `size` bytes │ checksum u32 │

The name of the file is a number, `0000002b.plan`. While it exists its batch is being published, also after a
restart.
"""

import json
from struct import Struct

import msgspec
from google_crc32c import value as checksum_of
from msgspec.structs import asdict

from warren.store.disk import CreateFile, Disk, RenameFile, SyncDirectory, SyncFile, WriteFile
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.staged.stage import PART

VERSION = 1
SUFFIX = ".plan"
_MAGIC = b"WRNPLN"
_HEAD = Struct(">6sHI")
_CHECKSUM_SIZE = 4


class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The stages that are published, their order, and the user."""

    number: int
    query: str
    batch: int
    user: str
    # Numbers of stages.
    stages: list[int]
    rows: int

    @property
    def name(self) -> str:
        """The file name."""
        return plan_name(self.number)


def write_plan(disk: Disk, plan: CommitPlan) -> None:
    """Write `plan`, which makes the commit final. After an OSError the plan may or may not be on disk."""
    text = json.dumps(asdict(plan)).encode()
    head = _HEAD.pack(_MAGIC, VERSION, len(text)) + text
    data = head + int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big")
    part = plan.name + PART
    disk.perform(
        [
            CreateFile(part, len(data)),
            WriteFile(part, 0, [data]),
            SyncFile(part),
            RenameFile(part, plan.name),
            SyncDirectory(),
        ]
    )


def open_plan(disk: Disk, number: int, size: int) -> CommitPlan:
    """Read the plan with `number`; StoreFileError if it is damaged, OSError if it cannot be read."""
    name = plan_name(number)
    data = disk.read(name, 0, size)
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise StoreFileError(name, 0, "not a commit plan")
    _, version, text_size = _HEAD.unpack_from(data)
    if version > VERSION:
        raise NewerFormatError(
            name,
            6,
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    head = data[: _HEAD.size + text_size]
    if int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big") != data[len(head) :]:
        raise StoreFileError(name, 0, "the plan is damaged")
    return CommitPlan(**json.loads(head[_HEAD.size :]))


def plan_name(number: int) -> str:
    """The file name of the plan with `number`."""
    return f"{number:08x}{SUFFIX}"
