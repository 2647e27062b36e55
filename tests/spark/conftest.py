"""One small Spark session for all tests, and a RabbitMQ and a Warren to read and write."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.rabbitmq import RabbitMQ, is_installed
from tests.spark.brokers import BrokerUnderTest
from tests.spark.second_run import pytest_runtest_protocol  # noqa: F401
from tests.user_environment import user_environment
from tests.warren_process import free_port, running_warren

from pyspark_warren.versions import VERSION
from warren.cli.spark.session import prepare_java

os.environ["PYSPARK_PYTHON"] = sys.executable
# For all processes that the tests start: without a Java on this machine, the packaged one.
prepare_java()
# Spark takes seconds to start and to plan, and may share the processor with other work.
TEST_S_MAX = 600
# For a JVM that runs for seconds, a better compiler does not pay: 9 s of CPU instead of 17 for a start and
# six small jobs.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Names that Spark lacks cannot be collected; tests of filters with a broker are skipped with a reason.
collect_ignore = [] if VERSION >= (4, 1) else ["unit/test_filters.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_S_MAX))
        for since in list(item.iter_markers("since")):
            (numbers, what) = since.args
            if numbers > VERSION:
                needed = ".".join(map(str, numbers))
                reason = f"Spark {pyspark.__version__}: {what}, since {needed}"
                # Before other reasons, which follow from this one.
                item.add_marker(pytest.mark.skipif(True, reason=reason), append=False)


def session(name: str, master: str = "local[2]") -> SparkSession:
    """A Spark session in this process, with two threads and without a web page."""
    return (
        SparkSession.builder.master(master)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.extraJavaOptions", QUICK_JAVA)
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        # A worker on a busy machine needs more than the default of 15 seconds to start.
        .config("spark.python.authenticate.socketTimeout", "300")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The temporary directory of every Java: a killed one does not clean up."""
    folder = tmp_path_factory.mktemp("scratch")
    os.environ["SPARK_LOCAL_DIRS"] = str(folder)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_JAVA} -Djava.io.tmpdir={folder}"
    yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    found = session("tests")
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    if not is_installed():
        pytest.skip("rabbitmq-server is not installed")
    management = free_port()
    settings = f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {management}\n"
    folder = tmp_path_factory.mktemp("rabbitmq")
    broker = RabbitMQ(folder, listen="127.0.0.1", settings=settings, plugins=["rabbitmq_management"])
    broker.start()
    with contextlib.ExitStack() as stack:
        stack.callback(broker.remove)
        stack.callback(broker.stop)
        yield BrokerUnderTest(broker.port, management)


@pytest.fixture(scope="session")
def warren(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    management = free_port()
    folder: Path = tmp_path_factory.mktemp("warren")
    arguments = ("--data-dir", str(folder / "data"), "--management-port", str(management))
    # Spark's own environment has more packages than that of `make run` or of a container.
    command = (str(user_environment(folder / "environment") / "warren"),)
    with running_warren(folder, arguments=arguments, command=command) as broker:
        yield BrokerUnderTest(broker.port, management)
