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


LINK_CASES = (
    Case("shovels list", (), "state"),
    Case("shovels show", ("$",), "not found: '$' in vhost '/'", status=1),
    Case("shovels create", ("$", "--file", "-"), "must be a JSON object", status=2, typed="[]"),
    Case("shovels create", ("$", "--file", "/nosuch"), "cannot be read", status=2),
    Case("shovels create", ("$", "--set", "nosuch=1"), "refused", status=1),
    Case("shovels update", ("$", "--set", "prefetch-count=1"), "not found: '$'", status=1),
    Case("shovels check", ("$",), "not found: '$' in vhost '/'", status=1),
    Case("shovels delete", ("$",), "not found: '$'", status=1),
    Case("shovels restart", ("$",), "not found: there is no shovel '$' in vhost '/'", status=1),
    Case("federation links", (), "upstream"),
    Case("federation links", ("-p", "/", "--only-down"), "upstream"),
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
