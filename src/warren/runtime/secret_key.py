"""The secret key of a node, in a file that only its owner can read, and encryption with it (RFC 5297)."""

import contextlib
import os
from pathlib import Path

KEY_SIZE = 64


def read_or_create_key(path: Path) -> bytes:
    """Return the key in the file `path`, which is created, and synced, if there is none; raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        key = path.read_bytes()
        if len(key) != KEY_SIZE:
            raise OSError(f"it has {len(key)} bytes instead of {KEY_SIZE}")
        return key
    key = os.urandom(KEY_SIZE)
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return key


class SecretKey:
    """AES-SIV, which needs no random numbers: equal data are encrypted equally."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt `data`."""
        # Loaded only by brokers that store secrets (decision 0194).
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        return AESSIV(self._key).encrypt(data, None)

    def decrypt(self, data: bytes) -> bytes | None:
        """Decrypt `data`; None if they were encrypted with another key, or changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        try:
            return AESSIV(self._key).decrypt(data, None)
        except (InvalidTag, ValueError):
            return None
