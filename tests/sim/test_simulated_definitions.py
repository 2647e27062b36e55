"""A simulated broker with a definitions file: its queues, exchanges, bindings and policies are used."""

import json

import pytest

from warren.metadata.definitions_import import import_commands
from warren.metadata.machine import Metadata
from warren.metadata.users import PasswordHash
from warren.simulation.actions import Action, Kind, draw
from warren.simulation.campaign import repeat
from warren.simulation.history import History
from warren.simulation.simulation import CLIENT_COUNT, Simulation
from warren.simulation.topology import Topology, topology_of
from warren.vhost.definitions_check import check_definitions

QUORUM, STREAM = {"x-queue-type": "quorum", "x-delivery-limit": -1}, {"x-queue-type": "stream"}


def queue(name: str, **arguments: object) -> dict[str, object]:
    entry = {"vhost": "shop", "name": name, "durable": True, "auto_delete": False}
    return {**entry, "arguments": {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}}


def exchange(name: str, type: str, **arguments: object) -> dict[str, object]:
    entry = {"vhost": "shop", "name": name, "type": type, "durable": True, "auto_delete": False}
    return {**entry, "internal": False, "arguments": arguments}


def binding(source: str, destination: str, key: str, type: str = "queue") -> dict[str, object]:
    entry = {"vhost": "shop", "source": source, "destination": destination, "destination_type": type}
    return {**entry, "routing_key": key, "arguments": {}}


DOCUMENT: dict[str, list[object]] = {
    "vhosts": [{"name": "shop"}],
    "queues": [
        queue("orders"),
        queue("short"),
        queue("capped"),
        queue("agreed", queue_type="quorum", delivery_limit=-1),
        queue("log", queue_type="stream"),
    ],
    "exchanges": [exchange("sales", "topic"), exchange("all", "fanout"), exchange("hidden", "direct")],
    "bindings": [
        binding("sales", "orders", "order.#"),
        binding("sales", "all", "*.everyone", "exchange"),
        binding("all", "agreed", ""),
        binding("all", "log", ""),
        binding("hidden", "short", "s"),
    ],
    "policies": [
        {"vhost": "shop", "name": "p", "pattern": "^short$", "definition": {"max-length": 2}},
        {"vhost": "shop", "name": "x", "pattern": "^hidden$", "apply-to": "exchanges",
         "definition": {"alternate-exchange": "all"}},
    ],
    "parameters": [
        {"vhost": "shop", "component": "operator_policy", "name": "o",
         "value": {"pattern": "^capped$", "definition": {"max-length": 2}, "apply-to": "queues"}},
    ],
}  # fmt: skip


def topology(document: object = DOCUMENT) -> Topology:
    def no_hash(_: str) -> PasswordHash:
        return PasswordHash(b"", "")

    commands = import_commands(json.loads(json.dumps(document)), no_hash)
    return topology_of(check_definitions(commands, Metadata()).complete())


def test_policies_and_operator_policies_decide_which_queues_may_drop_messages() -> None:
    keeping = {one.name: one.keeps_all for one in topology().queues}
    assert keeping == {"orders": True, "short": False, "capped": False, "agreed": True, "log": True}


@pytest.mark.parametrize(
    ("exchange", "key", "names"),
    [
        ("sales", "order.new", {"orders"}),
        ("sales", "order.everyone", {"orders", "agreed", "log"}),
        ("sales", "bill", set()),
        ("hidden", "s", {"short", "agreed", "log"}),
    ],
)
def test_messages_are_routed_by_the_exchanges_and_bindings_of_the_file(
    exchange: str, key: str, names: set[str]
) -> None:
    used = topology()
    history = History(used.queues, used.exchanges)
    for one in history.queues:
        one.defined()
    route = history.route("shop", exchange, key, {})
    assert {one.specification.name for one in route.queues} == names
    assert route.must_be_returned == (not names)
    # What reaches a queue only because another one did not get it is not certain.
    assert len(route.certain) == (1 if exchange == "hidden" else len(names))


def test_clients_use_all_of_the_file_and_its_promises_hold_in_every_run() -> None:
    streamed = 0
    for seed in range(3):
        simulation = Simulation(topology())
        actions = draw(seed, 60, CLIENT_COUNT)
        routes = [Action(Kind.ROUTE, one.client, one.queue, 2, one.seed) for one in actions[:20]]
        outcome = simulation.run([*routes, *actions])
        streamed += outcome.tally.from_streams
        assert {one.specification.name for one in simulation.history.queues if one.copies} >= {
            "orders", "short", "agreed", "log",
        }  # fmt: skip
    assert streamed > 0


def mixed(**of_broker: object) -> Topology:
    """A broker with a part of the document, whose clients expect all of it, or the other way round."""
    known, used = topology(), topology({**DOCUMENT, **of_broker})
    return Topology(definitions=used.definitions, queues=known.queues, exchanges=known.exchanges)


def test_a_policy_of_which_clients_do_not_know_is_found() -> None:
    known, used = topology({**DOCUMENT, "policies": []}), topology()
    unknown = Topology(definitions=used.definitions, queues=known.queues, exchanges=known.exchanges)
    publish = [Action(Kind.PUBLISH, 0, 1, 8, seed) for seed in range(4)]
    assert "of queue 'short' was confirmed and is lost" in repeat(unknown, publish)


def test_a_binding_that_the_broker_does_not_have_is_found() -> None:
    routes = [Action(Kind.ROUTE, 0, 0, 8, seed) for seed in range(12)]
    found = repeat(mixed(bindings=[]), routes)
    assert "is returned, and a queue should have got it" in found or "was confirmed and is lost" in found


def test_a_binding_of_which_clients_do_not_know_is_found() -> None:
    routes = [Action(Kind.ROUTE, 0, 0, 8, seed) for seed in range(12)]
    more = [*DOCUMENT["bindings"], binding("sales", "orders", "#")]
    found = repeat(mixed(bindings=more), routes)
    assert "reached no queue and was not returned" in found or "to which nobody published it" in found
