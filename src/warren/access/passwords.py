"""Password hashes: those that RabbitMQ stores, and argon2id, with which new ones are made.

RabbitMQ   | salt 4 bytes | digest of (salt, password as UTF-8) …
PBKDF2     | salt | key of 32 bytes; the salt has 16 bytes in RabbitMQ 4.4, and had 4 before its release
argon2id   | $argon2id$v=19$m=19456,t=2,p=1$salt$digest, both in base64 (the PHC string format)
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import md5, pbkdf2_hmac, sha256, sha512
from hmac import compare_digest

from argon2 import Type, extract_parameters
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import ARGON2_VERSION, hash_secret, verify_secret

from warren.limits import (
    ARGON2_LANES_MAX,
    ARGON2_MEMORY_KIB,
    ARGON2_MEMORY_KIB_MAX,
    ARGON2_PASSES,
    ARGON2_PASSES_MAX,
)
from warren.metadata.users import PasswordHash

# The algorithm of new hashes.
SALT_SIZE = 16

ARGON2ID = "warren_password_hashing_argon2id"
SHA256 = "rabbit_password_hashing_sha256"
SHA512 = "rabbit_password_hashing_sha512"
PBKDF2_SHA256 = "rabbit_password_hashing_pbkdf2_sha256"

_SALT_SIZE = 4
_DIGEST_SIZE = 32
DECOY_SIZE = SALT_SIZE + _DIGEST_SIZE
_DIGESTS: Mapping[str, Callable[[bytes], bytes]] = {
    SHA256: lambda data: sha256(data).digest(),
    SHA512: lambda data: sha512(data).digest(),
    # Only to accept users in definitions exported before RabbitMQ 3.6.
    "rabbit_password_hashing_md5": lambda data: md5(data, usedforsecurity=False).digest(),
}
# Those with which new passwords can be hashed.
NEW_HASHES = (ARGON2ID, PBKDF2_SHA256, SHA256, SHA512)
ALGORITHMS = frozenset((ARGON2ID, PBKDF2_SHA256, *_DIGESTS))
# RabbitMQ 4.4's number, which belongs to the name of the algorithm: the hash does not say it.
_PBKDF2_ROUNDS = 210_000


# The password of the first user, unless a setting gives another one, and its hash. The documentation
# publishes it, so that a salt of its own would protect nothing, and hashing takes 30 ms of a first start.
PUBLISHED_PASSWORD = "guest"
PUBLISHED_PASSWORD_HASH = PasswordHash(
    b"$argon2id$v=19$m=19456,t=2,p=1$lwGrfoarM6CvzR3al78xSQ$CjcuPC9+t7hVmp+8o6wrEMO/ppAz7kWBWFIrvHO32cQ",
    ARGON2ID,
)


def hash_password(password: str, salt: bytes, algorithm: str = ARGON2ID) -> PasswordHash:
    """The hash of `password` to be stored; `salt` must be random."""
    assert len(salt) == SALT_SIZE
    secret = _utf8(password)
    if algorithm == ARGON2ID:
        hashed = hash_secret(
            secret, salt, ARGON2_PASSES, ARGON2_MEMORY_KIB, 1, hash_len=_DIGEST_SIZE, type=Type.ID
        )
        return PasswordHash(hashed, ARGON2ID)
    if algorithm == PBKDF2_SHA256:
        return PasswordHash(salt + _pbkdf2(secret, salt), PBKDF2_SHA256)
    short = salt[:_SALT_SIZE]
    return PasswordHash(short + _DIGESTS[algorithm](short + secret), algorithm)


def decoy_hash(data: bytes) -> PasswordHash:
    """A hash that no password matches: comparing with it takes as long as with a real one, making it no time.

    `data` are its salt and its digest: DECOY_SIZE random bytes.
    """
    salt, digest = (
        b64encode(part).rstrip(b"=").decode("ascii") for part in (data[:SALT_SIZE], data[SALT_SIZE:])
    )
    costs = f"m={ARGON2_MEMORY_KIB},t={ARGON2_PASSES},p=1"
    return PasswordHash(f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}".encode("ascii"), ARGON2ID)


def is_password(password: str, stored: PasswordHash) -> bool:
    """True if `stored` is the hash of `password`; a wrong password takes as long as the right one."""
    if stored.algorithm == ARGON2ID:
        return is_affordable(stored) and _is_argon2_of(_utf8(password), stored.salted_hash)
    if stored.algorithm == PBKDF2_SHA256:
        salt, key = stored.salted_hash[:-_DIGEST_SIZE], stored.salted_hash[-_DIGEST_SIZE:]
        return bool(salt) and compare_digest(key, _pbkdf2(_utf8(password), salt))
    digest = _DIGESTS.get(stored.algorithm)
    if digest is None or len(stored.salted_hash) <= _SALT_SIZE:
        return False
    salt = stored.salted_hash[:_SALT_SIZE]
    return compare_digest(stored.salted_hash[_SALT_SIZE:], digest(salt + _utf8(password)))


def is_quick(stored: PasswordHash) -> bool:
    """True if verifying a password against `stored` takes microseconds: not with argon2 or PBKDF2."""
    return stored.algorithm not in (ARGON2ID, PBKDF2_SHA256)


def is_affordable(stored: PasswordHash) -> bool:
    """False if `stored` is not a valid hash, or verifying it would take too much memory or time."""
    if stored.algorithm != ARGON2ID or not stored.salted_hash:
        return True
    try:
        parameters = extract_parameters(stored.salted_hash.decode("ascii"))
    except (InvalidHashError, ValueError):
        return False
    return (
        parameters.type is Type.ID
        and parameters.memory_cost <= ARGON2_MEMORY_KIB_MAX
        and parameters.time_cost <= ARGON2_PASSES_MAX
        and parameters.parallelism <= ARGON2_LANES_MAX
    )


def _pbkdf2(secret: bytes, salt: bytes) -> bytes:
    return pbkdf2_hmac("sha256", secret, salt, _PBKDF2_ROUNDS, _DIGEST_SIZE)


def _is_argon2_of(secret: bytes, hashed: bytes) -> bool:
    try:
        return verify_secret(hashed, secret, Type.ID)
    except Argon2Error:
        return False


def _utf8(password: str) -> bytes:
    return password.encode("utf-8", "surrogateescape")
