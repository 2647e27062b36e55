"""Kills processes at chosen windows: programs with their own Spark that reach them, and a broker that
restarts.

A window has a name, and is used once: its mark, a file of that name in a directory, records that it was. The
process that is killed there is `driver` (with its JVM), `worker` (the Python of a task), `executor` (the JVM
of a task, with its Python and its shuffle files) or `broker`, always by SIGKILL.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from tests.patience import patient
from tests.spark.brokers import BrokerUnderTest
from tests.spark.conftest import session
from tests.warren_process import WarrenProcess, free_port, start_warren, stop

ROOT = Path(__file__).resolve().parents[2]
RUN_S_MAX = patient(280)
# More than one attempt for each task, so that a killed worker does not end the query.
MASTER = "local[2,4]"
# Executors beside the driver, in separate JVMs, can be killed alone.
CLUSTER = "local-cluster[2,1,512]"


def victim_session(name: str, windows: Mapping[str, str], marks: Path) -> SparkSession:
    """A Spark session of a program; its process ids are recorded for those who kill its driver from
    outside.
    """
    spark = session(name, CLUSTER if "executor" in windows.values() else MASTER)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    # The JVM first, so that it records nothing more.
    driver = [jvm.java.lang.ProcessHandle.current().pid(), os.getpid()]
    (marks / "driver").write_text(json.dumps(driver))
    return spark


def killer(windows: Mapping[str, str], marks: Path) -> Callable[[str], None]:
    """A function that is called in each window with its name, and kills the process that is planned
    there.
    """

    def reached(window: str) -> None:
        victim = windows.get(window)
        if victim is None:
            return
        try:
            os.close(os.open(marks / window, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if victim == "broker":
            kill_broker(marks)
            return
        if victim == "driver":
            kill_driver(marks)
        elif victim == "executor":
            # It has started a process that starts those of its tasks.
            stat = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    return reached


def kill_driver(marks: Path) -> None:
    """Kill a program together with its JVM."""
    for process in json.loads((marks / "driver").read_text()):
        os.kill(process, signal.SIGKILL)


def kill_broker(marks: Path) -> None:
    """Kill the broker that runs now."""
    os.kill(int((marks / "broker").read_text()), signal.SIGKILL)


@contextlib.contextmanager
def restarted_broker(folder: Path, marks: Path) -> Iterator[BrokerUnderTest]:
    """A Warren that is restarted when it is killed; `marks/broker` contains its process id."""
    port, management = free_port(), free_port()
    (folder / "warren.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
    arguments = ("--config", "warren.conf", "--data-dir", "data", "--management-port", str(management))
    is_over = threading.Event()
    running: list[WarrenProcess] = []

    def start() -> WarrenProcess:
        broker = start_warren(folder, port, *arguments)
        (marks / "broker").write_text(str(broker.process.pid))
        running[:] = [broker]
        return broker

    def watch(broker: WarrenProcess) -> None:
        while True:
            broker.process.wait()
            if is_over.is_set():
                return
            broker = start()

    thread = threading.Thread(target=watch, args=(start(),))
    thread.start()
    try:
        yield BrokerUnderTest(port, management)
    finally:
        is_over.set()
        stop(running[0].process)
        thread.join()


@contextlib.contextmanager
def started(
    program: str, folder: Path, *arguments: object, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start one of these programs, with its output in `query.log`; arguments that are not text are passed as
    JSON.

    `environment` has additional variables.
    """
    texts = [one if isinstance(one, str) else json.dumps(one) for one in arguments]
    command = [sys.executable, str(Path(__file__).with_name(program)), *texts]
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "SPARK_HOME": str(spark_home(folder))}
    with (folder / "query.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log,
            env={**os.environ, **paths, **(environment or {}), "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def run(program: str, folder: Path, *arguments: object, environment: Mapping[str, str] | None = None) -> int:
    """The status of one of these programs."""
    with started(program, folder, *arguments, environment=environment) as process:
        return process.wait(RUN_S_MAX)


def spark_home(folder: Path) -> Path:
    """Spark's own directory under another name, in which executors leave their files."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for name in ("bin", "jars"):
            (home / name).symlink_to(Path(pyspark.__file__).with_name(name))
    return home


def wait_until(what: Callable[[], bool], text: str) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + RUN_S_MAX
    while not what():
        assert time.monotonic() < deadline, f"the condition does not hold: {text}"
        time.sleep(0.02)


def counted(bodies: Sequence[bytes]) -> tuple[int, int]:
    """The number of rows, and of different ones."""
    return len(bodies), len(set(bodies))
