"""HTTP connections of the connector are shared by a process and one user."""

import os
import pickle
from pathlib import Path

import trustme
from tests.spark.unit.doubles import Answer, RecordedRequest, answering, offsets, stream_of

from pyspark_warren.arrow import ArrowStreams
from pyspark_warren.http import HttpApi
from pyspark_warren.options import read_options
from pyspark_warren.streams import OffsetRange


def rows(asked: RecordedRequest) -> Answer:
    if asked.path.endswith("/rows"):
        return 200, stream_of(offsets(0, 10))
    return 200, {"epoch": "e", "first_offset": 0, "committed_offset": 10}


def test_all_requests_of_a_process_to_a_broker_use_one_connection() -> None:
    wanted = OffsetRange(queue="q", epoch="e", start=0, end=10, is_loss_fatal=True)
    with answering(rows) as double:
        for _ in range(5):
            streams = ArrowStreams(double.options().broker)
            assert streams.bounds("q").committed == 10
            assert sum(batch.num_rows for batch in streams.read(wanted, ("body",))) == 10
        assert (len(double.asked), double.connections) == (10, 1)


def test_a_refusal_keeps_the_connection_and_another_user_has_a_separate_one() -> None:
    with answering(lambda asked: (404 if asked.method == "DELETE" else 200, {})) as double:
        management = HttpApi(double.options().broker)
        management.delete("/api/x", {})
        management.get("/api/x")
        assert double.connections == 1
        place = f"http://other:s@127.0.0.1:{double.port}"
        HttpApi(double.options(managementUri=place).broker).get("/api/x")
        assert double.connections == 2


def test_a_copy_in_another_process_opens_its_own_connection() -> None:
    with answering(rows) as double:
        management = HttpApi(double.options().broker)
        management.get("/api/x")
        assert pickle.loads(pickle.dumps(management)).get("/api/x")["epoch"] == "e"
        assert double.connections == 1
        child = os.fork()
        if not child:
            os._exit(0 if management.get("/api/x")["epoch"] == "e" else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert double.connections == 2
        management.get("/api/x")
        assert double.connections == 2


def test_a_renewed_certificate_is_used_by_the_next_reader(tmp_path: Path) -> None:
    known = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(known)
    options = {"managementUri": "https://127.0.0.1:1", "tls.caFile": str(known), "queue": "q"}
    first, again = (HttpApi(read_options(options).broker) for _ in range(2))
    assert first._client() is again._client()
    known.unlink()
    trustme.CA().cert_pem.write_to_path(known)
    assert HttpApi(read_options(options).broker)._client() is not first._client()
