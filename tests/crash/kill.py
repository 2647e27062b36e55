"""Kills a broker with SIGKILL while clients publish, consume and declare, repeatedly on one directory.

Every other time it is killed at a chosen system call: during a write, before a sync, or before a rename.
After each restart its contents are compared with everything that clients were told. The last line counts the
kills.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pika.exceptions import AMQPError  # noqa: E402
from tests.crash.checking import check  # noqa: E402
from tests.crash.load import ClientHistory, Load  # noqa: E402
from tests.crash.recording import built, why_impossible  # noqa: E402
from tests.integration.broker_process import BrokerProcess  # noqa: E402
from tests.patience import patient  # noqa: E402

KILLS = 20
# The broker is killed after at most this number of such calls: the first few happen during its start.
CALLS_MAX = {"pwrite": 600, "fdatasync": 400, "fsync": 12, "rename": 5, "open": 8, "unlink": 2}
# A chosen call that does not happen is not waited for any longer.
LOAD_SECONDS_MAX = 3.0
# What remains of a killed process is gone by then.
END_SECONDS_MAX = patient(10.0)
REPORT_EVERY = 10
KEPT = ROOT / "build" / "crash"


def main() -> int:
    """Kill the broker as often as requested; 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="warren-crash-") as folder:
        killing = Killing(Path(folder), random.Random(options.seed))
        try:
            for _ in range(options.kills):
                killing.once()
            killing.last()
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            shutil.copytree(killing.data, KEPT, dirs_exist_ok=True)
            what = f"{type(error).__name__}: {error}; the directory is kept in {KEPT.relative_to(ROOT)}"
            print(f"FAILED seed {options.seed} after {killing.kills} kills: {' '.join(what.split())}")
            print(f"{killing.kills} passed, 1 failed, 0 skipped")
            return 1
    print(f"{killing.checks} starts checked, {killing.found} messages found in all, {dict(killing.points)}")
    print(f"{killing.kills} passed, 0 failed, 0 skipped")
    return 0


class Killing:
    """One data directory, and what clients know of it."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.data = folder / "data"
        self._chance = chance
        self._library = None if why_impossible() else built(folder)
        self._history = ClientHistory()
        self.kills = 0
        self.checks = 0
        self.found = 0
        # The place of the kill -> how often.
        self.points: Counter[str] = Counter()

    def once(self) -> None:
        """Start, check, load and kill."""
        forced = self._library is not None and self.kills % 2 == 1
        kind = self._chance.choice(list(CALLS_MAX)) if forced else ""
        point = f"{kind}:{self._chance.randrange(1, CALLS_MAX[kind] + 1)}" if forced else ""
        broker = self._started(point)
        try:
            self._use(broker)
        finally:
            is_over = broker.process.poll() is not None
            broker.process.kill()
            broker.process.communicate()
        self.kills += 1
        self.points[kind if is_over and forced else "at random"] += 1
        if not self.kills % REPORT_EVERY:
            print(f"{self.kills} kills, {self.found} messages found so far", flush=True)

    def last(self) -> None:
        """Check the final contents, after a start without a kill."""
        broker = self._started("")
        try:
            broker.wait_ready()
            self._check(broker)
        finally:
            broker.process.kill()
            broker.process.communicate()

    def _use(self, broker: BrokerProcess) -> None:
        try:
            broker.wait_ready()
        except AssertionError:
            assert broker.process.returncode == -9, "".join(broker.lines)
            return
        try:
            self._check(broker)
        except (AMQPError, OSError):
            # Killed during the check: nothing more is known than before. If it lives on, its error counts.
            if not _is_killed(broker):
                raise
        load = Load(broker.port, self._history, self._chance)
        until = time.monotonic() + (LOAD_SECONDS_MAX if self.kills % 2 else self._chance.uniform(0.05, 1.0))
        while time.monotonic() < until and broker.process.poll() is None and not load.errors:
            time.sleep(0.005)
        broker.process.kill()
        load.join()

    def _check(self, broker: BrokerProcess) -> None:
        self.found += check(broker.port, self._history, self._chance)
        self.checks += 1
        assert not any("damaged" in line for line in broker.lines), "".join(broker.lines)

    def _started(self, point: str) -> BrokerProcess:
        environment = {"WARREN_ROOT": str(self.data)}
        if point:
            environment |= {"LD_PRELOAD": str(self._library), "WARREN_KILL": point}
        return BrokerProcess(["--data-dir", str(self.data)], environment)


def _is_killed(broker: BrokerProcess) -> bool:
    """Whether the broker was killed; its clients may notice that before it can be waited for."""
    try:
        return broker.process.wait(END_SECONDS_MAX) == -signal.SIGKILL
    except subprocess.TimeoutExpired:
        return False


if __name__ == "__main__":
    sys.exit(main())
