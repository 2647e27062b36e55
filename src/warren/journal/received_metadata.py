"""Metadata that another member has sent: the payload of a snapshot of the metadata group.

On the way they are an image: the bytes of a `JournalSnapshot`, which begins as a file of the log does.
"""

from msgspec import Struct

from warren.journal.codec import CodecError
from warren.journal.file_format import JournalError
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.log_reader import RecoveredLog, replay
from warren.metadata.machine import Metadata

# The image is read as that of a node that is no voter: nothing in it is applied that is not committed.
_NO_NODE = 0


class ReceivedMetadata(Struct, frozen=True):
    """Metadata, and the time of the last command in them (ms since the epoch)."""

    metadata: Metadata
    now: int


def read_image(data: bytes) -> ReceivedMetadata:
    """Read an image. CodecError if it is none, or not complete."""
    metadata = Metadata()
    found = RecoveredLog(mark=HighWaterMarkFile(None))
    try:
        replay(data, metadata, found, node=_NO_NODE)
    except JournalError as error:
        raise CodecError(str(error)) from error
    if found.damage:
        raise CodecError(str(found.damage[0]))
    return ReceivedMetadata(metadata, found.now)
