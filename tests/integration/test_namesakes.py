"""Users of a token who have the name of a user in the broker: they are other people."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, confirming, put_shovel, ready
from tests.integration.staging import StagedQuery, bodies
from tests.integration.test_tokens import FIXED, token

BOSS, SECRET = "boss", "secret"
# Rights of a policymaker on names that begin with pol, and on nothing else.
SCOPES = "rabbitmq.tag:policymaker rabbitmq.configure:%2F/pol* rabbitmq.write:%2F/pol* rabbitmq.read:%2F/pol*"
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("namesakes")
    (folder / "key.pem").write_bytes(FIXED.as_pem(private=False))
    config = folder / "warren.conf"
    config.write_text(
        "auth_backends.1 = internal\n"
        "auth_backends.2 = oauth2\n"
        "auth_oauth2.resource_server_id = rabbitmq\n"
        f"auth_oauth2.signing_keys.fixed = {folder / 'key.pem'}\n"
        "auth_oauth2.default_key = fixed\n"
        "initial_frame_max = 16384\n"
    )
    with broker("--data-dir", str(folder / "data"), config=config) as started:
        guest = HttpClient(started)
        assert guest.status(f"PUT /users/{BOSS}", {"password": "pw", "tags": "administrator"}) == 201
        assert guest.status(f"PUT /permissions/%2F/{BOSS}", EVERYTHING) == 201
        for queue in (SECRET, "polq"):
            assert guest.status(f"PUT /queues/%2F/{queue}", {"durable": True}) == 201
        assert guest.status("PUT /exchanges/%2F/polx", {"type": "fanout"}) == 201
        assert guest.status("POST /bindings/%2F/e/polx/q/polq", {}) == 201
        yield started


@pytest.fixture
def boss(node: BrokerProcess) -> HttpClient:
    """The user in the broker."""
    return HttpClient(node, f"{BOSS}:pw")


@pytest.fixture
def namesake(node: BrokerProcess) -> HttpClient:
    """The user of a token with the same name."""
    return HttpClient(node, f":{token(SCOPES, sub=BOSS)}")


@pytest.mark.parametrize("name", [BOSS, "guest"])
def test_a_shovel_of_a_token_user_never_has_the_rights_of_a_user_of_the_same_name(
    node: BrokerProcess, name: str
) -> None:
    with confirming(node.port) as channel:
        channel.queue_purge(SECRET)
        channel.basic_publish("", SECRET, b"1")
        holder = HttpClient(node, f":{token(SCOPES, sub=name)}")
        put_shovel(
            holder, f"of-{name}", src_protocol="amqp091", src_uri="amqp:///%2f", src_queue=SECRET,
            dest_protocol="amqp091", dest_uri="amqp:///%2f", dest_queue="polq",
        )  # fmt: skip
        shown = await_state(HttpClient(node), f"of-{name}", "terminated")
        assert (
            f"login of user '{name}' at this node: a link has the rights of users of the broker"
            in (shown["reason"])
        )
        assert ready(channel, SECRET) == 1
        assert HttpClient(node).status(f"DELETE /parameters/shovel/%2F/of-{name}") == 204


def test_a_token_without_a_name_takes_none_that_exists(node: BrokerProcess) -> None:
    nameless = token(SCOPES, sub="")
    assert HttpClient(node, f"{BOSS}:{nameless}").status("GET /whoami") == 401
    assert HttpClient(node, f"somebody:{nameless}").get("/whoami")["name"] == "somebody"
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1", node.port, credentials=pika.PlainCredentials(BOSS, nameless)
            )
        )


def test_connections_are_seen_and_closed_by_their_own_user(
    node: BrokerProcess, boss: HttpClient, namesake: HttpClient
) -> None:
    credentials = pika.PlainCredentials(BOSS, "pw")
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials)
    )
    connection.channel()
    (name,) = [one["name"] for one in boss.get("/connections") if one["user"] == BOSS]
    assert namesake.get("/connections") == []
    assert namesake.get("/channels") == []
    assert namesake.get(f"/connections/username/{BOSS}") == []
    assert namesake.status(f"GET /connections/{quote(name)}") == 401
    assert namesake.status(f"DELETE /connections/{quote(name)}") == 401
    assert namesake.status(f"DELETE /connections/username/{BOSS}") == 204
    connection.process_data_events()
    assert connection.is_open
    connection.close()


def test_limits_of_a_user_do_not_count_the_connections_of_a_namesake(
    node: BrokerProcess, boss: HttpClient
) -> None:
    assert boss.status(f"PUT /user-limits/{BOSS}/max-connections", {"value": 1}) == 204
    credentials = pika.PlainCredentials("", token(SCOPES, sub=BOSS))
    parameters = pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials)
    theirs = [pika.BlockingConnection(parameters) for _ in range(2)]
    mine = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, credentials=pika.PlainCredentials(BOSS, "pw"))
    )
    for one in (*theirs, mine):
        one.close()
    assert boss.status(f"DELETE /user-limits/{BOSS}/max-connections") == 204


def test_a_lease_is_read_and_ended_by_its_own_user(
    node: BrokerProcess, boss: HttpClient, namesake: HttpClient
) -> None:
    with confirming(node.port) as channel:
        channel.basic_publish("", "polq", b"1")
    path = "/warren/queues/%2F/polq/leases"
    lease = boss.ask(f"POST {path}", {"key": "k"}).value
    assert (lease["user"], lease["messages"]) == (BOSS, 1)
    assert namesake.get(path) == []
    for line in ("GET {}", "GET {}/rows", "POST {}/settle", "POST {}/renew"):
        assert namesake.status(line.format(f"/warren/leases/{lease['lease']}"), {}) == 404
    # The same key is another lease.
    assert namesake.ask(f"POST {path}", {"key": "k"}).value["lease"] is None
    assert boss.status(f"POST /warren/leases/{lease['lease']}/settle", {}) == 200


def test_a_job_is_stopped_by_its_own_user(
    node: BrokerProcess, boss: HttpClient, namesake: HttpClient
) -> None:
    with confirming(node.port) as channel:
        for _ in range(3):
            channel.basic_publish("", "polq", b"1")
    started = boss.ask("POST /warren/queues/%2F/polq/move", {"destination": SECRET, "rate": 1})
    job: dict[str, Any] = started.value
    assert job["user"] == BOSS
    assert namesake.status(f"DELETE /warren/jobs/{job['id']}") == 401
    assert namesake.status(f"POST /warren/jobs/{job['id']}/undo") == 401
    # Who has rights in the virtual host sees its jobs; the name alone shows none.
    elsewhere = HttpClient(node, f":{token('rabbitmq.tag:management', sub=BOSS)}")
    assert elsewhere.get("/warren/jobs") == []
    assert elsewhere.status(f"GET /warren/jobs/{job['id']}") == 404
    assert boss.status(f"DELETE /warren/jobs/{job['id']}") == 204


def test_staged_rows_are_replaced_committed_and_discarded_by_their_own_user(
    node: BrokerProcess, boss: HttpClient, namesake: HttpClient
) -> None:
    with confirming(node.port) as channel:
        channel.queue_purge("polq")
        mine, theirs = (StagedQuery(client, "writer", "polx") for client in (boss, namesake))
        assert mine.stage(0, 0, bodies([b"mine"], "")).status == 200
        # Another one's rows are not in the list of a user without the tag monitoring.
        assert [one["query"] for one in boss.get("/warren/staged")] == ["writer"]
        assert namesake.get("/warren/staged") == []
        rows = bodies([b"theirs"], "")
        answers = [theirs.stage(0, 0, rows), theirs.stage(0, 1, rows), theirs.commit(0, 0), theirs.commit(0)]
        answers += [theirs.discard(0), theirs.discard(0, force="true")]
        assert [answer.status for answer in answers] == [403] * len(answers)
        assert mine.commit(0, 0).value["rows"] == 1
        assert [theirs.stage(1, 0, rows).status, theirs.commit(1).status] == [403, 403]
        assert [body for _, _, body in (channel.basic_get("polq", auto_ack=True) for _ in range(2))] == [
            b"mine",
            None,
        ]


def test_a_virtual_host_of_a_token_user_grants_a_namesake_nothing(
    node: BrokerProcess, boss: HttpClient
) -> None:
    holder = HttpClient(node, f":{token('rabbitmq.tag:administrator', sub=BOSS)}")
    assert holder.status("PUT /vhosts/theirs") == 201
    assert boss.get("/vhosts/theirs/permissions") == []
    assert boss.status("DELETE /vhosts/theirs") == 204


def test_deleting_a_user_closes_no_connection_of_a_namesake(node: BrokerProcess, boss: HttpClient) -> None:
    assert boss.status("PUT /users/leaver", {"password": "pw", "tags": ""}) == 201
    credentials = pika.PlainCredentials("", token(SCOPES, sub="leaver"))
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", node.port, credentials=credentials)
    )
    channel = connection.channel()
    assert boss.status("DELETE /users/leaver") == 204
    assert channel.queue_declare("polq", durable=True, passive=True)
    connection.close()
