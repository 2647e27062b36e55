"""Responses in Arrow format: a bounded number at once, each sent as fast as its client reads.

In each turn of the event loop one piece of one response is encoded, however many responses there are. While
the broker has other work, the loop then pauses for as long as the piece took, and at least for
ARROW_PAUSE_S_MIN. Pieces with compression are encoded in one thread, which releases the GIL meanwhile.
A piece is encoded when the client has read the one before, apart from what the socket buffers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from aiohttp import web

from warren.arrow.message_rows import MessageRows, combined
from warren.errors import AmqpError
from warren.limits import ARROW_PAUSE_S_MIN, ARROW_PIECE_SIZE, ARROW_READERS_MAX, ARROW_STALLED_S_MAX
from warren.management.replies import RequestRefused, break_off, error_reply, reply
from warren.runtime.thread_pool import ThreadPool

if TYPE_CHECKING:
    from warren.arrow.encoder import ArrowEncoder

logger = logging.getLogger("warren.management")

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
END = b"\xff\xff\xff\xff\0\0\0\0"
_THREADS = 1
_NO_MORE = object()


class RowsGone(Exception):
    """The requested rows no longer exist; a response that has begun is cut off."""

    def __init__(self, reason: str, **more: object) -> None:
        super().__init__(reason)
        # Further fields of the error response, which can be sent if the response has not begun.
        self.more = more


class ArrowResponses:
    """The responses in Arrow format that are being sent."""

    __slots__ = ("_encoder", "_is_shared", "_pause", "_thread_pool", "_turn", "count")

    def __init__(self, is_shared: Callable[[], bool]) -> None:
        """`is_shared` returns True if the broker has other work."""
        self._is_shared = is_shared
        # How long the last piece took to encode (s).
        self._pause = 0.0
        self._encoder: type[ArrowEncoder] | None = None
        self._thread_pool = ThreadPool(thread_count=_THREADS, waiting_max=ARROW_READERS_MAX)
        # Held by the response that encodes a piece in the next turn of the event loop.
        self._turn = asyncio.Lock()
        self.count = 0

    async def encoder(self) -> "type[ArrowEncoder]":
        """The class that encodes rows; raises RequestRefused (501) if pyarrow is not installed."""
        if self._encoder is None:
            try:
                self._encoder = await self._thread_pool.do(_encoder)
            except ImportError:
                reason = "rows need pyarrow, which is not installed here: pip install pyarrow"
                raise RequestRefused(error_reply(501, "not_implemented", reason)) from None
        return self._encoder

    async def answer(
        self,
        request: web.Request,
        encoder: "ArrowEncoder",
        source: Iterator[MessageRows | None],
        headers: Mapping[str, str] | None = None,
    ) -> web.StreamResponse:
        """Send the rows of `source`, each item in a turn of its own; None is a turn without rows.

        The first item is produced before the response begins, so an exception that it raises becomes an error
        response.
        """
        if self.count >= ARROW_READERS_MAX:
            raise RequestRefused(
                error_reply(
                    503,
                    "service_unavailable",
                    f"{self.count} row responses are being sent: retry later",
                )
            )
        self.count += 1
        try:
            first = _first(source)
            response = web.StreamResponse(headers=headers)
            response.content_type = CONTENT_TYPE
            await response.prepare(request)
            if request.method != "HEAD":
                await self._send(request, response, encoder, _all(first, source))
            return response
        finally:
            self.count -= 1

    async def _send(
        self,
        request: web.Request,
        response: web.StreamResponse,
        encoder: "ArrowEncoder",
        source: Iterator[MessageRows | None],
    ) -> None:
        try:
            await _written(response, encoder.head())
            pieces = _pieces(encoder, combined(source, partial(self._piece_size, encoder)))
            while (batch := await self.next_piece(pieces)) is not _NO_MORE:
                if batch is not None:
                    await _written(response, await self._encoded(encoder, batch))
            await _written(response, END)
        except ConnectionError:
            logger.debug("%s closed the connection during the response to %s", request.remote, request.path)
        except (AmqpError, RowsGone, TimeoutError) as error:
            logger.warning("response to %s for %s aborted: %s", request.path, request.remote, error)
            break_off(request)

    async def next_piece(self, pieces: Iterator[object]) -> object:
        """The next piece, made in a turn in which no other response makes one; _NO_MORE at the end."""
        async with self._turn:
            await asyncio.sleep(max(self._pause, ARROW_PAUSE_S_MIN) if self._is_shared() else 0)
            begun = monotonic()
            try:
                return next(pieces, _NO_MORE)
            finally:
                self._pause = monotonic() - begun

    def _piece_size(self, encoder: "ArrowEncoder") -> int:
        """The approximate size of a piece in bytes, if there are enough rows; 0 for the smallest."""
        return ARROW_PIECE_SIZE if encoder.is_quick and not self._is_shared() else 0

    async def _encoded(self, encoder: "ArrowEncoder", batch: object) -> object:
        if encoder.is_compressing:
            return await self._thread_pool.do(partial(encoder.encode, batch))
        return encoder.encode(batch)


def _encoder() -> "type[ArrowEncoder]":
    from warren.arrow.encoder import ArrowEncoder

    return ArrowEncoder


def _pieces(encoder: "ArrowEncoder", source: Iterator[list[MessageRows] | None]) -> Iterator[object]:
    """Batches of all rows of `source`; None for a turn without rows."""
    for many in source:
        if many is None:
            yield None
        else:
            yield from encoder.batches(many)


def _first(source: Iterator[MessageRows | None]) -> MessageRows | None:
    try:
        return next(source, None)
    except RowsGone as gone:
        raise RequestRefused(reply({"error": "gone", "reason": str(gone), **gone.more}, 410)) from None


def _all(first: MessageRows | None, source: Iterator[MessageRows | None]) -> Iterator[MessageRows | None]:
    yield first
    yield from source


async def _written(response: web.StreamResponse, data: object) -> None:
    """Send `data`, a buffer, once the client has read what was sent before; TimeoutError if it stalls."""
    async with asyncio.timeout(ARROW_STALLED_S_MAX):
        await response.write(memoryview(data))  # type: ignore[arg-type]
