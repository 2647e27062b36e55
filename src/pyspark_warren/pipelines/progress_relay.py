"""What a query tells of itself where its batches are written, and where it was started.

On Spark Connect these are two processes: a batch is written on the server, and who started the query waits on
the client. Both see the folder of the lake, so it goes through a file there, and the query's id is read from
its checkpoint, where Spark has written it before the first batch.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def query_id(checkpoint: Path) -> str:
    """The id of the query that has this checkpoint: the same whenever it is started again."""
    found: str = json.loads((checkpoint / "metadata").read_text())["id"]
    return found


class ProgressRelay:
    """A listener that can be sent to another process; what it is told there is taken here."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for this alone, and seen by both processes under the same path."""
        self._folder = folder
        self._file = folder / "told.jsonl"
        self._taken = 0

    def __call__(self, told: "DataclassInstance") -> None:
        """Leave a line; whole, as a line is one write."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as lines:
            lines.write(json.dumps(asdict(told)) + "\n")

    def take(self) -> Iterator[dict[str, Any]]:
        """What has come since the last time."""
        if not self._file.exists():
            return
        with self._file.open("rb") as lines:
            lines.seek(self._taken)
            for line in lines:
                if line.endswith(b"\n"):
                    self._taken += len(line)
                    yield json.loads(line)

    def close(self) -> None:
        """Remove what was left."""
        shutil.rmtree(self._folder, ignore_errors=True)
