"""Two runs of the clients' suites at the same time do not disturb each other."""

import contextlib
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.clients.harness import fetching
from tests.clients.harness.catalogue import Suite

# How long the first of two threads waits for the second one, which must not come.
MEETING_S_MAX = 0.5


def test_two_runs_that_use_a_package_fetch_it_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = Suite(name="client", kind="sdist", package="client", version="1.0")
    (tmp_path / "client.py").write_text("")
    archive = tmp_path / "client-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(tmp_path / "client.py", "client-1.0/client.py")
    downloads = []
    both = threading.Barrier(2)

    def download(suite: Suite) -> Path:
        downloads.append(suite.package)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(MEETING_S_MAX)
        return archive

    monkeypatch.setattr(fetching, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(fetching, "download_sdist", download)
    with ThreadPoolExecutor(2) as pool:
        folders = set(pool.map(fetching.source_of, [suite, suite]))
    assert downloads == ["client"]
    (folder,) = folders
    assert (folder / "client.py").exists()
