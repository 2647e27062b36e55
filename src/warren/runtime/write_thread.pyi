"""What `write_thread.c` gives: only where Warren is compiled."""

class WriteThread:
    """A thread that does one job at a time; belongs to one loop."""

    def __init__(self, name: str) -> None: ...
    def submit(self, file: int, at: int, chunks: list[bytes], is_synced: bool, /) -> None:
        """Write `chunks` into the open `file` from octet `at` on, then sync it."""

    def result(self) -> int | None:
        """The errno of the job that has ended, 0 if all is well; None if it has not."""

    def fileno(self) -> int:
        """Readable when a job has ended."""

    def close(self) -> None:
        """End the thread, when the job that it has begun is done; nobody is told of it."""
