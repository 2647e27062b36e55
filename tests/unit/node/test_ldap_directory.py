"""Queries of LDAP servers: concurrent logins share an answer, and an invalid answer never authenticates."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

import pytest

from warren.access.directory import DirectoryRefused, DirectoryUnavailable
from warren.errors import ResourceError
from warren.limits import LDAP_GROUPS_MAX, LDAP_WAITING_MAX
from warren.node.ldap_connection import LdapServer
from warren.node.ldap_directory import LdapAccount, LdapDirectory, LdapSettings

_BIND, _SEARCH, _UNBIND = 0x60, 0x63, 0x42


class HandClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        return self.at


def element(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    if len(content) < 128:
        return bytes((tag, len(content))) + content
    return bytes((tag, 0x82)) + len(content).to_bytes(2, "big") + content


def answer(number: bytes, tag: int, code: int = 0) -> bytes:
    result = element(tag, element(0x0A, bytes((code,))), element(4), element(4, b"as told"))
    return element(0x30, element(2, number), result)


def entry(number: bytes, name: str) -> bytes:
    return element(0x30, element(2, number), element(0x64, element(4, name.encode()), element(0x30)))


class FakeLdapServer:
    """An LDAP server with the answers that the test sets; `asked` are the operations that it received."""

    def __init__(self) -> None:
        self.bind_code = 0
        self.search_code = 0
        self.entries: list[str] = []
        # Sent instead of any answer.
        self.instead: bytes | None = None
        self.is_silent = False
        self.asked: list[int] = []
        self.binds: list[bytes] = []
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> LdapServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return LdapServer(host="127.0.0.1", port=self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        self.drop()

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with suppress(EOFError, OSError):
            while True:
                _, size = await reader.readexactly(2)
                if size > 128:
                    size = int.from_bytes(await reader.readexactly(size - 128), "big")
                message = await reader.readexactly(size)
                number, operation = message[2 : 2 + message[1]], message[2 + message[1]]
                self.asked.append(operation)
                self._answer(number, operation, message, writer)
        writer.close()

    def _answer(self, number: bytes, operation: int, message: bytes, writer: asyncio.StreamWriter) -> None:
        if self.is_silent or operation == _UNBIND:
            return
        if self.instead is not None:
            writer.write(self.instead)
        elif operation == _BIND:
            self.binds.append(message)
            writer.write(answer(number, 0x61, self.bind_code))
        else:
            data = b"".join(entry(number, name) for name in self.entries)
            writer.write(data + answer(number, 0x65, self.search_code))


def run(
    work: Callable[[FakeLdapServer, LdapDirectory], Coroutine[object, object, None]],
    *,
    clock: HandClock | None = None,
    **more: object,
) -> None:
    async def whole() -> None:
        ldap_server = FakeLdapServer()
        server = await ldap_server.start()
        users = LdapDirectory(LdapSettings(servers=(server,), **more), clock or HandClock())  # type: ignore[arg-type]
        async with asyncio.timeout(30):
            await work(ldap_server, users)
        await users.close()
        await ldap_server.close()

    asyncio.run(whole())


LOOKED_UP = {
    "lookup_attribute": "uid", "lookup_base": "o=x", "lookup_account": LdapAccount("cn=service", "word"),
    "groups_base": "o=x", "needs_groups": True, "groups_account": LdapAccount(),
}  # fmt: skip


def test_a_known_user_is_authenticated_and_concurrent_requests_share_the_answer() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        found = await asyncio.gather(*(users.find("u", "pw") for _ in range(5)))
        assert {person.name for person in found} == {"u"}
        assert ldap_server.asked == [_BIND]

    run(work)


def test_a_name_is_searched_then_bound_and_then_its_groups_are_searched() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.entries = ["uid=u,o=x"]
        person = await users.find("u", "pw")
        assert person.distinguished_name == "uid=u,o=x"
        assert ldap_server.asked == [_BIND, _SEARCH, _BIND, _BIND, _SEARCH]
        assert [
            b"cn=service" in ldap_server.binds[0],
            b"uid=u,o=x" in ldap_server.binds[1],
            b"pw" in ldap_server.binds[1],
        ] == [True] * 3
        assert b"pw" not in ldap_server.binds[0] + ldap_server.binds[2]
        assert ldap_server.connections == 1

    run(work, **LOOKED_UP)


def test_an_answer_is_cached_for_a_while() -> None:
    clock = HandClock()

    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        await users.find("u", "pw")
        clock.at = 99
        await users.find("u", "pw")
        assert ldap_server.asked == [_BIND]
        clock.at = 100
        ldap_server.bind_code = 49
        with pytest.raises(DirectoryRefused):
            await users.find("u", "pw")

    run(work, clock=clock, cache_ttl_ms=100)


@pytest.mark.parametrize(("name", "password"), [("u", ""), ("", "pw"), ("", "")])
def test_an_empty_name_or_password_is_not_sent(name: str, password: str) -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        with pytest.raises(DirectoryRefused):
            await users.find(name, password)
        assert ldap_server.asked == []

    run(work)


@pytest.mark.parametrize(
    ("code", "error"),
    [(49, DirectoryRefused), (32, DirectoryRefused), (53, DirectoryRefused), (51, DirectoryUnavailable),
     (1, DirectoryUnavailable), (10, DirectoryUnavailable), (13, DirectoryUnavailable)],
)  # fmt: skip
def test_only_the_result_code_success_authenticates(code: int, error: type[Exception]) -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.bind_code = code
        with pytest.raises(error, match="as told"):
            await users.find("u", "pw")

    run(work)


@pytest.mark.parametrize("names", [[], ["uid=u,o=x", "uid=u,o=y"]])
def test_a_name_must_match_exactly_one_entry(names: list[str]) -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.entries = names
        with pytest.raises(DirectoryRefused, match="the uid 'u'"):
            await users.find("u", "pw")
        # The password was not tried with any entry.
        assert ldap_server.asked == [_BIND, _SEARCH]

    run(work, **LOOKED_UP)


def test_a_failed_search_is_not_an_answer() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.entries, ldap_server.search_code = ["uid=u,o=x"], 11
        with pytest.raises(DirectoryUnavailable, match="adminLimitExceeded"):
            await users.find("u", "pw")

    run(work, **LOOKED_UP)


def test_a_user_in_too_many_groups_is_refused() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.entries = [f"cn={number}" for number in range(LDAP_GROUPS_MAX + 1)]
        with pytest.raises(DirectoryRefused, match="more than"):
            await users.find("u", "pw")

    run(work, groups_base="o=x", needs_groups=True)


def test_a_failed_bind_of_the_service_account_is_not_a_failed_login() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.bind_code = 49
        with pytest.raises(DirectoryUnavailable, match="for a bind as 'cn=service'"):
            await users.find("u", "pw")

    run(work, **LOOKED_UP)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n", b"0\x84\xff\xff\xff\xff", b"0\x80", b"0\x05\x02\x01\x63\x42\x00",
        # The success of another request.
        element(0x30, element(2, b"\x63"), element(0x61, element(10, b"\0"), element(4), element(4))),
        # A notice of disconnection.
        element(0x30, element(2, b"\0"), element(0x78, element(10, b"\0"), element(4), element(4))),
    ],
)  # fmt: skip
def test_an_invalid_answer_authenticates_no_one(data: bytes) -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.instead = data
        with pytest.raises(DirectoryUnavailable):
            await users.find("u", "pw")
        # The connection is not used again.
        ldap_server.instead = None
        await users.find("u", "pw")
        assert ldap_server.connections == 2

    run(work)


def test_a_silent_server_times_out() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.is_silent = True
        with pytest.raises(DirectoryUnavailable, match="no answer from LDAP within 50 ms"):
            await users.find("u", "pw")

    run(work, timeout_ms=50)


def test_a_closed_connection_is_replaced() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        await users.find("u", "pw")
        await users.find("v", "pw")
        assert ldap_server.connections == 1
        ldap_server.drop()
        await users.find("w", "pw")
        assert ldap_server.connections == 2

    run(work)


def test_the_number_of_connections_is_bounded() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        await asyncio.gather(*(users.find(f"u{number}", "pw") for number in range(20)))
        assert ldap_server.connections <= 3
        assert len(ldap_server.asked) == 20

    run(work, connections_max=3)


def test_more_requests_than_may_wait_are_refused() -> None:
    async def work(ldap_server: FakeLdapServer, users: LdapDirectory) -> None:
        ldap_server.is_silent = True
        waiting = [
            asyncio.ensure_future(users.find(f"u{number}", "pw")) for number in range(LDAP_WAITING_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ResourceError):
            await users.find("one more", "pw")
        await users.close()
        assert all(
            isinstance(end, asyncio.CancelledError)
            for end in await asyncio.gather(*waiting, return_exceptions=True)
        )

    run(work)


def test_an_unreachable_server_is_tried_last_for_a_while() -> None:
    async def whole() -> None:
        ldap_server = FakeLdapServer()
        server = await ldap_server.start()
        gone = FakeLdapServer()
        missing = await gone.start()
        await gone.close()
        users = LdapDirectory(LdapSettings(servers=(missing, server), cache_ttl_ms=0, idle_ms=0), HandClock())
        await users.find("u", "pw")
        await ldap_server.close()
        with pytest.raises(
            DirectoryUnavailable, match=f"{missing.port}.*{server.port}|{server.port}.*{missing.port}"
        ):
            await users.find("v", "pw")
        await users.close()

    asyncio.run(whole())
