"""Access to every route and method of the HTTP API for each kind of user, as in RabbitMQ 3.10.8."""

import re
from collections.abc import Iterator, Mapping

import pytest
from tests.integration.api import Answer, HttpClient
from tests.integration.broker_process import broker

from warren.management.routes import ROUTES

# RabbitMQ's routes, their methods beside OPTIONS, and the required right; Warren has more of its own.
TABLE = """
/overview                                               GET             user
/cluster-name                                           GET,PUT         user PUT=administrator
/nodes                                                  GET             monitor
/nodes/*                                                GET             monitor
/nodes/*/memory                                         GET             monitor
/nodes/*/memory/relative                                GET             monitor
/nodes/*/memory/ets                                     GET             monitor
/nodes/*/memory/ets/relative                            GET             monitor
/nodes/*/memory/ets/*                                   GET             monitor
/nodes/*/memory/ets/*/relative                          GET             monitor
/extensions                                             GET             user
/all-configuration                                      GET,POST        administrator
/definitions                                            GET,POST        administrator
/definitions/VHOST                                      GET,POST        administrator
/parameters                                             GET             policies
/parameters/*                                           GET             policies
/parameters/*/VHOST                                     GET             policies
/parameters/*/VHOST/*                                   GET,PUT,DELETE  policies
/global-parameters                                      GET             global
/global-parameters/*                                    GET,PUT,DELETE  global
/policies                                               GET             vhost
/policies/VHOST                                         GET             vhost
/policies/VHOST/*                                       GET,PUT,DELETE  policies
/operator-policies                                      GET             vhost
/operator-policies/VHOST                                GET             vhost
/operator-policies/VHOST/*                              GET,PUT,DELETE  administrator
/shovels                                                GET             monitor
/shovels/VHOST                                          GET             monitor
/shovels/vhost/VHOST/*                                  GET,DELETE      monitor DELETE=policies
/shovels/vhost/VHOST/*/restart                          GET,DELETE      monitor DELETE=policies
/federation-links                                       GET             monitor
/federation-links/VHOST                                 GET             monitor
/federation-links/state/down                            GET             monitor
/federation-links/VHOST/state/down                      GET             monitor
/federation-links/vhost/VHOST/*/*/restart               GET,DELETE      monitor DELETE=policies
/vhost-limits                                           GET             visible
/vhost-limits/VHOST                                     GET             visible
/vhost-limits/VHOST/*                                   PUT,DELETE      administrator
/connections                                            GET             user
/connections/*                                          GET,DELETE      user
/connections/username/*                                 GET,DELETE      others DELETE=owned
/connections/*/channels                                 GET             user
/channels                                               GET             user
/channels/*                                             GET             user
/consumers                                              GET             user
/consumers/VHOST                                        GET             user
/stream/connections                                     GET             user
/stream/connections/VHOST                               GET             visible
/stream/connections/VHOST/*                             GET,DELETE      user
/stream/connections/VHOST/*/consumers                   GET             user
/stream/connections/VHOST/*/publishers                  GET             user
/stream/publishers                                      GET             user
/stream/publishers/VHOST                                GET             user
/stream/publishers/VHOST/*                              GET             user
/stream/consumers                                       GET             user
/stream/consumers/VHOST                                 GET             user
/exchanges                                              GET             vhost
/exchanges/VHOST                                        GET             vhost
/exchanges/VHOST/*                                      GET,PUT,DELETE  vhost
/exchanges/VHOST/*/publish                              POST            vhost
/exchanges/VHOST/*/bindings/source                      GET             vhost
/exchanges/VHOST/*/bindings/destination                 GET             vhost
/queues                                                 GET             vhost
/queues/VHOST                                           GET             vhost
/queues/VHOST/*                                         GET,PUT,DELETE  vhost
/queues/VHOST/*/bindings                                GET             vhost
/queues/VHOST/*/contents                                DELETE          vhost
/queues/VHOST/*/get                                     POST            vhost
/queues/VHOST/*/actions                                 POST            administrator
/queues/quorum/VHOST/*/status                           GET             monitor
/queues/quorum/replicas/on/*/grow                       POST            administrator
/queues/quorum/replicas/on/*/shrink                     DELETE          administrator
/queues/quorum/VHOST/*/replicas/add                     POST            administrator
/queues/quorum/VHOST/*/replicas/delete                  DELETE          administrator
/bindings                                               GET             vhost
/bindings/VHOST                                         GET             vhost
/bindings/VHOST/e/*/*/*                                 GET,POST        vhost
/bindings/VHOST/e/*/*/*/*                               GET,DELETE      vhost
/vhosts                                                 GET             user
/vhosts/VHOST                                           GET,PUT,DELETE  administrator
/vhosts/VHOST/deletion/protection                         POST,DELETE     administrator
/vhosts/VHOST/start/*                                   POST            administrator
/vhosts/VHOST/permissions                               GET             administrator
/vhosts/VHOST/topic-permissions                         GET             administrator
/vhosts/VHOST/connections                               GET             vhost
/vhosts/VHOST/channels                                  GET             vhost
/users/bulk-delete                                      POST            administrator
/users/without-permissions                              GET             administrator
/users                                                  GET             administrator
/users/*                                                GET,PUT,DELETE  administrator
/users/*/queues                                         GET             vhost
/users/*/permissions                                    GET             administrator
/users/*/topic-permissions                              GET             administrator
/user-limits                                            GET             visible
/user-limits/*                                          GET             visible
/user-limits/*/*                                        PUT,DELETE      administrator
/feature-flags                                          GET             administrator
/feature-flags/*/enable                                 PUT             administrator
/whoami                                                 GET             user
/permissions                                            GET             administrator
/permissions/VHOST/*                                    GET,PUT,DELETE  administrator
/topic-permissions                                      GET             administrator
/topic-permissions/VHOST/*                              GET,PUT,DELETE  administrator
/topic-permissions/VHOST/*/*                            GET,PUT,DELETE  administrator
/aliveness-test/VHOST                                   GET             vhost
/healthchecks/node                                      GET             user
/healthchecks/node/*                                    GET             user
/health/checks/alarms                                   GET             user
/health/checks/local-alarms                             GET             user
/health/checks/certificate-expiration/*/*               GET             user
/health/checks/port-listener/*                          GET             user
/health/checks/protocol-listener/*                      GET             user
/health/checks/virtual-hosts                            GET             user
/health/checks/losses                                   GET             monitor
/health/checks/quarantine                               GET             monitor
/health/checks/node-is-mirror-sync-critical             GET             user
/health/checks/node-is-quorum-critical                  GET             user
/health/checks/is-in-service                            GET             user
/health/checks/reached-target-cluster-size              GET             user
/health/checks/ready-to-serve-clients                   GET             user
/health/checks/below-node-connection-limit              GET             user
/health/checks/metadata-store/initialized               GET             user
/health/checks/metadata-store/initialized/with-data     GET             user
/health/checks/quorum-queues-without-elected-leaders/all-vhosts              GET  user
/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/*    GET  user
/health/checks/quorum-queues-without-elected-leaders/vhost/VHOST             GET  user
/health/checks/quorum-queues-without-elected-leaders/vhost/VHOST/pattern/*   GET  user
/auth/hash_password                                     POST            administrator
/auth/hash_password/*                                   GET             administrator
/reset                                                  DELETE          administrator
/reset/*                                                DELETE          administrator
/rebalance/queues                                       POST            administrator
/auth                                                   GET             anybody
/auth/attempts/*                                        GET,DELETE      monitor       DELETE=administrator
/auth/attempts/*/source                                 GET,DELETE      monitor       DELETE=administrator
/login                                                  POST            anybody
"""
OWN = "/warren/"
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")
# Users named after their tags, each with permissions in the virtual host `in` and in no other.
TAGS = ("none", "management", "policymaker", "monitoring", "administrator")
USERS = {
    "user": {"management", "policymaker", "monitoring", "administrator"},
    "monitor": {"monitoring", "administrator"},
    "administrator": {"administrator"},
    "global": {"policymaker", "administrator"},
    # Resources of a user that no request authenticates as; RabbitMQ answers 500 here.
    "others": {"monitoring", "administrator"},
    "owned": {"administrator"},
}
# The reasons of refusals.
WORDS = {
    "user": "Not management user",
    "monitor": "Not monitor user",
    "administrator": "Not administrator user",
    "global": "User not authorised to access object",
    "others": "User not authorised to access object",
    "owned": "User not authorised to access object",
    "policies": "User not authorised to access object",
    "vhost": "User not authorised to access virtual host",
    "visible": "User not authorised to access virtual host",
}
NOT_HERE = "Not management user"


def rows() -> dict[str, tuple[set[str], str, dict[str, str]]]:
    table = {}
    for line in TABLE.strip().splitlines():
        path, methods, right, *others = line.split()
        table[path] = (set(methods.split(",")), right, dict(other.split("=") for other in others))
    return table


def shape(path: str) -> str:
    return re.sub(r"\{[a-z_]+\}", "*", path.replace("{vhost}", "VHOST"))


def may(right: str, tag: str, vhost: str | None) -> bool:
    """Whether a user with `tag`, and permissions in `in`, may access a resource of `vhost`."""
    is_of_vhost = vhost in (None, "in") or tag == "administrator"
    if right == "anybody" or not tag:
        return right == "anybody"
    match right:
        case "vhost":
            return tag != "none" and is_of_vhost
        case "visible":
            return tag != "none" and (is_of_vhost or tag == "monitoring")
        case "policies":
            return tag in USERS["global"] and is_of_vhost
        case _:
            return tag in USERS[right]


@pytest.fixture(scope="module")
def clients() -> Iterator[Mapping[str, HttpClient]]:
    with broker() as started:
        guest = HttpClient(started)
        for vhost in ("in", "out"):
            guest.ask(f"PUT /vhosts/{vhost}")
        for tag in TAGS:
            guest.ask(f"PUT /users/{tag}", {"password": "p", "tags": tag})
            guest.ask(f"PUT /permissions/in/{tag}", {"configure": ".*", "write": ".*", "read": ".*"})
        yield {tag: HttpClient(started, f"{tag}:p") for tag in TAGS} | {"": HttpClient(started, None)}


def test_every_route_of_rabbitmq_exists_with_its_methods() -> None:
    table = rows()
    for route in ROUTES:
        if not route.path.startswith(OWN):
            assert shape(route.path) in table, route.path
            assert set(route.handlers) == table[shape(route.path)][0], route.path


@pytest.mark.parametrize("path", [route.path for route in ROUTES if not route.path.startswith(OWN)])
def test_each_user_has_the_access_that_rabbitmq_grants(clients: Mapping[str, HttpClient], path: str) -> None:
    _, right, rights = rows()[shape(path)]
    methods = {method for route in ROUTES if route.path == path for method in route.handlers}
    for vhost in ("in", "out") if "{vhost}" in path else (None,):
        target = re.sub(r"\{[a-z_]+\}", "nosuch", path.replace("{vhost}", vhost or ""))
        for method in METHODS:
            for tag, client in clients.items():
                if method not in methods:
                    assert client.ask(f"{method} {target}").status == 405
                elif not is_destructive(method, path):
                    # The body is not valid for any request.
                    body = None if method in ("GET", "DELETE") else b"{"
                    answer = client.ask(f"{method} {target}", body)
                    is_allowed = may(rights.get(method, right), tag, vhost)
                    words = NOT_HERE if tag == "none" else WORDS.get(rights.get(method, right), "")
                    check(answer, is_allowed, words if tag else "", f"{method} {target} as {tag!r}")
        check_beside(clients, target, methods)


def is_destructive(method: str, path: str) -> bool:
    """Whether the request would delete what later requests need."""
    return method == "DELETE" and path == "/vhosts/{vhost}"


def check(answer: Answer, is_allowed: bool, words: str, what: str) -> None:
    """Allowed, or refused with `words`; an unauthenticated request gets no information."""
    assert answer.status < 500 or answer.status == 503, what
    if is_allowed:
        assert answer.status != 401 or (answer.value and answer.reason not in WORDS.values()), what
    else:
        assert answer.status == 401, what
        assert (answer.reason if answer.value else "") == words, what


def check_beside(clients: Mapping[str, HttpClient], target: str, methods: set[str]) -> None:
    """OPTIONS needs no authentication, and HEAD is GET without the body."""
    answer = clients[""].ask(f"OPTIONS {target}")
    allowed = {method.strip() for method in answer.headers["allow"].split(",")}
    head = {"HEAD"} if "GET" in methods else set()
    assert (answer.status, allowed) == (200, methods | head | {"OPTIONS"})
    expected = clients["administrator"].ask(f"GET {target}").status
    assert clients["administrator"].ask(f"HEAD {target}").status == expected
