"""The recording library that is preloaded into a broker, built on this machine."""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("recorder.c")


def why_impossible() -> str:
    """The reason why it cannot be built; empty if it can."""
    return "" if shutil.which("cc") else "there is no C compiler"


def built(folder: Path) -> Path:
    """Build the library in `folder`."""
    library = folder / "recorder.so"
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-O2",
        "-Wall",
        "-Werror",
        "-o",
        str(library),
        str(SOURCE),
        "-ldl",
        "-lpthread",
    ]
    subprocess.run(command, check=True)
    return library
