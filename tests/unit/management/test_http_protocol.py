"""Timeouts of HTTP connections: a request that is late is answered with 408."""

import asyncio
import socket

from aiohttp import web

from warren.management.http_protocol import HttpProtocol, HttpTimeouts


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="here")


async def refused(*, waits_first: bool) -> bytes:
    """What a client gets that sends half a request, before or after the handler waits for one."""
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, here)
    protocol = HttpProtocol(web.Server(answer), loop, HttpTimeouts(headers_s=0, idle_s=60))
    protocol.connection_made(transport)
    if waits_first:
        await asyncio.sleep(0)
    protocol.data_received(b"GET / HTTP/1.1\r\n")
    await asyncio.sleep(0)
    protocol.check_timeouts()
    protocol.connection_lost(None)
    transport.close()
    there.setblocking(False)
    with there:
        return await loop.sock_recv(there, 1_000)


def test_an_incomplete_request_is_answered_with_408_after_the_timeout() -> None:
    assert asyncio.run(refused(waits_first=True)).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_an_incomplete_request_that_arrives_before_the_handler_waits_is_answered_with_408() -> None:
    assert asyncio.run(refused(waits_first=False)).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
