"""What `write_thread.c` gives: only where Warren is compiled."""

from collections.abc import Sequence

class WriteThread:
    """A thread that does one job at a time; belongs to one loop."""

    def __init__(self, name: str) -> None: ...
    def submit(self, steps: Sequence[tuple[object, ...]], /) -> None:
        """Perform the steps of a list, which must not change, in order and up to the first that fails."""

    def result(self) -> tuple[int, int, tuple[int, ...]] | None:
        """Of the job that has ended: the errno or 0, the place of the failed step, the descriptors opened.

        None if it has not ended.
        """

    def fileno(self) -> int:
        """Readable when a job has ended."""

    def close(self) -> None:
        """End the thread, when the job that it has begun is done; nobody is told of it."""
