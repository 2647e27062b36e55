"""Memory and disk of the machine, read from the files of the kernel and from constructed ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warren.runtime.machine import Machine

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def made_up(root: Path, files: dict[str, str]) -> Machine:
    """A machine whose kernel has these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine(root)


MEASURED = """
from warren.runtime.machine import Machine
machine = Machine()
before = machine.memory_used()
# Small enough for the allocator's own heap, which keeps what is freed below the last piece.
pieces = [bytes(20_000) for _ in range(2_000)]
used = machine.memory_used()
del pieces[:-1]
machine.trim_memory()
print(used - before, used - machine.memory_used())
"""


HASHED = """
from concurrent.futures import ThreadPoolExecutor
from warren.access.passwords import hash_password
from warren.runtime.machine import Machine, return_large_blocks
return_large_blocks()
machine = Machine()
with ThreadPoolExecutor(4) as threads:
    hashed = lambda _: hash_password("secret", b"0123456789abcdef")
    hashed(None)
    before = machine.memory_used()
    list(threads.map(hashed, range(8)))
    print(machine.memory_used() - before)
"""


def test_threads_that_have_hashed_passwords_keep_none_of_the_memory() -> None:
    # Each hash takes 19 MiB, which the allocator would keep for each thread, and not give to others.
    figures = subprocess.run([sys.executable, "-c", HASHED], capture_output=True, text=True, check=True)
    assert int(figures.stdout) < 20_000_000


def test_memory_that_is_allocated_and_returned_is_measured() -> None:
    # In a process of its own, because a fragmented heap would hide both.
    figures = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert all(int(figure) > 30_000_000 for figure in figures.stdout.split())


def test_without_proc_the_used_memory_is_unknown(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.memory_used() is None
    assert machine.memory_total() == PHYSICAL


@pytest.mark.parametrize(
    ("files", "total"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, PHYSICAL),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "5000\n"}, 5000),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": "5000\n",
                "sys/fs/cgroup/a/memory.max": "4000\n",
            },
            4000,
        ),
        ({"proc/self/cgroup": "0::/elsewhere\n", "sys/fs/cgroup/memory.max": "3000\n"}, 3000),
        (
            {
                "proc/self/cgroup": "8:pids:/a\n4:memory:/a\n0::/\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            2000,
        ),
    ],
)
def test_the_smallest_of_machine_and_control_group_limits_counts(
    tmp_path: Path, files: dict[str, str], total: int
) -> None:
    assert made_up(tmp_path, files).memory_total() == total


def test_free_disk_space_is_measured(tmp_path: Path) -> None:
    assert Machine().disk_free(tmp_path) > 0
    with pytest.raises(FileNotFoundError):
        Machine().disk_free(tmp_path / "nowhere")
