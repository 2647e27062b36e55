"""Sessions of the web interface survive a kill, and ended sessions stay ended."""

import json
import signal
from contextlib import AbstractContextManager
from pathlib import Path

from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_interface import MARKED, ask, signed_in

ALICE = {"password": "first", "tags": "monitoring"}


def started(data: Path, **settings: str) -> AbstractContextManager[BrokerProcess]:
    return broker("--data-dir", str(data), **settings)


def kill(node: BrokerProcess) -> None:
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()


def sign_in(node: BrokerProcess, name: str, password: str) -> str:
    body = json.dumps({"username": name, "password": password})
    response, _ = ask(node, "POST /api/warren/session", MARKED, body)
    assert response.status == 204
    return (response.getheader("set-cookie") or "").partition(";")[0]


def who(node: BrokerProcess, cookie: str) -> str | None:
    """The user of the cookie; None if it is not valid."""
    response, body = ask(node, "GET /api/whoami", {"cookie": cookie})
    assert response.status in (200, 401)
    return str(json.loads(body)["name"]) if response.status == 200 else None


def test_a_sign_in_survives_kill_9_and_so_does_a_sign_out(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        stays, leaves = signed_in(node), signed_in(node)
        assert ask(node, "DELETE /api/warren/session", {"cookie": leaves} | MARKED)[0].status == 204
        kill(node)
    file = tmp_path / "sessions"
    assert file.stat().st_mode & 0o777 == 0o600
    token = stays.partition("=")[2]
    assert token.encode() not in file.read_bytes()
    with started(tmp_path) as node:
        assert who(node, stays) == "guest"
        assert who(node, leaves) is None
        # The restored session can change state, and can be signed out.
        assert ask(node, "PUT /api/vhosts/later", {"cookie": stays} | MARKED)[0].status == 201
        assert ask(node, "DELETE /api/warren/session", {"cookie": stays} | MARKED)[0].status == 204
        kill(node)
    with started(tmp_path) as node:
        assert who(node, stays) is None


def test_a_changed_or_removed_password_and_a_deleted_user_end_a_session(tmp_path: Path) -> None:
    changes = {
        "changed": ("PUT /users/changed", {"password": "second", "tags": "monitoring"}),
        "cleared": ("PUT /users/cleared", {"password_hash": "", "tags": "monitoring"}),
        "deleted": ("DELETE /users/deleted", None),
    }
    with started(tmp_path) as node:
        client = HttpClient(node)
        cookies = {}
        for name in ("untouched", *changes):
            assert client.status(f"PUT /users/{name}", ALICE) == 201
            cookies[name] = sign_in(node, name, "first")
        for line, body in changes.values():
            assert client.status(line, body) == 204
        # A user with the restored password is not signed in.
        assert client.status("PUT /users/deleted", ALICE) == 201
        known = {name: who(node, cookie) for name, cookie in cookies.items()}
        assert known == {"untouched": "untouched", "changed": None, "cleared": None, "deleted": None}
        kill(node)
    with started(tmp_path) as node:
        assert {name: who(node, cookie) for name, cookie in cookies.items()} == known


def test_a_damaged_session_file_ends_all_sessions_and_does_not_prevent_the_start(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        cookie = signed_in(node)
        assert node.stop() == 0
    file = tmp_path / "sessions"
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)
    with started(tmp_path) as node:
        said = f"cannot read {file}: the file is damaged; it is kept as 'sessions.unreadable'"
        assert any(said in line for line in node.lines)
        assert who(node, cookie) is None
        cookie = signed_in(node)
        assert node.stop() == 0
    with started(tmp_path) as node:
        assert who(node, cookie) == "guest"
    assert (tmp_path / "sessions.unreadable").read_bytes() == data


def test_a_session_file_of_a_newer_format_is_reported_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "sessions"
    newer = b"WRNSES" + (9).to_bytes(2, "big") + b"whatever it has, in a form that is not known yet"
    file.write_bytes(newer)
    with started(tmp_path) as node:
        assert any(f"{file}: format 9 is newer than 1" in line for line in node.lines)
        signed_in(node)
    assert file.read_bytes() != newer
    assert (tmp_path / "sessions.unreadable").read_bytes() == newer


def test_a_user_who_may_not_sign_in_any_more_is_not_signed_in(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        cookie = signed_in(node)
        kill(node)
    config = tmp_path / "rabbitmq.conf"
    config.write_text("loopback_users.guest = true\nloopback_users.other = true\n")
    with broker("--data-dir", str(tmp_path), config=config) as node:
        assert who(node, cookie) is None


def test_in_memory_a_session_ends_with_the_broker(tmp_path: Path) -> None:
    with broker() as node:
        cookie = signed_in(node)
        assert who(node, cookie) == "guest"
    with broker() as node:
        assert who(node, cookie) is None
