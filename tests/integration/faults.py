"""A disk that fails on demand: faults.c is built here and preloaded into the broker process."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")


class NoCompiler(Exception):
    """There is no C compiler, so faults cannot be injected."""


class Faults:
    """The faults of processes that were started with `environment`."""

    def __init__(self, folder: Path) -> None:
        """Build the library in `folder`; raises NoCompiler if there is no compiler."""
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise NoCompiler("no C compiler, so no disk that fails on demand")
        library = folder / "faults.so"
        subprocess.run(
            [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True
        )
        self._rules = folder / "faults"
        self._rules.write_text("")
        self.environment = {"LD_PRELOAD": str(library), "WARREN_TEST_FAULTS": str(self._rules)}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block, calls that hang by the present rules do not return."""
        with self._rules.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def set(self, *rules: str) -> None:
        """From the next call on, apply `rules` (see faults.c) instead of the earlier ones."""
        new = self._rules.with_suffix(".new")
        new.write_text("".join(f"{rule}\n" for rule in rules))
        os.replace(new, self._rules)
