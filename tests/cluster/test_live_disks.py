"""Quorum queues with three replicas, on nodes whose disks hang, are slow, full or fail: others lead.

A preloaded library has the calls of one node fail, those on its messages or on all its files.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.test_live import Load
from tests.cluster.test_live_quorum import QUORUM
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.integration.faults import Faults, NoCompiler
from tests.patience import patient

# The node whose disk fails leads this queue at first.
FAILING, QUEUE = "a", "on.a"
# A slow disk is noticed after some ticks; then comes an election, on a machine that is busy with other tests.
GAP_S_MAX = patient(20)
# One sync takes longer than the ticks after which a leader with a slow disk resigns.
SLOW_MS = 4_000


class FailingDisk:
    """A cluster of which one node has a disk that fails on demand."""

    def __init__(self, cluster: WarrenCluster, faults: Faults) -> None:
        self.cluster = cluster
        self.faults = faults
        self.messages = f"{cluster.nodes[FAILING].data}/vhosts/"

    def wait_led_elsewhere(self) -> None:
        self.cluster.wait(
            lambda: self.cluster.leader(QUEUE, "b") not in ("", FAILING), "another node leads", GAP_S_MAX
        )


@pytest.fixture
def disk(tmp_path: Path, quiet_clients: None) -> Iterator[FailingDisk]:
    try:
        faults = Faults(tmp_path)
    except NoCompiler as error:
        pytest.skip(str(error))
    with warren_cluster(tmp_path, **faults.environment) as cluster:
        yield FailingDisk(cluster, faults)


def hang(disk: FailingDisk) -> Callable[[], None]:
    held = ExitStack()
    disk.faults.set(f"fdatasync hang 0 {disk.messages}")
    held.enter_context(disk.faults.held())
    return held.close


def delay(disk: FailingDisk) -> Callable[[], None]:
    disk.faults.set(f"fdatasync delay {SLOW_MS} {disk.messages}")
    return lambda: None


def fail(call: str, number: int) -> Callable[[FailingDisk], Callable[[], None]]:
    def begin(disk: FailingDisk) -> Callable[[], None]:
        disk.faults.set(f"{call} errno {number} {disk.messages}")
        return lambda: None

    return begin


FAULTS = {
    "hangs": hang,
    "is_slow": delay,
    "is_full": fail("write", errno.ENOSPC),
    "cannot_write": fail("write", errno.EIO),
    "cannot_sync": fail("fdatasync", errno.EIO),
}
# With these the virtual host of the node goes down.
BROKEN = (FAULTS["cannot_write"], FAULTS["cannot_sync"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_others_lead_while_the_disk_of_the_leader_fails(
    disk: FailingDisk, fault: Callable[[FailingDisk], Callable[[], None]]
) -> None:
    load = Load(disk.cluster, QUORUM)
    load.wait_confirmed()
    release = fault(disk)
    try:
        disk.wait_led_elsewhere()
        # Clients of the other nodes go on.
        load.wait_confirmed(GAP_S_MAX, load.publishers[1:])
    finally:
        disk.faults.set()
        release()
    if fault in BROKEN:
        # Its virtual host is down until the node is started again.
        disk.cluster.stop(FAILING)
        disk.cluster.start(FAILING)
    disk.cluster.wait(disk.cluster.is_whole, "all nodes see one another", 60)
    load.wait_confirmed()
    load.check()
