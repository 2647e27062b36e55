"""Random octets from the operating system, handed to everything below the waterline that needs chance."""

import os


def random_octets(size: int) -> bytes:
    """`size` octets that nobody can guess."""
    return os.urandom(size)
