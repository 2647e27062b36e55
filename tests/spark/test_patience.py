"""Tasks and the driver wait for a broker that restarts, by default."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.warren_process import WarrenProcess, free_port, start_warren, stop

from pyspark_warren.amqp import retry_delays
from pyspark_warren.classic_source import ClassicSource
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import read_options, write_options
from pyspark_warren.partitions import ReadPartition
from pyspark_warren.sink import BatchWriter, WriteTask, publish
from pyspark_warren.stream_source import StreamSource

ROWS = 30_000
COLUMNS = ("offset", "body")
MINUTE_S = 60
# Closed regularly, with reply code 320; or cut.
STOPPED, KILLED = signal.SIGTERM, signal.SIGKILL


class Restarted:
    """A Warren that keeps its data and its ports over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, management = free_port(), free_port()
        (folder / "warren.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{self._port}\n")
        data = str(folder / "data")
        self._arguments = (
            "--config", "warren.conf", "--data-dir", data, "--management-port", str(management),
            "--prometheus-port", "0", "--stream-port", "0",
        )  # fmt: skip
        self.place = BrokerUnderTest(self._port, management)
        self._broker: WarrenProcess | None = None
        self._starting: threading.Thread | None = None
        self.start()

    def start(self) -> None:
        self._broker = start_warren(self._folder, self._port, *self._arguments, environment={})

    def restart(self, how: signal.Signals) -> None:
        """Stop the broker; it comes back by itself later."""
        assert self._broker is not None
        self._broker.process.send_signal(how)
        self._broker.process.wait()
        self._starting = threading.Thread(target=self.start)
        self._starting.start()

    def close(self) -> None:
        if self._starting is not None:
            self._starting.join()
        assert self._broker is not None
        stop(self._broker.process)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarted]:
    found = Restarted(tmp_path)
    yield found
    found.close()


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def batches(broker: Restarted, how: signal.Signals) -> Iterator[pa.RecordBatch]:
    """Rows of a task, in the middle of which the broker restarts."""
    for start in range(0, ROWS, ROWS // 3):
        if start == ROWS // 3:
            broker.restart(how)
        yield pa.record_batch({"body": numbers(start, start + ROWS // 3)})


@pytest.mark.parametrize(("txn", "how"), [("dedupe", STOPPED), ("staged", KILLED)])
def test_a_writing_task_continues_after_a_restart_of_the_broker(
    broker: Restarted, how: signal.Signals, txn: str
) -> None:
    broker.place.declare("q")
    options = write_options(broker.place.options | {"queue": "q", "txn": txn})
    task = WriteTask("query", 0, 0, 0)
    published = publish(batches(broker, how), options, task)
    assert published.rows == ROWS
    if txn == "staged":
        broker.restart(how)
        BatchWriter(options).commit([published])
        assert broker.place.count("q") == ROWS
    else:
        assert broker.place.count("q") >= ROWS


def read(
    partitions: list[ReadPartition], options: object, broker: Restarted, how: signal.Signals
) -> list[bytes]:
    """The rows of a batch; the broker restarts before the first and in the middle of each task."""
    found: list[bytes] = []
    broker.restart(how)
    for part in partitions:
        for number, batch in enumerate(part.read(options, COLUMNS)):
            if number == 1:
                broker.restart(how)
            found += batch.column("body").to_pylist()
    return found


@pytest.mark.parametrize(("transport", "how"), [("amqp", STOPPED), ("arrow", KILLED)])
def test_reading_a_stream_continues_after_a_restart_of_the_broker(
    broker: Restarted, how: signal.Signals, transport: str
) -> None:
    broker.place.declare("s", STREAM)
    sent = numbers(0, ROWS)
    broker.place.publish("s", sent)
    options = read_options(broker.place.options | {"queue": "s", "transport": transport})
    source = StreamSource(options, detect_strategy(options, is_streaming=True))
    start = source.initial_offset()
    broker.restart(how)
    end = source.latest_offset(start, None, None)
    assert read(source.partitions(start, end), options, broker, how) == sent


def test_leasing_a_queue_continues_after_a_restart_of_the_broker(broker: Restarted) -> None:
    broker.place.declare("q")
    sent = numbers(0, ROWS)
    broker.place.publish("q", sent)
    options = read_options(broker.place.options | {"queue": "q"})
    source = LeaseSource(options, detect_strategy(options, is_streaming=True))
    start = source.initial_offset()
    end = source.latest_offset(start, None, None)
    assert read(source.partitions(start, end), options, broker, STOPPED) == sent
    broker.restart(STOPPED)
    assert source.latest_offset(end, None, None) == end
    source.stop()
    assert broker.place.count("q") == 0


def test_consuming_a_queue_over_amqp_continues_after_a_restart_of_the_broker(broker: Restarted) -> None:
    broker.place.declare("q")
    sent = numbers(0, 1_000)
    broker.place.publish("q", sent)
    options = read_options(broker.place.options | {"queue": "q", "mode": "classic"})
    source = ClassicSource(options, detect_strategy(options, is_streaming=True), COLUMNS)
    source.prepare_available_now()
    end, found, is_restarted = source.initial_offset(), set(), False
    while len(found) < len(sent):
        start = end
        end = source.latest_offset(start, 300, None)
        for part in source.partitions(start, end):
            for batch in part.read(options, COLUMNS):
                found |= set(batch.column("body").to_pylist())
        if not is_restarted:
            broker.restart(STOPPED)
            is_restarted = True
    assert found == set(sent)
    source.stop()


def test_retries_last_about_a_minute_by_default() -> None:
    default = read_options({"queue": "q"}).broker
    assert MINUTE_S <= sum(filter(None, retry_delays(default))) < 1.2 * MINUTE_S
    assert list(retry_delays(read_options({"queue": "q", "retries": "2"}).broker)) == [0.2, 0.4, None]
