"""Users, permissions, virtual hosts and limits over HTTP, and their effect on connections."""

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess
from tests.integration.test_serve import connect

HASH = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


def test_a_user_is_created_changed_and_deleted(client: HttpClient) -> None:
    assert client.status("PUT /users/u", {"password": "p", "tags": "management, custom"}) == 201
    found = client.get("/users/u")
    assert (found["name"], found["tags"], found["limits"]) == ("u", ["management", "custom"], {})
    assert found["hashing_algorithm"] == "warren_password_hashing_argon2id"
    assert client.status("PUT /users/u", {"password_hash": HASH, "tags": ["administrator"]}) == 204
    assert client.get("/users/u?columns=tags,password_hash") == {
        "tags": ["administrator"],
        "password_hash": HASH,
    }
    assert [user["name"] for user in client.get("/users")] == ["guest", "u"]
    assert [user["name"] for user in client.get("/users/without-permissions")] == ["u"]
    assert client.status("DELETE /users/u") == 204
    assert client.status("GET /users/u") == 404
    assert client.status("DELETE /users/u") == 404


def test_a_user_with_an_imported_password_hash_can_log_in(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /users/alice", {"password_hash": HASH, "tags": "management"})
    assert HttpClient(node, "alice:test12").get("/whoami") == {"name": "alice", "tags": ["management"]}
    assert HttpClient(node, "alice:other").refusal("GET /whoami") == (401, "Login failed")
    client.ask("PUT /users/alice", {"tags": "management"})
    assert HttpClient(node, "alice:test12").refusal("GET /whoami") == (401, "Login failed")
    client.ask("DELETE /users/alice")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"password": "x"}, "tags_not_present"),
        (b"{not json", "not_json"),
        (
            b'"text"',
            "invalid payload: the request body JSON-decoded to a string. "
            "Is the input doubly-JSON-encoded?",
        ),
        ({"password": "a", "password_hash": "", "tags": ""}, "both_password_and_password_hash_are_provided"),
        ({"password_hash": "notbase64", "tags": ""}, ["not_base64", "notbase64"]),
        ({"password": 5, "tags": ""}, ["not_string", 5]),
        ({"password": "x", "administrator": 1}, ["not_boolean", 1]),
        ({"password": "x", "administrator": "maybe"}, ["not_boolean", "maybe"]),
        ({"password": "x", "tags": [5]}, ["not_tags", [5]]),
    ],
)  # fmt: skip
def test_an_invalid_user_is_refused(client: HttpClient, body: object, reason: object) -> None:
    assert client.refusal("PUT /users/bad", body) == (400, reason)
    assert client.status("GET /users/bad") == 404


def test_a_user_can_be_created_with_permissions(client: HttpClient) -> None:
    body = {"password": "p", "tags": "", "permissions": {"/": ALL | {"read": "^a"}}}
    assert client.status("PUT /users/u", body) == 201
    shown = [{"user": "u", "vhost": "/", "configure": ".*", "write": ".*", "read": "^a"}]
    assert client.get("/users/u/permissions") == shown
    # Fields that are not given stay unchanged.
    assert client.status("PUT /users/u", {"tags": "", "permissions": {}}) == 204
    assert client.get("/users/u/permissions") == shown
    client.ask("DELETE /users/u")


@pytest.mark.parametrize(
    ("permissions", "reason"),
    [
        ({"nosuch": ALL}, ["no_such_vhost", "nosuch"]),
        ({"/": ALL | {"configure": "("}}, ["invalid_regexp", [40], [list(b"missing )"), 1]]),
        # RabbitMQ answers these with 500, and creates the user.
        ({"/": {"configure": ".*", "write": ".*"}}, "[{key_missing,read}]"),
        ({"/": ALL | {"read": None}}, ["not_string", None]),
        ({"/": "x"}, ["not_object", "x"]),
        ([], ["not_object", []]),
    ],
)
def test_a_user_with_invalid_permissions_is_not_created(
    client: HttpClient, permissions: object, reason: object
) -> None:
    body = {"password": "p", "tags": "", "permissions": permissions}
    assert client.refusal("PUT /users/bad", body) == (400, reason)
    assert client.status("GET /users/bad") == 404


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ({"administrator": True}, ["administrator"]),
        ({"administrator": "true"}, ["administrator"]),
        ({"administrator": False}, []),
        ({"administrator": True, "tags": "monitoring"}, ["monitoring"]),
    ],
)
def test_an_administrator_can_be_declared_without_tags(
    client: HttpClient, body: dict[str, object], tags: list[str]
) -> None:
    assert client.status("PUT /users/u", {"password": "p", **body}) == 201
    assert client.get("/users/u")["tags"] == tags
    client.ask("DELETE /users/u")


def test_many_users_can_be_deleted_at_once(client: HttpClient) -> None:
    for name in ("a1", "a2"):
        client.ask(f"PUT /users/{name}", {"password": "p", "tags": ""})
    assert client.refusal("POST /users/bulk-delete", {"users": ["a1", "nosuch", "a2"]}) == (
        400, ["no_such_user", "nosuch"],
    )  # fmt: skip
    assert client.status("GET /users/a2") == 404
    assert client.refusal("POST /users/bulk-delete", {}) == (400, "[{key_missing,users}]")


def test_permissions_allow_and_deny_operations(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /users/bob", {"password": "p", "tags": ""})
    client.ask("PUT /vhosts/team")
    assert client.status("PUT /permissions/team/bob", ALL) == 201
    assert client.status("PUT /permissions/team/bob", ALL | {"configure": "^b"}) == 204
    expected = {"user": "bob", "vhost": "team", "configure": "^b", "write": ".*", "read": ".*"}
    assert client.get("/permissions/team/bob") == expected
    assert client.get("/users/bob/permissions") == [expected]
    assert expected in client.get("/vhosts/team/permissions")
    connection = connect(node.port, "bob", "p", "team")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        connection.channel().queue_declare("other")
    assert caught.value.reply_code == 403
    connection.close()
    assert client.status("DELETE /permissions/team/bob") == 204
    assert client.status("GET /permissions/team/bob") == 404
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        connect(node.port, "bob", "p", "team")
    assert client.refusal("PUT /permissions/team/nosuch", ALL) == (400, "vhost_or_user_not_found")
    assert client.refusal("PUT /permissions/team/bob", ALL | {"write": "("}) == (
        400, ["invalid_regexp", [40], [[ord(letter) for letter in "missing )"], 1]],
    )  # fmt: skip
    assert client.refusal("PUT /permissions/team/bob", {}) == (
        400, "[{key_missing,configure},{key_missing,write},{key_missing,read}]",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["permissions", "topic-permissions"])
@pytest.mark.parametrize("whose", ["%2f/nosuch", "nosuch/guest"])
def test_a_missing_user_is_reported_before_an_invalid_body(client: HttpClient, kind: str, whose: str) -> None:
    assert client.refusal(f"PUT /{kind}/{whose}", {}) == (400, "vhost_or_user_not_found")


def test_topic_permissions_belong_to_an_exchange(client: HttpClient) -> None:
    client.ask("PUT /users/tom", {"password": "p", "tags": ""})
    client.ask("PUT /vhosts/topics")
    one = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    assert client.status("PUT /topic-permissions/topics/tom", one) == 201
    assert client.status("PUT /topic-permissions/topics/tom", one | {"exchange": "other"}) == 204
    shown = {"user": "tom", "vhost": "topics", **one}
    assert client.get("/topic-permissions/topics/tom") == [shown, shown | {"exchange": "other"}]
    assert client.get("/users/tom/topic-permissions") == client.get("/vhosts/topics/topic-permissions")
    assert client.status("DELETE /topic-permissions/topics/tom/other") == 204
    assert client.get("/topic-permissions/topics/tom") == [shown]
    assert client.status("DELETE /topic-permissions/topics/tom") == 204
    assert client.status("GET /topic-permissions/topics/tom") == 404
    assert client.refusal("PUT /topic-permissions/topics/tom", {"write": "", "read": ""}) == (
        400, "[{key_missing,exchange}]",
    )  # fmt: skip


def test_a_vhost_is_created_with_permissions_and_deleted_with_its_connections(
    node: BrokerProcess, client: HttpClient
) -> None:
    assert client.status("PUT /vhosts/v", {"description": "d", "tags": "a,b", "tracing": True}) == 201
    found = client.get("/vhosts/v")
    assert (found["description"], found["tags"], found["tracing"]) == ("d", ["a", "b"], True)
    assert found["default_queue_type"] == "undefined"
    assert list(found["cluster_state"].values()) == ["running"]
    assert client.status("PUT /vhosts/v", {"tracing": False}) == 204
    assert client.get("/vhosts/v?columns=description,tracing") == {"description": "d", "tracing": False}
    assert client.get("/vhosts/v/permissions")[0]["user"] == "guest"
    connection = connect(node.port, vhost="v")
    assert client.status("DELETE /vhosts/v") == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        connection.process_data_events(time_limit=30)
    assert caught.value.reply_code == 320
    assert client.status("GET /vhosts/v") == 404
    assert client.refusal("PUT /vhosts/v", {"tracing": "maybe"}) == (400, ["not_boolean", "maybe"])
    bogus = client.refusal("PUT /vhosts/v", {"default_queue_type": "bogus"})
    assert bogus == (400, "bogus is not a valid queue type")
    empty = client.refusal("PUT /vhosts/v", {"default_queue_type": ""})
    assert empty == (400, "default_queue_type must not be an empty string")


def test_lists_have_pages_and_columns(client: HttpClient) -> None:
    client.ask("PUT /vhosts/p1")
    client.ask("PUT /vhosts/p2")
    query = "page=2&page_size=1&name=%5Ep.%24&use_regex=true&columns=name&sort=name&sort_reverse=true"
    assert client.get(f"/vhosts?{query}") == {
        "filtered_count": 2, "item_count": 1, "items": [{"name": "p1"}], "page": 2, "page_count": 2,
        "page_size": 1, "total_count": len(client.get("/vhosts")),
    }  # fmt: skip
    assert client.ask("GET /vhosts?page=0").value == {
        "error": "invalid_pagination_parameters",
        "reason": "Invalid pagination parameters: page number 0, page size undefined",
    }


def test_the_limits_of_a_vhost_are_enforced(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /vhosts/tight")
    assert client.status("PUT /vhost-limits/tight/max-connections", {"value": 1}) == 204
    assert client.status("PUT /vhost-limits/tight/max-queues", {"value": 1}) == 204
    expected = {"vhost": "tight", "value": {"max-connections": 1, "max-queues": 1}}
    assert client.get("/vhost-limits/tight") == [expected]
    assert client.get("/vhost-limits") == [expected]
    connection = connect(node.port, vhost="tight")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(node.port, vhost="tight")
    connection.channel().queue_declare("one")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        connection.channel().queue_declare("two")
    assert caught.value.reply_code == 406
    assert "queue limit in vhost 'tight' (1) is reached" in caught.value.reply_text
    assert client.refusal("PUT /queues/tight/two", {}) == (
        400, "cannot declare queue 'two': queue limit in vhost 'tight' (1) is reached",
    )  # fmt: skip
    assert client.status("DELETE /vhost-limits/tight/max-queues") == 204
    connection.channel().queue_declare("two")
    connection.close()
    client.ask("DELETE /vhosts/tight")
    assert client.status("GET /vhost-limits/tight") == 404


def test_a_user_can_be_created_with_limits(client: HttpClient) -> None:
    assert client.status("PUT /users/lim", {"tags": "", "limits": {"max-connections": 3}}) == 201
    assert client.status("PUT /users/lim", {"tags": "", "limits": {"max-channels": 5}}) == 204
    assert client.status("PUT /users/lim", {"tags": "", "limits": {}}) == 204
    assert client.get("/users/lim")["limits"] == {"max-connections": 3, "max-channels": 5}
    client.ask("DELETE /users/lim")
    wrong: list[object] = [None, [], "x", {"max-channels": "x"}, {"nosuch": 5}]
    for limits in wrong:
        assert client.status("PUT /users/lim", {"tags": "", "limits": limits}) == 400
        assert client.status("GET /users/lim") == 404


def test_the_limits_of_a_user_are_enforced(node: BrokerProcess, client: HttpClient) -> None:
    client.ask("PUT /users/lim", {"password": "p", "tags": ""})
    client.ask("PUT /permissions/%2f/lim", ALL)
    assert client.status("PUT /user-limits/lim/max-connections", {"value": 1}) == 204
    assert client.status("PUT /user-limits/lim/max-channels", {"value": 1}) == 204
    assert client.get("/user-limits/lim") == [
        {"user": "lim", "value": {"max-connections": 1, "max-channels": 1}}
    ]
    connection = connect(node.port, "lim", "p")
    connection.channel()
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(node.port, "lim", "p")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        connection.channel()
    assert caught.value.reply_code == 530
    assert client.status("DELETE /user-limits/lim/max-channels") == 204
    assert client.get("/users/lim?columns=limits") == {"limits": {"max-connections": 1}}
    assert client.refusal("PUT /user-limits/lim/bogus", {"value": 5}) == (
        400, 'Unrecognised terms [{<<"bogus">>,5}] in user-limits',
    )  # fmt: skip
    assert client.refusal("PUT /user-limits/lim/max-channels", {}) == (400, "[{key_missing,value}]")
    assert client.status("GET /user-limits/nosuch") == 404


def test_the_name_of_the_cluster_can_be_changed(client: HttpClient) -> None:
    assert client.status("PUT /cluster-name", {"name": "new"}) == 204
    assert client.get("/cluster-name") == {"name": "new"}
    assert client.get("/overview")["cluster_name"] == "new"
    assert client.refusal("PUT /cluster-name", {}) == (400, "[{key_missing,name}]")
