"""An HTTP server in place of a broker that gives prepared answers and records requests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from pyspark_warren.options import ReadOptions, read_options


@dataclass
class RecordedRequest:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The parsed JSON body."""
        return json.loads(self.body)


Answer = tuple[int, Any]


@dataclass
class Double:
    """Answers with a function of the request: a status, and bytes or a value that becomes JSON."""

    answer: Callable[[RecordedRequest], Answer]
    port: int = 0
    asked: list[RecordedRequest] = field(default_factory=list)
    connections: int = 0

    def options(self, **given: str) -> ReadOptions:
        """Options of a reader for this server."""
        place = {"managementUri": f"http://127.0.0.1:{self.port}", "retries": "2", "queue": "q"}
        return read_options(place | given)


@contextmanager
def answering(answer: Callable[[RecordedRequest], Answer]) -> Iterator[Double]:
    """A double on a free port."""
    double = Double(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            double.connections += 1
            super().setup()

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = RecordedRequest(
                self.command, unquote(parts.path), dict(parse_qsl(parts.query)), self._body()
            )
            double.asked.append(asked)
            status, reported = double.answer(asked)
            data = reported if isinstance(reported, bytes) else json.dumps(reported).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            # A status of 299 is an answer that breaks off in the middle.
            self.wfile.write(data[: -200 if status == 299 else None])
            self.close_connection = status == 299

        do_POST = do_DELETE = do_GET  # noqa: N815

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def log_message(self, format: str, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()


def stream_of(*batches: pa.RecordBatch) -> bytes:
    """Batches as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def offsets(start: int, end: int) -> pa.RecordBatch:
    """Rows with only offsets and a body."""
    return pa.record_batch(
        {
            "offset": pa.array(range(start, end), pa.int64()),
            "body": [b"%d" % number for number in range(start, end)],
        }
    )
