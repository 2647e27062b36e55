"""Listening on a Unix socket: its file, which says who may connect."""

import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path


def is_unix(host: str) -> bool:
    """True if `host` is the path of a Unix socket, and no host of a network."""
    return host.startswith("/")


def bind_unix(path: str, mode: int, backlog: int) -> socket.socket:
    """A socket listening at `path`, whose file has the permissions `mode`.

    A socket's file that nobody listens on any more is replaced. Raises OSError for any other file, and if
    somebody listens.
    """
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux creates the file with the mode of the socket, so that nobody else connects before `chmod`.
        os.fchmod(listening.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        listening.setblocking(False)
        listening.bind(path)
        Path(path).chmod(mode)
        listening.listen(backlog)
    except BaseException:
        listening.close()
        raise
    return listening


def file_number(path: str) -> tuple[int, int]:
    """What identifies the file at `path`: its device and its inode; zeros without a file."""
    try:
        found = Path(path).lstat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def remove_unix(path: str, number: tuple[int, int]) -> None:
    """Remove the file of the socket at `path`, unless it is not the one with `number` any more."""
    if file_number(path) == number:
        with suppress(OSError):
            Path(path).unlink()


def _remove_stale(path: str) -> None:
    """Remove the file of a socket at `path` if nobody listens on it; OSError if there is another file."""
    try:
        found = Path(path).lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise FileExistsError(errno.EEXIST, "the file exists and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
        attempt.setblocking(False)
        try:
            attempt.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except BlockingIOError:
            # Its backlog is full.
            pass
    raise OSError(errno.EADDRINUSE, "somebody listens on the socket")
