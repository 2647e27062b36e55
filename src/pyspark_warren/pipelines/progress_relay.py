"""Passes the progress of a query from the process that writes batches to the one that started the query.

With Spark Connect these are two processes: the server writes the batches, and the client waits for the query.
Both see the folder of the lake, so progress is passed through a file there. The id of the query is read from
its checkpoint, where Spark writes it before the first batch.
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
    """Return the id of the query with this checkpoint, which does not change when it is restarted."""
    found: str = json.loads((checkpoint / "metadata").read_text())["id"]
    return found


class ProgressRelay:
    """A listener that is pickled to another process, and passes the progress from there."""

    def __init__(self, folder: Path) -> None:
        """`folder` is used by this relay only, and both processes see it under the same path."""
        self._folder = folder
        self._file = folder / "told.jsonl"
        self._taken = 0

    def __call__(self, told: "DataclassInstance") -> None:
        """Append the progress as one line of JSON, in one write."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as lines:
            lines.write(json.dumps(asdict(told)) + "\n")

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield the progress since the last call."""
        if not self._file.exists():
            return
        with self._file.open("rb") as lines:
            lines.seek(self._taken)
            for line in lines:
                if line.endswith(b"\n"):
                    self._taken += len(line)
                    yield json.loads(line)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
