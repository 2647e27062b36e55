"""Records the file operations of a real broker under load, and simulates power cuts at many places of the
record.

For each place a directory is built that contains everything synced, and an arbitrary part of the rest. The
broker's own recovery reads it, and what clients had been told by then must be true. That the syncs matter is
tested as well: without those of files, or of directories, something must be lost.

Then bits of the log of quorum queues are flipped while their broker is stopped (`rot`).
"""

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.crash.checking import check  # noqa: E402
from tests.crash.load import ClientHistory as Asked  # noqa: E402
from tests.crash.load import Load, name_of  # noqa: E402
from tests.crash.recording import built, why_impossible  # noqa: E402
from tests.crash.recovered_directory import DamageError, bodies_in  # noqa: E402
from tests.crash.rot import Rotting  # noqa: E402
from tests.crash.simulated_files import Call, Files, calls  # noqa: E402
from tests.crash.wire_history import WireHistory  # noqa: E402
from tests.integration.broker_process import BrokerProcess  # noqa: E402

from warren.journal.file_format import JournalError  # noqa: E402
from warren.store.segment import StoreFileError  # noqa: E402

CUTS = 150
LOAD_SECONDS = 2.0
# Each is two starts of a broker, a second or two.
ROTS = 3
# Enough cuts for a loss when syncs are left out.
CUTS_WITHOUT_SYNCS = 40


# A directory in memory, where recovery does not wait for a disk, if there is one.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class LostError(Exception):
    """Something that a client was told is not true any more."""


def main() -> int:
    """Record, cut and compare; 0 if nothing was lost that should not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--rots", type=int, default=ROTS)
    parser.add_argument("--seconds", type=float, default=LOAD_SECONDS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failed = rot(options.rots, options.seed)
    if reason := why_impossible():
        print(f"{reason}: nothing is recorded")
        print(f"{options.rots - failed} passed, {failed} failed, 1 skipped")
        return 1 if failed else 0
    with tempfile.TemporaryDirectory(prefix="warren-power-") as name:
        folder = Path(name).resolve()
        recorded = record(folder, options.seconds, options.seed)
        for text in cut(recorded, folder, options.cuts, options.seed):
            print(f"FAILED lost: {text}")
            failed += 1
        for kind in ("file", "directory"):
            found = next(
                cut(recorded, folder, CUTS_WITHOUT_SYNCS, options.seed, forgotten=frozenset((kind,))), None
            )
            if found is None:
                print(f"FAILED without the syncs of each {kind} nothing is lost, which proves nothing")
                failed += 1
            else:
                print(f"without the syncs of each {kind}: {found}")
    print(f"{options.rots + options.cuts + 2 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def rot(count: int, seed: int) -> int:
    """Flip a bit `count` times; returns how often too little was there."""
    with tempfile.TemporaryDirectory(prefix="warren-rot-") as folder:
        rotting = Rotting(Path(folder) / "data", random.Random(seed))
        for at in range(count):
            try:
                rotting.once()
            except AssertionError as error:
                print(f"FAILED bit {at + 1}: {error}")
                return 1
    print(f"{count} bits: {rotting.down} queues were down, {rotting.lost} messages were lost with them")
    return 0


def record(folder: Path, seconds: float, seed: int) -> list[Call]:
    """The calls of a broker under load."""
    data, log = folder / "data", folder / "log"
    chance = random.Random(seed)
    environment = {"LD_PRELOAD": str(built(folder)), "WARREN_RECORD": str(log), "WARREN_ROOT": str(data)}
    data.mkdir()
    broker = BrokerProcess(["--data-dir", str(data)], environment)
    try:
        broker.wait_ready()
        asked = Asked()
        check(broker.port, asked, chance)
        load = Load(broker.port, asked, chance)
        time.sleep(seconds)
        broker.process.kill()
        load.join()
    finally:
        broker.process.kill()
        broker.process.communicate()
    recorded = list(calls(log))
    kinds = {kind: sum(call.kind == kind for call in recorded) for kind in "CWYRUM"}
    print(f"{len(recorded)} calls: {kinds}")
    return recorded


def cut(
    recorded: list[Call], folder: Path, count: int, seed: int, *, forgotten: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Cut the power `count` times; returns the losses."""
    chance = random.Random(seed)
    history, files = WireHistory(), Files(str(folder / "data"), forgotten)
    # Half of the cuts follow an answer to a client directly: its promise is new then.
    after_words = [at for at, call in enumerate(recorded) if call.kind == "S"]
    places = [
        chance.choice(after_words) if chance.random() < 0.5 else chance.randrange(len(recorded))
        for _ in range(count)
    ]
    waiting = sorted(places, reverse=True)
    for at, call in enumerate(recorded):
        history.take(call)
        files.take(call)
        while waiting and waiting[-1] == at:
            waiting.pop()
            with tempfile.TemporaryDirectory(prefix="warren-cut-", dir=MEMORY) as name:
                path = Path(name) / "data"
                files.top.build(path, chance)
                try:
                    compare(path, history)
                except (LostError, DamageError, JournalError, StoreFileError) as error:
                    yield f"call {at} of {len(recorded)}: {error}"


def compare(data: Path, history: WireHistory) -> None:
    """Recover the contents of `data`; raises LostError if a client was told otherwise."""
    found = bodies_in(data)
    compare_queues(set(found), history)
    compare_messages(found, history)


def compare_queues(there: set[str], history: WireHistory) -> None:
    """Check that the declared queues exist, and no others."""
    if missing := history.declared - history.deleting - there:
        raise LostError(f"declared and not there: {sorted(missing)[:3]}")
    if back := there & history.deleted:
        raise LostError(f"deleted and there again: {sorted(back)[:3]}")
    if strange := there - history.asked:
        raise LostError(f"never asked for: {sorted(strange)[:3]}")


def compare_messages(found: dict[str, list[bytes]], history: WireHistory) -> None:
    """Check that confirmed and unacknowledged messages exist, complete and in order, and no others."""
    for queue, sent in history.sent.items():
        bodies = found.get(queue, [])
        confirmed = {body for body, is_confirmed in sent.items() if is_confirmed}
        missing = confirmed - history.acknowledged[queue] - set(bodies)
        if missing:
            raise LostError(f"{queue}: confirmed and not there: {sorted(map(name_of, missing))[:3]}")
        if len(bodies) != len(set(bodies)) or not set(bodies) <= sent.keys():
            raise LostError(f"{queue}: something is there twice, or was never sent")
        numbers = defaultdict(list)
        for who, number in map(name_of, bodies):
            numbers[who].append(number)
        if any(each != sorted(each) for each in numbers.values()):
            raise LostError(f"{queue}: not in order")


if __name__ == "__main__":
    sys.exit(main())
