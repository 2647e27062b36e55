"""The C module that parses external input, compiled with AddressSanitizer, in place of the
installed one.
"""

import os
import subprocess
import sysconfig
from pathlib import Path

# The source of the module that is compiled, and the target that calls it.
SOURCE = Path("warren/arrow/shape_columns.c")
TARGET = "shapes"
# Where a child process finds the module; set only if it shall load it.
VARIABLE = "WARREN_FUZZ_SANITIZED"


def compiled(sources: Path, folder: Path) -> dict[str, str]:
    """Compile into `folder`; returns the environment of a process that shall load the result."""
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / f"{SOURCE.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-fno-omit-frame-pointer"]
    include = sysconfig.get_paths()["include"]
    command = ["gcc", "-shared", "-fPIC", *flags, f"-I{include}", "-o", str(module), str(sources / SOURCE)]
    subprocess.run(command, check=True)
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    return {
        VARIABLE: str(folder),
        "LD_PRELOAD": found.stdout.strip(),
        # Python never frees much of its memory; its allocator would hide accesses behind the end of a block.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1",
        "PYTHONMALLOC": "malloc",
    }


def load() -> bool:
    """Import the sanitized module in place of the other, if this process shall; returns whether it did."""
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return False
    import warren.arrow

    warren.arrow.__path__.insert(0, folder)
    from warren.arrow import shape_columns, shapes

    assert str(shape_columns.__file__).startswith(folder)
    assert shapes.IS_COMPILED, "the columns module was imported before"
    return True
