"""Attributes the CPU time of a Spark job to the broker, Python and the JVM."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from brokers import Broker
from warren.cli.perf.usage import own_cpu_s, usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """CPU times of a job, and its duration."""

    broker_s: float
    python_s: float
    jvm_s: float
    seconds: float

    @property
    def cpu_s(self) -> float:
        """The total CPU time."""
        return self.broker_s + self.python_s + self.jvm_s

    def per_row(self, rows: int) -> dict[str, float]:
        """Return the figures by row, under the names with which they are saved."""
        return {
            "rows": rows,
            "rows_per_s": rows / self.seconds,
            "broker_us_per_row": self.broker_s / rows * 1e6,
            "python_us_per_row": self.python_s / rows * 1e6,
            "jvm_us_per_row": self.jvm_s / rows * 1e6,
        }


class Watch:
    """Measures the processes of a session: the driver, its JVM, and the workers, which the JVM starts."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._jvm: int = jvm.java.lang.ProcessHandle.current().pid()

    def spent(self, work: Callable[[], None], broker: Broker | None) -> Spent:
        """Return the usage during `work`."""
        broker_s, all_s, jvm_s = self._times(broker)
        begun = time.monotonic()
        work()
        seconds = time.monotonic() - begun
        broker_end_s, all_end_s, jvm_end_s = self._times(broker)
        return Spent(
            broker_s=broker_end_s - broker_s,
            python_s=(all_end_s - all_s) - (jvm_end_s - jvm_s),
            jvm_s=jvm_end_s - jvm_s,
            seconds=seconds,
        )

    def _times(self, broker: Broker | None) -> tuple[float, float, float]:
        """Return the CPU times of the broker, of the JVM with all of Python, and of the JVM alone."""
        driver = sum(os.times()[:2])
        return (
            usage([broker.pid]).cpu_s if broker is not None else 0.0,
            usage([self._jvm]).cpu_s + driver,
            own_cpu_s(self._jvm),
        )
