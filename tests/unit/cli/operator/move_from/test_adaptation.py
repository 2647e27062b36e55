"""What Warren gets of another broker's definitions, and the policies that federate its queues."""

from typing import Any

import pytest

from warren.cli.operator.move_from.adaptation import (
    adapt,
    added_and_changed,
    federating_policies,
    foreign_policies,
    label,
)

FEDERATE = {"federation-upstream": "move-from"}


def policy(name: str, apply_to: str, priority: int = 0, **definition: Any) -> dict[str, Any]:
    return {
        "vhost": "our store",
        "name": name,
        "pattern": ".*",
        "apply-to": apply_to,
        "priority": priority,
        "definition": {key.replace("_", "-"): value for key, value in definition.items()},
    }


@pytest.mark.parametrize("kind", ["queues", "classic_queues", "quorum_queues"])
def test_every_policy_for_queues_federates_them(kind: str) -> None:
    limit = policy("limit", kind, priority=-7, max_length=5)
    federated, everything = federating_policies([limit], ["our store"])
    assert federated == limit | {"definition": {"max-length": 5} | FEDERATE}
    assert everything == policy("move-from", "queues", priority=-8) | {"definition": FEDERATE}


def test_no_policy_federates_an_exchange_or_a_stream() -> None:
    kept = [policy("other", "exchanges", alternate_exchange="a"), policy("age", "streams", max_age="1D")]
    whole = policy("whole", "all", max_length=5)
    queues, exchanges, everything = federating_policies([*kept, whole], ["our store"])
    assert queues == policy("whole (queues)", "queues") | {"definition": {"max-length": 5} | FEDERATE}
    assert exchanges == policy("whole", "exchanges", max_length=5)
    assert everything["priority"] == -1


def test_a_divided_policy_takes_no_name_of_another() -> None:
    given = [
        policy("whole", "all", max_length=5),
        policy("whole (queues)", "exchanges", alternate_exchange="a"),
    ]
    assert federating_policies(given, ["our store"])[0]["name"] == "whole (queues)'"


def test_policies_that_federate_already_are_not_changed() -> None:
    other = policy("other", "queues", federation_upstream_set="all")
    first = federating_policies([policy("limit", "all", max_length=5), other], ["our store"])
    again = [each for each in first if each["apply-to"] != "all"]
    assert federating_policies([*again, other], ["our store"]) == []
    assert foreign_policies([*again, other], ["our store"]) == [other]


def test_each_virtual_host_has_a_policy_for_all_queues() -> None:
    elsewhere = policy("low", "queues", priority=-9, max_length=1) | {"vhost": "elsewhere"}
    made = federating_policies([elsewhere], ["/", "our store"])
    assert [(each["vhost"], each["priority"]) for each in made] == [("/", -1), ("our store", -1)]


def test_nothing_that_moves_messages_is_imported_nor_the_name_of_the_cluster() -> None:
    limits = {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 5}}
    moves: list[dict[str, Any]] = [
        {"component": component, "vhost": "/", "name": "n", "value": {}}
        for component in ("shovel", "federation-upstream", "federation-upstream-set")
    ]
    name, other = {"name": "cluster_name", "value": "theirs"}, {"name": "mqtt_default_vhosts", "value": {}}
    both = policy("both", "all", federation_upstream_set="all", max_length=5)
    only = policy("only", "exchanges", federation_upstream="n")
    adapted = adapt(
        {
            "parameters": [limits, *moves],
            "global_parameters": [name, {"name": "internal_cluster_id", "value": "x"}, other],
            "policies": [both, only],
        },
        "guest",
    )
    assert adapted.imported["parameters"] == [limits]
    assert adapted.imported["global_parameters"] == [other]
    assert adapted.imported["policies"] == [policy("both", "all", max_length=5)]
    assert adapted.withheld == {"parameters": moves, "global_parameters": [name], "policies": [both, only]}


def test_the_user_who_runs_the_move_keeps_the_password() -> None:
    users = [{"name": "guest", "password_hash": "x"}, {"name": "shopper", "password_hash": "y"}]
    rights = [{"user": "guest", "vhost": "/", "configure": "", "write": "", "read": ".*"}]
    adapted = adapt({"users": users, "permissions": rights}, "guest")
    assert adapted.imported["users"] == users[1:]
    assert adapted.imported["permissions"] == rights
    assert adapted.left_out == ["user 'guest', who runs the move: password and tags stay those of Warren"]
    assert adapt({"users": users}, "admin").left_out == []


def test_what_an_import_has_added_and_changed_is_known() -> None:
    queue = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}
    old, new = policy("limit", "queues", max_length=1), policy("limit", "queues", max_length=2)
    before = {"queues": [queue | {"arguments": {"x-queue-type": "classic"}}], "policies": [old]}
    vhost = {"name": "our store"}
    added, changed = added_and_changed(before, {"vhosts": [vhost], "queues": [queue], "policies": [new]})
    assert {section: entries for section, entries in added.items() if entries} == {"vhosts": [vhost]}
    assert {section: entries for section, entries in changed.items() if entries} == {"policies": [old]}


def test_an_entry_is_named_with_its_kind_and_virtual_host() -> None:
    binding = {"vhost": "/", "source": "sales", "destination": "cart", "routing_key": "cart.#"}
    upstream = {"vhost": "/", "component": "federation-upstream", "name": "up"}
    assert label("policies", policy("limit", "queues")) == "policy 'limit' in vhost 'our store'"
    assert label("bindings", binding) == "binding 'sales -> cart cart.#' in vhost '/'"
    assert label("parameters", upstream) == "federation-upstream 'up' in vhost '/'"
    assert label("users", {"name": "shopper"}) == "user 'shopper'"
