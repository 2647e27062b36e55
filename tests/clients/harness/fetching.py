"""Fetches third-party code: source distributions, npm packages, and an environment for each suite.

Everything is stored in one directory of the user's cache, so that a second run fetches nothing, also in
another checkout. Runs at the same time share it: each thing is fetched under a lock.
"""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.clients.harness.catalogue import Suite

USER_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("WARREN_CLIENTS_CACHE", USER_CACHE / "warren" / "clients"))
FETCH_S_MAX = 600
# The kinds of suites that come from npm.
NODE = ("npm", "mocha")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process is making `folder`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def source_of(suite: Suite) -> Path:
    """Return the unpacked source distribution of the suite's package, fetched on first use."""
    folder = CACHE / "sources" / f"{suite.package}-{suite.version}"
    with locked(folder):
        if not folder.exists():
            archive = download_npm(suite) if suite.kind in NODE else download_sdist(suite)
            unpack(archive, folder)
    return folder


def download_sdist(suite: Suite) -> Path:
    """Download the source distribution from PyPI, with its tests."""
    folder = CACHE / "archives" / f"{suite.package}-{suite.version}"
    pinned = f"{suite.package}=={suite.version}"
    pip(sys.executable, "download", "--no-binary", suite.package, "--no-deps", "-d", str(folder), pinned)
    return only_file(folder)


def download_npm(suite: Suite) -> Path:
    """Download the package from npm."""
    folder = CACHE / "archives" / f"{suite.package}-{suite.version}"
    folder.mkdir(parents=True, exist_ok=True)
    run(["npm", "pack", "--silent", f"{suite.package}@{suite.version}"], folder)
    return only_file(folder)


def only_file(folder: Path) -> Path:
    """Return the one archive in `folder`."""
    (archive,) = folder.iterdir()
    return archive


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the single top directory of the archive as `folder`, atomically."""
    partial = folder.with_suffix(".partial")
    with tarfile.open(archive) as content:
        content.extractall(partial, filter="data")
    (top,) = partial.iterdir()
    # A suite without a pytest configuration of its own must not find that of this project.
    (folder.parent / "pytest.ini").write_text("[pytest]\n")
    top.rename(folder)
    partial.rmdir()


def environment_of(suite: Suite) -> Path:
    """Return the `python` of an environment with the suite's packages, created on first use."""
    wanted = "\n".join((suite.package, suite.version, sys.version, *suite.requirements))
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:10]
    folder = CACHE / "environments" / f"{suite.name}-{digest}"
    python = folder / "bin" / "python"
    with locked(folder):
        if not (folder / "complete").exists():
            run([sys.executable, "-m", "venv", "--clear", str(folder)], CACHE)
            package = [str(source_of(suite))] if suite.package else []
            pip(str(python), "install", *package, *suite.requirements)
            (folder / "complete").touch()
    return python


def node_packages(*pinned: str) -> Path:
    """Return a `node_modules` directory with exactly the npm packages `pinned`, created on first use."""
    digest = hashlib.sha256("\n".join(pinned).encode()).hexdigest()[:10]
    folder = CACHE / "node" / digest
    with locked(folder):
        if not (folder / "complete").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}")
            run(["npm", "install", "--silent", "--no-audit", "--no-fund", *pinned], folder)
            (folder / "complete").touch()
    return folder / "node_modules"


def pip(python: str, *arguments: str) -> None:
    """Run pip without output."""
    run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], CACHE)


def run(command: list[str], folder: Path) -> None:
    """Run `command` in `folder`; its output is shown only if it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S_MAX, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
