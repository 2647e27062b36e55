"""Deletes what a data directory has of the time before its node joined, or after it has left, a cluster."""

import shutil
from pathlib import Path

from warren.node.vhost_folders import METADATA, VHOSTS
from warren.runtime.private_file import sync_directory

# What belongs to the metadata that go: objects, messages, and what is known of lost and surplus ones. The
# key of secrets, the identity and the cookie are those of the node, and stay.
_ERASED = (VHOSTS, "quarantine", "losses", "sessions", METADATA)


def erase(directory: Path) -> None:
    """Delete metadata and messages in `directory`; called again after an interruption. Raises OSError.

    The metadata go last: messages without metadata are nothing that a start continues with.
    """
    for name in _ERASED:
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        sync_directory(directory)
