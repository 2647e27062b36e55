"""Says how far Spark is, while it works."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from warren.cli.spark.options import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL_S = 2.0


@contextmanager
def shown(settings: Settings, session: "SparkSession", what: str) -> Iterator[None]:
    """A line now and every other second until the block ends."""
    settings.note(what)
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(settings, session, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(settings: Settings, session: "SparkSession", ended: threading.Event) -> None:
    begun_s = time.monotonic()
    said = ""
    while not ended.wait(INTERVAL_S):
        tasks = _tasks(session)
        if tasks != said:
            settings.note(f"{time.monotonic() - begun_s:.0f} s{tasks}")
        said = tasks


def _tasks(session: "SparkSession") -> str:
    """Tasks that are done, of those that are known; nothing where Spark is far away."""
    done = total = 0
    with suppress(Exception):
        tracker = session.sparkContext.statusTracker()
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done, total = done + info.numCompletedTasks, total + info.numTasks
    return f", {done} of {total} tasks done" if total else ", planning"
