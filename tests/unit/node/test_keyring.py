"""Keys for tokens, from files and from a key server."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from warren.limits import KEY_SET_INTERVAL_MS, KEY_SET_SIZE_MAX
from warren.limits_access import DISCOVERY_LIFETIME_MS, DISCOVERY_SIZE_MAX
from warren.node.errors import BootRefused
from warren.node.keyring import Keyring, KeyringSettings

RSA = RSAKey.generate_key(2048, {"kid": "one"})
OTHER = ECKey.generate_key("P-256", {"kid": "two"})


class HandClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        return self.at


@pytest.mark.parametrize("key", [RSA, OTHER, OKPKey.generate_key("Ed25519")], ids=["RSA", "EC", "EdDSA"])
def test_a_key_is_read_from_a_file(key: RSAKey, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(key.as_pem(private=False))
    keyring = Keyring(KeyringSettings(files={"a": str(tmp_path / "key.pem")}, default="a"), HandClock())
    found = asyncio.run(keyring.key("a"))
    assert found is not None
    assert found.as_pem(private=False) == key.as_pem(private=False)
    assert asyncio.run(keyring.key(None)) is found
    assert asyncio.run(keyring.key("b")) is None


@pytest.mark.parametrize(
    "text", [None, "", "secret", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"]
)
def test_an_invalid_key_is_refused(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BootRefused, match="cannot read a public key from"):
        Keyring(KeyringSettings(files={"a": str(path)}), HandClock())


@pytest.mark.parametrize(
    "url", ["http://keys.example.org/", "http://192.0.2.1:80/", "ftp://localhost/", "keys"]
)
def test_a_remote_key_server_must_use_https(url: str) -> None:
    with pytest.raises(BootRefused, match="must be an https address"):
        Keyring(KeyringSettings(url=url), HandClock())


def test_the_file_of_certificate_authorities_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BootRefused, match="cannot read CA certificates from"):
        Keyring(KeyringSettings(url="https://localhost/", authority_file=str(tmp_path / "none")), HandClock())


class Served:
    """A key server on this machine, and a keyring that uses it."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 200
        self.asked = 0
        # What is served about the provider.
        self.description = b""
        self.discovered = 0
        self.clock = HandClock()

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(body=self.body, status=self.status)

    def serve(self, *keys: RSAKey | ECKey) -> None:
        self.body = json.dumps(KeySet(list(keys)).as_dict(private=False)).encode()

    async def describe(self, request: web.Request) -> web.Response:
        self.discovered += 1
        return web.Response(body=self.description)

    async def start(self) -> Keyring:
        app = web.Application()
        app.router.add_get("/keys", self.answer)
        app.router.add_get("/about", self.describe)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return Keyring(KeyringSettings(url=f"{self.url}/keys"), self.clock)

    def discovering(self) -> Keyring:
        """A keyring that knows only the provider."""
        self.description = json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        return Keyring(KeyringSettings(discovery_url=f"{self.url}/about"), self.clock)


def test_concurrent_requests_share_one_answer_and_unknown_keys_are_fetched_at_intervals() -> None:
    async def work() -> None:
        served = Served()
        keyring = await served.start()
        served.serve(RSA)
        first, second = await asyncio.gather(keyring.key("one"), keyring.key("one"))
        assert first is not None
        assert first is second
        assert await keyring.key(None) is first
        assert served.asked == 1
        served.serve(RSA, OTHER)
        assert await keyring.key("two") is None
        assert served.asked == 1
        served.clock.at = KEY_SET_INTERVAL_MS
        assert await keyring.key("two") is not None
        assert served.asked == 2
        await served.runner.cleanup()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (302, b""),
        (200, b"<html>"),
        (200, b'{"keys": 5}'),
        (200, b"5"),
        (200, b"[" * 50_000),
        (200, b'{"keys": [{"kty": "OKP", "crv": "X999", "x": "AAAA"}]}'),
        (200, b" " * (KEY_SET_SIZE_MAX + 1)),
    ],
)
def test_an_error_of_the_key_server_keeps_the_known_keys(status: int, body: bytes) -> None:
    async def work() -> None:
        served = Served()
        keyring = await served.start()
        served.serve(RSA)
        found = await keyring.key("one")
        assert found is not None
        served.status, served.body = status, body
        served.clock.at = KEY_SET_INTERVAL_MS
        assert await keyring.key("stranger") is None
        assert served.asked == 2
        assert await keyring.key("one") is found
        await served.runner.cleanup()

    asyncio.run(work())


@pytest.mark.parametrize(
    "unknown",
    [{"kty": "OKP", "kid": "x", "crv": "X999", "x": "AAAA"}, {"kty": "EC", "kid": "x"}, {}, "text", 5],
)
def test_a_key_of_an_unknown_type_does_not_affect_the_others_of_its_set(unknown: object) -> None:
    async def work() -> None:
        served = Served()
        keyring = await served.start()
        served.body = json.dumps({"keys": [unknown, RSA.as_dict(private=False), unknown]}).encode()
        assert await keyring.key("one") is not None
        assert await keyring.key("x") is None
        await served.runner.cleanup()

    asyncio.run(work())


def test_a_provider_tells_the_address_of_its_keys_once_an_hour() -> None:
    async def work() -> None:
        served = Served()
        await served.start()
        keyring = served.discovering()
        served.serve(RSA)
        assert await keyring.key("one") is not None
        served.clock.at = KEY_SET_INTERVAL_MS
        assert await keyring.key("stranger") is None
        assert (served.discovered, served.asked) == (1, 2)
        served.clock.at = DISCOVERY_LIFETIME_MS
        assert await keyring.key("stranger") is None
        assert (served.discovered, served.asked) == (2, 3)
        await served.runner.cleanup()

    asyncio.run(work())


def test_a_provider_whose_keys_cannot_be_fetched_is_asked_again_where_they_are() -> None:
    async def work() -> None:
        served = Served()
        await served.start()
        keyring = served.discovering()
        served.serve(RSA)
        served.status = 404
        assert await keyring.key("one") is None
        served.status, served.clock.at = 200, KEY_SET_INTERVAL_MS
        assert await keyring.key("one") is not None
        assert served.discovered == 2
        await served.runner.cleanup()

    asyncio.run(work())


@pytest.mark.parametrize(
    "description",
    [
        b"",
        b"[]",
        b"{}",
        b'{"jwks_uri": 5}',
        b"[" * 50_000,
        b'{"jwks_uri": "http://keys.example.org/"}',
        b" " * (DISCOVERY_SIZE_MAX + 1),
    ],
)
def test_a_provider_that_tells_no_usable_address_has_no_keys(
    description: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        served = Served()
        await served.start()
        keyring = served.discovering()
        served.description = description
        assert await keyring.key("one") is None
        assert (served.discovered, served.asked) == (1, 0)
        await served.runner.cleanup()

    asyncio.run(work())
    assert "cannot fetch signing keys: " in caplog.text
