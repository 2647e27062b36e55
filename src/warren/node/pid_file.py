"""The file with the id of the process of a node, for scripts that wait for the node or for its end."""

import os
from contextlib import suppress
from pathlib import Path

from warren.node.errors import BootRefused

_READABLE_BY_ALL = 0o644


class PidFile:
    """A file that contains the id of this process in decimal digits and a newline, until `remove`."""

    def __init__(self, name: str) -> None:
        """Write the file `name`, also in place of an older one; none if `name` is empty.

        Directories that do not exist are created. Raises BootRefused if the file cannot be written.
        """
        self._path = Path(name) if name else None
        self._content = f"{os.getpid()}\n"
        if self._path is None:
            return
        # Nobody reads half a number.
        written = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(self._content, encoding="ascii")
            written.chmod(_READABLE_BY_ALL)
            written.replace(self._path)
        except OSError as error:
            raise BootRefused(f"cannot write the process id to {name!r}: {error.strerror}") from error

    def remove(self) -> None:
        """Delete the file, unless it is that of another process by now."""
        if self._path is None:
            return
        with suppress(OSError, UnicodeDecodeError):
            if self._path.read_text(encoding="ascii") == self._content:
                self._path.unlink()
