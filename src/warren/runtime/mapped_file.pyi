"""What `mapped_file.c` gives: only where Warren is compiled."""

class MappedFile:
    """The first `size` bytes of the open file `file`, which is as large; the descriptor may be closed.

    OSError if the file system does not share memory.
    """

    size: int

    def __init__(self, file: int, size: int) -> None: ...
    def write(self, at: int, data: bytes, /) -> None:
        """Write `data` from byte `at` on, all of it in the file. OSError if the page cannot be written to."""

    def close(self) -> None:
        """Unmap the file, to which nothing can be written then."""
