"""Which Java is selected, and how one that lacks a module is started."""

import subprocess
from pathlib import Path

from warren.cli.spark.java import VECTOR, examine, find_java, java_home

ANSWER = """#!/bin/sh
case "$*" in
    *--add-modules*) exit {vector} ;;
    *-version*) echo "    java.version = {version}" >&2 ;;
    *) echo "$@" ;;
esac
"""


def java(folder: Path, version: str, *, has_vector: bool = True) -> Path:
    """A program that prints the version as Java does."""
    program = folder / version / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(ANSWER.format(version=version, vector=0 if has_vector else 1))
    program.chmod(0o755)
    return program.parent.parent


def test_java_home_has_precedence_over_the_path(tmp_path: Path) -> None:
    home, other = java(tmp_path, "17.0.1"), java(tmp_path, "21.0.2")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found is not None
    assert (found.home, found.version, found.major, found.origin) == (home, "17.0.1", 17, "JAVA_HOME")


def test_a_supported_version_has_precedence_over_others(tmp_path: Path) -> None:
    supported = java(tmp_path, "21.0.2")
    for version in ("1.8.0_402", "11.0.1", "25-ea"):
        found = find_java({"JAVA_HOME": str(java(tmp_path, version)), "PATH": str(supported / "bin")})
        assert found is not None
        assert found.version == "21.0.2"


def test_a_program_that_does_not_print_a_version_is_not_java(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    assert examine(tmp_path, "here") is None
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert examine(tmp_path, "here") is None


def test_a_java_without_the_module_is_started_through_a_wrapper_that_drops_the_option(tmp_path: Path) -> None:
    home = java(tmp_path / "it's here", "21.0.2", has_vector=False)
    found = examine(home, "here")
    assert found is not None
    assert not found.has_vector
    program = java_home(found) / "bin" / "java"
    command = [program, "-Xmx1g", f"--add-modules={VECTOR}", "-cp", "a b", "Main", "$x"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == "-Xmx1g -cp a b Main $x\n"
    )


def test_a_java_with_the_module_is_started_unchanged(tmp_path: Path) -> None:
    found = examine(java(tmp_path, "17.0.1"), "here")
    assert found is not None
    assert java_home(found) == found.home
