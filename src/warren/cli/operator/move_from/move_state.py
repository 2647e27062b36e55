"""What a move has done so far, in a file of the operator: with it each step can be undone."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warren.cli.operator.failures import USAGE, Failure

_VERSION = 1
# The definitions of shovels and upstreams have passwords.
_OWNER_ONLY = 0o600


@dataclass(slots=True, kw_only=True)
class MoveState:
    """The record of a move; every change is saved before the next request."""

    # The old broker's address without credentials.
    old: str
    version: int = _VERSION
    # The steps that are done, in their order.
    done: list[str] = field(default_factory=list)
    # The virtual hosts of the old broker, and the definitions that Warren gets when it has stopped.
    vhosts: list[str] = field(default_factory=list)
    withheld: dict[str, Any] = field(default_factory=dict)
    # By step and section: what identifies what it has added to Warren's definitions, and the entries that it
    # has changed, as they were.
    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The shovels that are running: virtual host, name of the shovel, queue.
    shovels: list[list[str]] = field(default_factory=list)
    # Messages moved by shovels: virtual host, queue, number (negative if returned). Streams that are copied:
    # virtual host, name, messages of the old broker when the copy was complete (null while it is not).
    moved: list[list[Any]] = field(default_factory=list)
    streams: list[list[Any]] = field(default_factory=list)


class StateFile:
    """The file with the state of a move."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, old: str) -> MoveState:
        """Return the state in the file; a new one if there is none. Raises Failure."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            state = MoveState(**found)
        except FileNotFoundError:
            return MoveState(old=old)
        except OSError as error:
            raise Failure(f"{self._path}: {error.strerror}", USAGE) from None
        except (ValueError, TypeError):
            raise Failure(
                f"{self._path} is not the state of a move; name another file with --state", USAGE
            ) from None
        if state.version != _VERSION or state.old != old:
            raise Failure(
                f"{self._path} is about the move from {state.old}, not {old}; name another file with --state",
                USAGE,
            )
        return state

    def save(self, state: MoveState) -> None:
        """Replace the file. Raises Failure."""
        new = self._path.with_name(self._path.name + ".new")
        try:
            written = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(written, "w", encoding="utf-8") as file:
                json.dump(asdict(state), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            raise Failure(f"{self._path}: {error.strerror}", USAGE) from None
