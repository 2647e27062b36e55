"""A minute of a shop: Warren is started, the shop sells, Spark archives its events, and a report is printed.

`make demo` runs it. In a terminal the broker keeps running until Ctrl-C, so that it can be examined.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark_warren.pipelines.archive import ArchiveProgress, archive
from report import NEXT, show
from shop import EVENTS, ORDERS, Till, open_shop, trade
from warren.cli.operator.failures import Failure
from warren.cli.spark.options import SparkSettings
from warren.cli.spark.session import spark_session

_READY = re.compile(r"(amqp|http) \S+:(\d+)")
_STOP_S = 20


@dataclass(frozen=True)
class Place:
    """The ports of the broker."""

    amqp: str
    http: str

    @property
    def uri(self) -> str:
        """The AMQP URI for clients."""
        return f"amqp://guest:guest@127.0.0.1:{self.amqp}/%2f"

    @property
    def options(self) -> dict[str, str]:
        """The options for Spark."""
        return {"uri": self.uri, "managementUri": self.web}

    @property
    def web(self) -> str:
        """The address of the web interface."""
        return f"http://127.0.0.1:{self.http}"


def main() -> int:
    """Run the shop; 0 if everything worked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long the shop is open")
    parser.add_argument("--folder", type=Path, default=Path("build/demo"), help="for the broker and the lake")
    parser.add_argument("--warren", default="warren", help="the command that starts a broker")
    parser.add_argument("--end", action="store_true", help="end with the report, in a terminal as well")
    chosen = parser.parse_args()
    folder = chosen.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with broker(chosen.warren, folder) as place:
            run(place, folder, chosen.seconds)
            stays = sys.stdout.isatty() and not chosen.end
            suggest(place, folder, stays=stays)
            if stays:
                with suppress(KeyboardInterrupt):
                    signal.pause()
    except Failure as failure:
        print(f"demo: {failure.message}", file=sys.stderr)
        return failure.status
    return 0


@contextmanager
def broker(command: str, folder: Path) -> Iterator[Place]:
    """A Warren on free ports, with its data in `folder`."""
    folder.mkdir(parents=True)
    log = folder / "warren.log"
    free = ("--port", "0", "--management-port", "0", "--prometheus-port", "0", "--stream-port", "0")
    with log.open("w") as lines:
        process = subprocess.Popen(
            [command, "serve", "--host", "127.0.0.1", "--data-dir", str(folder / "data"), *free],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is for this program, which stops the broker when it has finished.
            start_new_session=True,
        )
        assert process.stderr is not None
        try:
            for line in process.stderr:
                lines.write(line)
                if "ready: " in line:
                    break
            else:
                lines.flush()
                raise Failure(f"Warren did not start: {log.read_text().strip() or command}", 1)
            rest = threading.Thread(target=lines.writelines, args=(process.stderr,), daemon=True)
            rest.start()
            ports = dict(_READY.findall(line))
            yield Place(amqp=ports["amqp"], http=ports["http"])
            process.terminate()
            rest.join(_STOP_S)
        finally:
            process.terminate()
            process.wait(_STOP_S)


def run(place: Place, folder: Path, seconds: float) -> None:
    """The day, the archive, and the report."""
    open_shop(place.uri)
    keep = ["policies", "set", "past", f"^{ORDERS}$", '{"retain": "7D"}', "--apply-to", "queues"]
    operate(place, *keep)
    print(f"The shop is open for {seconds:.0f} s; look at {place.web} (guest, guest).", flush=True)
    till = trade(place.uri, seconds, reported)
    print(f"\nClosed: {till.ordered} orders, {till.captured} paid, {till.declined} declined at the door.")
    settings = SparkSettings(
        broker=place.options, master="local[2]", remote=None, configuration={}, is_json=False, is_quiet=False,
        is_verbose=False,
    )  # fmt: skip
    lake = str(folder / "lake")
    with spark_session(settings, "demo") as spark:
        query = archive(
            spark, lake, queue=EVENTS, uri=place.uri, management_uri=place.web, once=True, progress=archived
        )
        query.awaitTermination()
        show(spark, lake, place.options)


def suggest(place: Place, folder: Path, *, stays: bool) -> None:
    """Print commands to try next; those for a broker only if it `stays`."""
    command = Path(sys.executable).with_name("warren")
    print("\nTo try next:")
    for sql in NEXT if stays else NEXT[:1]:
        print(f"\n  {command} spark sql --uri {place.uri} \\\n    '{sql.format(lake=folder / 'lake')}'")
    if stays:
        print(f"\nWarren goes on at {place.web} (guest, guest) until Ctrl-C.", flush=True)


def operate(place: Place, *arguments: str) -> None:
    """Run a command as an operator would."""
    command = [sys.executable, "-m", "warren.cli.main", "--uri", place.web, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def reported(left: float, till: Till) -> None:
    """Print a line that the next one replaces."""
    if sys.stdout.isatty():
        print(f"\r  {till.ordered:5} orders, {till.captured:5} paid, {left:3.0f} s left ", end="", flush=True)


def archived(progress: ArchiveProgress) -> None:
    """Print the progress of a batch."""
    if progress.stage == "committed":
        print(f"Archived {progress.rows} events in {progress.files} files, {progress.bytes:,} bytes.")


if __name__ == "__main__":
    sys.exit(main())
