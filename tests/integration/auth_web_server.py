"""A web server that decides logins and permissions, as RabbitMQ's `auth_http` asks it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl


class AuthWebServer:
    """The server: a text in `answers` that is part of a request has its answer, all else is allowed."""

    def __init__(self) -> None:
        # Each request as `METHOD /path?query`; a form counts as a query.
        self.requests: list[str] = []
        self.answers: dict[str, str] = {}
        # Requests that contain the text wait for the event.
        self.held = ""
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(self.path)

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["content-length"])).decode()
                assert self.headers["content-type"] == "application/x-www-form-urlencoded"
                self._answer(f"{self.path}?{form}")

            def _answer(self, target: str) -> None:
                server.requests.append(f"{self.command} {target}")
                if server.held and server.held in target:
                    server.released.wait(60)
                status, text = server.decision(target)
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def decision(self, target: str) -> tuple[int, str]:
        """The status and the text of the answer."""
        for text, answer in self.answers.items():
            if text in target:
                return (int(answer), "") if answer.isdigit() else (200, answer)
        return 200, "allow"

    def take(self) -> list[str]:
        """The requests since the last call."""
        taken, self.requests = self.requests, []
        return taken

    def fields(self) -> list[dict[str, str]]:
        """The fields of the requests since the last call."""
        return [dict(parse_qsl(one.partition("?")[2], keep_blank_values=True)) for one in self.take()]

    def settings(self, *lines: str) -> str:
        """The configuration of a broker that asks the server, with more `lines`."""
        paths = [f"auth_http.{name}_path = {self.url}/auth/{name}" for name in _NAMES]
        return "\n".join([*paths, *lines, ""])

    def run(self) -> None:
        """Answer requests until `stop`."""
        self._http.serve_forever(0.05)

    def stop(self) -> None:
        """End all requests."""
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


_NAMES = ("user", "vhost", "resource", "topic")


@contextmanager
def auth_web_server() -> Iterator[AuthWebServer]:
    """A running server."""
    server = AuthWebServer()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
