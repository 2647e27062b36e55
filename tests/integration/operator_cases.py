"""Cases of operator commands: what they are called with, and what they print."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One command: its arguments, its prerequisites, and a line that it prints.

    `$` stands for a unique name.
    """

    of: str
    arguments: tuple[str, ...] = ()
    prints: str = ""
    before: tuple[tuple[str, ...], ...] = ()
    status: int = 0
    typed: str = ""
    # What is printed under RabbitMQ's name instead: there a list without rows has no names of columns.
    prints_known_as: str | None = None
    # True if rabbitmqctl does not take these arguments, or does something else with them.
    is_own: bool = False


QUEUE = ("queues", "declare", "$")
USER = ("users", "add", "$", "secret")
QUORUM = ("queues", "declare", "$", "--type", "quorum")
LINK_CASES = (
    Case("shovels list", (), "state", prints_known_as=""),
    Case("shovels show", ("$",), "not found: '$' in vhost '/'", status=1),
    Case("shovels create", ("$", "--file", "-"), "must be a JSON object", status=2, typed="[]"),
    Case("shovels create", ("$", "--file", "/nosuch"), "cannot be read", status=2),
    Case("shovels create", ("$", "--set", "nosuch=1"), "refused", status=1),
    Case("shovels update", ("$", "--set", "prefetch-count=1"), "not found: '$'", status=1),
    Case("shovels check", ("$",), "not found: '$' in vhost '/'", status=1),
    Case("shovels delete", ("$",), "not found: '$'", status=1),
    Case("shovels restart", ("$",), "not found: there is no shovel '$' in vhost '/'", status=1),
    Case("federation links", (), "upstream", prints_known_as=""),
    Case("federation links", ("-p", "/", "--only-down"), "upstream", prints_known_as=""),
    Case("move-from", ("amqp://guest:guest@127.0.0.1:1",), "take the links to the old broker away"),
    Case("move-from", ("http://guest:guest@127.0.0.1",), "URI is amqp://USER:PASSWORD@HOST", status=2),
    Case("move-from", ("amqp://guest:guest@127.0.0.1:1", "--undo"), "nothing to undo", status=1),
    Case("federation restart", ("$",), "not found: '$'", status=1),
    Case("federation explain", ("amq.topic",), "cannot run", status=1),
    Case("federation explain", ("$", "--queue"), "there is no such queue", status=1),
    Case("federation upstreams", (), "definition"),
    Case("federation upstreams", ("-p", "/"), "definition"),
    Case("federation show-upstream", ("$",), "not found: '$'", status=1),
    Case("federation set-upstream", ("$", "amqp://", "--set", "nosuch=1"), "refused", status=1),
    Case("federation set-upstream", ("$", "--file", "-"), "must be a JSON object", status=2, typed="[]"),
    Case("federation delete-upstream", ("$",), "not found: '$'", status=1),
    Case("federation sets", (), "definition"),
    Case("federation set-upstream-set", ("$", '[{"nosuch": 1}]'), "refused", status=1),
    Case("federation delete-upstream-set", ("$",), "not found: '$'", status=1),
)
REPLICA_CASES = (
    Case("queues quorum-status", ("$",), "voter", (QUORUM,)),
    Case("queues quorum-status", ("$",), "Cannot get quorum status of a classic queue", (QUEUE,), status=1),
    Case("queues add-member", ("$", "nowhere"), "the cluster has no node 'nowhere'", (QUORUM,), status=1),
    Case("queues delete-member", ("$", "nowhere"), "the cluster has no node 'nowhere'", (QUORUM,), status=1),
    Case("queues grow", ("nowhere", "all"), "the cluster has no node 'nowhere'", status=1),
    Case("queues shrink", ("nowhere",), "the cluster has no node 'nowhere'", status=1),
    Case("queues rebalance", ("quorum", "--queue-pattern", "^$"), "quorum queues", (QUORUM,)),
    Case("queues rebalance", ("stream",), "only quorum queues have leaders"),
    Case("health quorum-critical", (), "all quorum queues have a majority without this node"),
)
LOG_CASES = (
    Case("log show", (), "<standard error>"),
    Case("log set-level", ("debug",), "level of all categories set to debug"),
    Case("log set-level", ("info", "--category", "connection"), "level of connection set to info"),
    Case("log set-level", ("info", "--category", "nothing"), "no such category", status=1),
    Case("log rotate", (), "rotated"),
)
# Their sentences under RabbitMQ's names are those of RabbitMQ.
ACCOUNT_CASES = (
    Case("users list", (), "$", (USER,)),
    Case("users show", ("$",), "warren_password_hashing_argon2id", (USER,)),
    Case("users add", ("$", "secret", "--tags", "monitoring"), "user $: added"),
    Case("users add", ("$",), "user $: added", typed="typed\n"),
    Case("users delete", ("$",), "user $: removed", (USER,)),
    Case("users delete", ("$",), "not found: there is no user '$'", status=1),
    Case("users change-password", ("$", "other"), "user $: password changed", (USER,)),
    Case("users clear-password", ("$",), "user $: password removed", (USER,)),
    Case("users set-tags", ("$", "monitoring", "x"), "user $: tags are monitoring,x", (USER,)),
    Case("users permissions", ("$",), "^p", (USER, ("permissions", "set", "$", "^p", "", ""))),
    Case("users authenticate", ("$", "secret"), "credentials accepted; tags: none", (USER,)),
    Case("users authenticate", ("$",), "credentials accepted", (USER,), typed="secret\n"),
    Case(
        "users add",
        ("$", "secret"),
        "user '$' exists",
        (USER,),
        status=1,
        prints_known_as='User "$" already exists',
    ),
    Case(
        "users authenticate",
        ("$", "wrong"),
        "refuses this user name",
        (USER,),
        status=1,
        prints_known_as='failed to authenticate user "$"',
    ),
)
