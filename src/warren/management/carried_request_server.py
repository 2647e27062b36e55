"""Handles the requests of other nodes: as those of clients, without a socket, for the part of this node."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from warren.cluster.answer_writer import AnswerWriter
from warren.limits_cluster import QUERY_SIZE_MAX
from warren.management.carried_request import (
    CARRIED,
    AnswerHead,
    CarriedRequest,
    CarriedRequestError,
    decode_request,
    encode_head,
)
from warren.management.http_server import ResponseSettings, application
from warren.management.managed_node import ManagedNode
from warren.management.replies import BROKEN_OFF

logger = logging.getLogger("warren.management")

# The number of the operation among those of `NodeQueries`.
HTTP_REQUEST = 1
_FAILED = "the request has failed there: see the log of the broker"


class CarriedRequestServer:
    """The HTTP API of this node for the other ones."""

    def __init__(self, node: ManagedNode) -> None:
        """`start` follows."""
        app = application(node, "http", ResponseSettings(is_compressed=False))
        self._runner = web.AppRunner(app, handle_signals=False)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Handle requests from now on."""
        await self._runner.setup()

    async def stop(self) -> None:
        """Give up the requests in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._runner.cleanup()

    def answer(self, writer: AnswerWriter, arguments: bytes) -> None:
        """Begin to answer an encoded request: operation HTTP_REQUEST."""
        if self._runner.server is None:
            writer.refuse("the node is starting or stopping")
            return
        try:
            carried = decode_request(arguments)
            request = self._request(carried, writer)
        except (CarriedRequestError, ValueError) as error:
            writer.refuse(str(error))
            return
        task = asyncio.get_running_loop().create_task(self._handle(request, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writer.on_over = partial(_cancel, task)

    async def _handle(self, request: web.Request, writer: AnswerWriter) -> None:
        assert self._runner.server is not None
        try:
            response = await self._runner.server.request_handler(request)
        except ConnectionError:
            # The other node does not wait any more.
            return
        except web.HTTPException as refused:
            response = refused
        except Exception:
            logger.exception("unexpected exception in %s %s of another node", request.method, request.path)
            writer.refuse(_FAILED)
            return
        if request.get(BROKEN_OFF):
            writer.refuse("the response was broken off")
        elif response.prepared:
            writer.end()
        else:
            body = response.body if isinstance(response, web.Response) else None
            head = AnswerHead(status=response.status, headers=dict(response.headers), is_stream=False)
            writer.end(encode_head(head) + (body if isinstance(body, bytes) else b""))

    def _request(self, carried: CarriedRequest, writer: AnswerWriter) -> web.Request:
        """The request as the application handles it. Raises ValueError."""
        assert self._runner.server is not None
        loop = asyncio.get_running_loop()
        protocol = self._runner.server()
        headers = CIMultiDict(carried.headers)
        message = RawRequestMessage(
            carried.method, carried.path, HttpVersion11, CIMultiDictProxy(headers), (), False, None, False,
            False, URL(carried.path, encoded=True),
        )  # fmt: skip
        payload = StreamReader(protocol, QUERY_SIZE_MAX, loop=loop)
        if carried.body:
            payload.feed_data(carried.body)
        payload.feed_eof()
        task: Any = asyncio.current_task(loop)
        request = web.Request(message, payload, protocol, _AnswerBody(writer), task, loop)
        request[CARRIED] = carried
        return request


class _AnswerBody(AbstractStreamWriter):
    """Writes a response that is sent as it is made into the answer to another node."""

    def __init__(self, writer: AnswerWriter) -> None:
        self._writer = writer
        self._writable = asyncio.Event()
        writer.on_writable = self._writable.set

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Add `chunk`, and wait while the other node takes no more; ConnectionResetError if it has gone."""
        self._writer.write(bytes(chunk))
        while not self._writer.is_writable:
            self._writable.clear()
            await self._writable.wait()
        if self._writer.is_over:
            raise ConnectionResetError("the other node does not wait any more")

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Add the last `chunk`."""
        if chunk:
            await self.write(chunk)

    async def drain(self) -> None:
        """Do nothing: `write` waits."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Do nothing: the other node compresses what it sends to its client."""

    def enable_chunking(self) -> None:
        """Do nothing: the answer has pieces of its own."""

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:
        """Send the head of the answer."""
        status = int(status_line.split(" ")[1])
        await self.write(encode_head(AnswerHead(status=status, headers=dict(headers), is_stream=True)))


def _cancel(task: "asyncio.Task[None]") -> None:
    """Give up a request whose answer is over, unless it is that which has ended it."""
    with suppress(RuntimeError):
        if task is not asyncio.current_task():
            task.cancel()
