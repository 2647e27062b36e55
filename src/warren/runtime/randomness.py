"""Random bytes from the operating system, for everything below the waterline that needs randomness."""

import os


def random_bytes(size: int) -> bytes:
    """`size` random bytes, suitable for secrets."""
    return os.urandom(size)
