"""Password hashes as RabbitMQ stores them: four octets of salt, then the hash of salt and password.

hash | salt 4 octets | digest of (salt, password as UTF-8) …
"""

from collections.abc import Callable, Mapping
from hashlib import md5, sha256, sha512
from hmac import compare_digest

SALT_SIZE = 4

ALGORITHMS: Mapping[str, Callable[[bytes], bytes]] = {
    "rabbit_password_hashing_sha256": lambda octets: sha256(octets).digest(),
    "rabbit_password_hashing_sha512": lambda octets: sha512(octets).digest(),
    # Only to let in users of documents from before RabbitMQ 3.6.
    "rabbit_password_hashing_md5": lambda octets: md5(octets, usedforsecurity=False).digest(),
}
DEFAULT_ALGORITHM = "rabbit_password_hashing_sha256"


def hash_password(password: str, salt: bytes) -> bytes:
    """The hash to store for `password`, with a salt that nobody can guess."""
    assert len(salt) == SALT_SIZE
    return salt + ALGORITHMS[DEFAULT_ALGORITHM](salt + _octets(password))


def is_password(password: str, stored: bytes, algorithm: str) -> bool:
    """True if `stored` is the hash of `password`; takes as long when it is not."""
    digest = ALGORITHMS.get(algorithm)
    if digest is None or len(stored) <= SALT_SIZE:
        return False
    salt = stored[:SALT_SIZE]
    return compare_digest(stored[SALT_SIZE:], digest(salt + _octets(password)))


def _octets(password: str) -> bytes:
    return password.encode("utf-8", "surrogateescape")
