"""The parameters of shovels over HTTP: RabbitMQ's errors, and passwords that stay hidden."""

import html
from pathlib import Path

from tests.integration.api import HttpClient
from tests.integration.broker_process import broker
from tests.oracle.parameter_cases import SHOVELS, shovel
from tests.oracle.parameter_differences import SHOVELS_OF_WARREN, answered

PLACE = "/parameters/shovel/%2f/n"
SECRET = shovel({"src-uri": "amqp://u:secret@127.0.0.1:1", "dest-uri": "amqp://127.0.0.1:1"})
HIDDEN = {**SECRET, "src-uri": "amqp://u:***@127.0.0.1:1"}


def errors_of(client: HttpClient, value: object) -> tuple[str, ...]:
    answer = client.ask(f"PUT {PLACE}", {"value": value})
    if answer.status == 201:
        assert client.status(f"DELETE {PLACE}") == 204
        return ()
    assert answer.status == 400
    assert client.status(f"GET {PLACE}") == 404
    return tuple(html.unescape(str(answer.reason)).removeprefix("Validation failed\n\n").splitlines())


def test_a_shovel_that_is_wrong_has_the_errors_of_rabbitmq_and_is_not_stored(client: HttpClient) -> None:
    found = [(changes, errors_of(client, shovel(changes))) for changes, _ in SHOVELS]
    assert found == answered(SHOVELS, SHOVELS_OF_WARREN)


def test_a_shovel_at_this_node_needs_permissions_of_its_user(client: HttpClient) -> None:
    client.ask("PUT /vhosts/w", {})
    client.ask("DELETE /permissions/w/guest")
    refusal = client.refusal(f"PUT {PLACE}", {"value": shovel({"src-uri": "amqp:///w"})})
    assert refusal == (400, 'Validation failed\n\nuser "guest" may not connect to vhost "w"\n')


def test_a_password_is_hidden_and_kept_when_the_shown_value_is_set(client: HttpClient) -> None:
    assert client.status(f"PUT {PLACE}", {"value": SECRET}) == 201
    assert [one["value"] for one in client.get("/parameters")] == [HIDDEN]
    assert client.get(PLACE)["value"] == HIDDEN
    assert client.status(f"PUT {PLACE}", {"value": {**HIDDEN, "src-queue": "other"}}) == 204
    (exported,) = client.get("/definitions")["parameters"]
    assert exported["value"] == {**SECRET, "src-queue": "other"}
    elsewhere = {**HIDDEN, "src-uri": "amqp://u:***@127.0.0.2:1"}
    text = (
        "src-uri: the password is hidden, and none that you may see is known for this user, host and virtual "
        "host: give it again"
    )
    assert client.refusal(f"PUT {PLACE}", {"value": elsewhere}) == (400, f"Validation failed\n\n{text}\n")


def test_a_refused_shovel_is_not_there_after_a_restart_and_a_password_is(tmp_path: Path) -> None:
    arguments = ("--data-dir", str(tmp_path / "data"))
    with broker(*arguments) as node:
        client = HttpClient(node)
        assert client.status("PUT /parameters/shovel/%2f/wrong", {"value": {**SECRET, "nosuch": 1}}) == 400
        assert client.status(f"PUT {PLACE}", {"value": SECRET}) == 201
        assert client.status(f"PUT {PLACE}", {"value": HIDDEN}) == 204
        client.close()
        assert node.stop() == 0
        assert not any("secret" in line for line in node.lines)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in files if b"secret" in file.read_bytes()] == []
    with broker(*arguments) as node:
        client = HttpClient(node)
        (exported,) = client.get("/definitions")["parameters"]
        assert (exported["name"], exported["value"]) == ("n", SECRET)
        client.close()


def test_a_missing_key_is_named_with_the_parameters_that_need_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept = (data / "secret.key", tmp_path / "kept.key")
    with broker("--data-dir", str(data)) as node:
        client = HttpClient(node)
        assert client.status(f"PUT {PLACE}", {"value": SECRET}) == 201
        client.close()
        assert node.stop() == 0
    kept[0].rename(kept[1])
    with broker("--data-dir", str(data)) as node:
        assert any(
            f"shovel 'n' in vhost '/': src-uri cannot be decrypted with '{kept[0]}'" in line
            for line in node.lines
        )
        client = HttpClient(node)
        (shown,) = client.get("/shovels")
        assert shown["state"] == "terminated"
        assert "src-uri: the address cannot be decrypted with the key of this node" in shown["reason"]
        client.close()
        assert node.stop() == 0
    # The file has kept what was encrypted with the old key.
    kept[1].rename(kept[0])
    with broker("--data-dir", str(data)) as node:
        assert not any("cannot be decrypted" in line for line in node.lines)
        client = HttpClient(node)
        assert client.get("/definitions")["parameters"][0]["value"] == SECRET
        client.close()
