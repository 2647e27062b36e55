"""Shovels and upstreams in files of the node are the operator's: their local ends may do everything."""

import json
from pathlib import Path

from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker, refusal
from tests.integration.shovels import await_state, confirming, ready, shovels, wait_until

ADVANCED = """[{rabbitmq_shovel, [{shovels, [{classic,
  [{source, [{uris, ["amqp://"]}, {declarations, [{'queue.declare', [{queue, <<"from">>}, durable]}]},
             {queue, <<"from">>}]},
   {destination, [{uris, ["amqp:///%2f"]}, {declarations, [{'queue.declare', [{queue, <<"to">>}]}]},
                  {publish_fields, [{exchange, <<>>}, {routing_key, <<"to">>}]}]}]}]}]}]."""
LOCAL = {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
DEFINITIONS = {
    "vhosts": [{"name": "/"}],
    "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "parameters": [
        {"vhost": "/", "component": "shovel", "name": "s", "value": LOCAL},
        {"vhost": "/", "component": "federation-upstream", "name": "up", "value": {"uri": "amqp:///%2f"}},
    ],
    "policies": [
        {
            "vhost": "/", "name": "p", "pattern": "^fed$", "apply-to": "queues",
            "definition": {"federation-upstream": "up"}, "priority": 0,
        }
    ],
    "queues": [{"vhost": "/", "name": "fed", "durable": True, "auto_delete": False, "arguments": {}}],
}  # fmt: skip


def users(client: HttpClient) -> set[str]:
    """The users of the connections of the node to itself."""
    return {one["user"] for one in client.get("/connections") if one["protocol"] == "Direct 0-9-1"}


def test_a_shovel_of_advanced_config_runs_without_a_user(tmp_path: Path) -> None:
    (tmp_path / "advanced.config").write_text(ADVANCED)
    (tmp_path / "rabbitmq.conf").write_text("# beside it\n")
    with broker(config=tmp_path / "rabbitmq.conf") as node, confirming(node.port) as channel:
        client = HttpClient(node)
        shown = await_state(client, "classic", "running")
        assert (shown["type"], shown["src_queue"], shown["src_uri"]) == ("static", "from", "amqp://")
        assert users(client) == {"none"}
        channel.basic_publish("", "from", b"m")
        wait_until(lambda: ready(channel, "to") == 1)
        client.close()


def test_shovels_and_upstreams_of_a_definitions_file_run_without_a_user(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(DEFINITIONS))
    with broker("--load-definitions", str(file)) as node, confirming(node.port) as channel:
        client = HttpClient(node)
        await_state(client, "s", "running")
        wait_until(lambda: [one["status"] for one in client.get("/federation-links")] == ["running"])
        assert users(client) == {"none"}
        channel.basic_publish("", "a", b"m")
        wait_until(lambda: ready(channel, "b") == 1)
        # Over HTTP, the same document is of the user who imports it, who has no rights here.
        client.ask("PUT /users/importer", {"password": "secret", "tags": "administrator"})
        importer = HttpClient(node, "importer:secret")
        assert importer.status("POST /definitions", {"parameters": DEFINITIONS["parameters"]}) == 204
        assert "'importer'" in await_state(client, "s", "terminated")["reason"]
        importer.close()
        client.close()


def test_a_user_with_the_name_of_the_operator_or_of_the_node_has_its_own_rights(
    node: BrokerProcess, client: HttpClient
) -> None:
    for name in ("none", "rmq-internal"):
        client.ask(f"PUT /users/{name}", {"password": "secret", "tags": "policymaker"})
        client.ask(f"PUT /permissions/%2F/{name}", {"configure": "", "write": "", "read": ""})
        maker = HttpClient(node, f"{name}:secret")
        path = f"PUT /parameters/shovel/%2F/of-{name}"
        assert maker.status(path, {"value": LOCAL}) == 201
        maker.close()
        assert "ACCESS_REFUSED" in await_state(client, f"of-{name}", "terminated")["reason"]
        assert client.status(f"DELETE /shovels/vhost/%2F/of-{name}") == 204
        assert client.status(f"DELETE /users/{name}") == 204
    assert shovels(client) == {}


def test_a_wrong_shovel_of_advanced_config_refuses_the_start_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("# beside it\n")
    file = tmp_path / "advanced.config"
    for old, new, text in (
        ("]}].", "]}", f"{file}:5:"),
        ('"amqp://"', '"http://u:secret@h"', f"{file}: shovel 'classic': source: "),
        ("{source, [", "{source, [{protocol, amqp10}, ", "AMQP 1.0 is not supported"),
    ):
        file.write_text(ADVANCED.replace(old, new))
        status, errors = refusal("--config", str(tmp_path / "rabbitmq.conf"))
        assert status == 1
        assert text in errors
        assert "secret" not in errors
