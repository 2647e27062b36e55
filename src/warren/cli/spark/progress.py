"""Prints the progress of Spark while it works."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from warren.cli.spark.options import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from pyspark_warren.pipelines.progress_relay import ProgressRelay

INTERVAL_S = 2.0
_LOOKS_S = 0.5


@contextmanager
def display(settings: SparkSettings, session: "SparkSession", what: str) -> Iterator[None]:
    """Print `what`, and the progress of tasks every INTERVAL_S seconds, until the block ends."""
    settings.note(what)
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(settings, session, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def await_query(
    query: "StreamingQuery", relay: "ProgressRelay | None", tell: Callable[[dict[str, Any]], None]
) -> None:
    """Wait for a query to end; progress from a Spark Connect server is passed on from `relay` to `tell`."""
    try:
        # In short waits, since Ctrl-C does not interrupt a wait in Java.
        while not query.awaitTermination(_LOOKS_S):
            _pass_on(relay, tell)
    finally:
        _pass_on(relay, tell)
        if relay is not None:
            relay.close()


def _pass_on(relay: "ProgressRelay | None", tell: Callable[[dict[str, Any]], None]) -> None:
    for one in relay.take() if relay is not None else ():
        tell(one)


def _tell(settings: SparkSettings, session: "SparkSession", ended: threading.Event) -> None:
    begun_s = time.monotonic()
    said = ""
    while not ended.wait(INTERVAL_S):
        tasks = _tasks(session)
        if tasks != said:
            settings.note(f"{time.monotonic() - begun_s:.0f} s{tasks}")
        said = tasks


def _tasks(session: "SparkSession") -> str:
    """Return how many of the known tasks are done; with Spark Connect they are unknown."""
    done = total = 0
    with suppress(Exception):
        tracker = session.sparkContext.statusTracker()
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done, total = done + info.numCompletedTasks, total + info.numTasks
    return f", {done} of {total} tasks done" if total else ", planning"
