"""The cookie of a cluster: the secret by which its nodes know each other.

The first that there is of: the setting, the variable `RABBITMQ_ERLANG_COOKIE`, the file `~/.erlang.cookie`,
and the file `cookie` in the data directory, which is made with random characters if there is none. No text of
an error contains any of it.
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from warren.limits_cluster import CLUSTER_COOKIE_SIZE_MAX
from warren.runtime.private_file import replace_private_file

COOKIE_VARIABLE = "RABBITMQ_ERLANG_COOKIE"
_ERLANG_NAME = ".erlang.cookie"
_NAME = "cookie"
# Each is one of 32 characters, so that 160 bits are random.
_GENERATED_SIZE = 32
_CHARACTERS = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


class CookieError(Exception):
    """There is no usable cookie; the text says where, and what to do."""


def find_cookie(
    configured: str,
    environment: Mapping[str, str],
    directory: Path | None,
    random_bytes: Callable[[int], bytes],
) -> bytes:
    """Return the cookie. Raises CookieError.

    Without a data directory a generated cookie is of this start only.
    """
    if configured:
        return _checked(configured.encode(), "cluster.cookie")
    if variable := environment.get(COOKIE_VARIABLE):
        return _checked(variable.encode(errors="surrogateescape"), COOKIE_VARIABLE)
    home = environment.get("HOME", "")
    if home:
        found = _read(Path(home) / _ERLANG_NAME)
        if found is not None:
            return found
    if directory is None:
        return _generate(random_bytes)
    path = directory / _NAME
    found = _read(path)
    if found is None:
        found = _generate(random_bytes)
        try:
            replace_private_file(path, found)
        except OSError as error:
            raise CookieError(f"cannot write the cookie to {path}: {error.strerror}") from None
    return found


def _generate(random_bytes: Callable[[int], bytes]) -> bytes:
    return bytes(_CHARACTERS[octet % len(_CHARACTERS)] for octet in random_bytes(_GENERATED_SIZE))


def _read(path: Path) -> bytes | None:
    """Return the cookie in the file `path`; None if there is no such file."""
    try:
        # Not a pipe, which could keep the start for ever.
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CookieError(f"cannot read the cookie in {path}: {error.strerror}") from None
    try:
        mode = os.fstat(opened).st_mode
        if not stat.S_ISREG(mode):
            raise CookieError(f"the cookie {path} is not a file")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CookieError(f"the cookie {path} is accessible by others: set its mode to 0600")
        # With the end of its line.
        return _checked(os.read(opened, CLUSTER_COOKIE_SIZE_MAX + 2), str(path))
    finally:
        os.close(opened)


def _checked(raw: bytes, where: str) -> bytes:
    cookie = raw.strip()
    if not cookie:
        raise CookieError(f"the cookie in {where} is empty")
    if len(cookie) > CLUSTER_COOKIE_SIZE_MAX:
        raise CookieError(f"the cookie in {where} has more than {CLUSTER_COOKIE_SIZE_MAX} bytes")
    return cookie
