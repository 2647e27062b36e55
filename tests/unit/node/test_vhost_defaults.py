"""What new virtual hosts get by the configuration: users, operator policies and limits."""

import pytest

from warren.metadata.commands import PutUser, PutVhost, SetPermissions, SetPolicy, SetVhostLimits
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import PasswordHash
from warren.node.config import Config
from warren.node.config_file import ConfigEntry, ConfigError
from warren.node.effective_settings import MASK, effective_settings
from warren.node.vhost_defaults import VhostDefaults, vhost_defaults

FILE = {
    "default_users.alice.vhost_pattern": "^tenant",
    "default_users.alice.password": "s3cret",
    "default_users.alice.tags": "monitoring, policymaker",
    "default_users.alice.read": "^public",
    r"default_users.b\.ob.configure": "^$",
    "default_policies.operator.short.vhost_pattern": "^tenant",
    "default_policies.operator.short.queue_pattern": "^q",
    "default_policies.operator.short.apply_to": "queues",
    "default_policies.operator.short.message_ttl": "1d12h",
    "default_policies.operator.short.expires": "500",
    "default_policies.operator.short.max_length": "7",
    "default_policies.operator.short.max_length_bytes": "2MB",
    "default_policies.operator.short.classic_queues.ha_mode": "all",
    "default_limits.vhosts.1.pattern": "^tenant",
    "default_limits.vhosts.1.max_queues": "10",
    "default_limits.vhosts.1.max_connections": "20",
    "default_limits.vhosts.2.max_queues": "30",
}


def config(**settings: str) -> Config:
    return Config(
        [ConfigEntry(key, value, f"c:{line}") for line, (key, value) in enumerate(settings.items(), 1)]
    )


def read(settings: dict[str, str]) -> VhostDefaults:
    return vhost_defaults(config(**settings), lambda password: PasswordHash(password.encode(), "clear"))


def test_a_new_vhost_gets_what_patterns_of_its_name_say() -> None:
    alice = PutUser(
        name="alice", password_hash=b"s3cret", hashing_algorithm="clear", tags=("monitoring", "policymaker")
    )
    bob = PutUser(name="b.ob", password_hash=b"", hashing_algorithm="rabbit_password_hashing_sha256")
    assert read(FILE).commands("tenant-1", Metadata()) == [
        SetVhostLimits(vhost="tenant-1", limits={"max-queues": 10, "max-connections": 20}),
        SetPolicy(
            vhost="tenant-1", name="short", pattern="^q", apply_to="queues", is_operator=True,
            definition={"message-ttl": 129_600_000, "expires": 500, "max-length": 7,
                        "max-length-bytes": 2**21},
        ),
        alice,
        SetPermissions(user="alice", vhost="tenant-1", configure=".*", write=".*", read="^public"),
        bob,
        SetPermissions(user="b.ob", vhost="tenant-1", configure="^$", write=".*", read=".*"),
    ]  # fmt: skip
    assert read(FILE).commands("other", Metadata()) == [
        SetVhostLimits(vhost="other", limits={"max-queues": 30}),
        bob,
        SetPermissions(user="b.ob", vhost="other", configure="^$", write=".*", read=".*"),
    ]


def test_a_user_that_exists_keeps_its_password() -> None:
    metadata = Metadata()
    proposals = LocalProposals(metadata, lambda: 0)
    for command in (
        PutVhost(name="tenant"),
        PutUser(name="alice", password_hash=b"own", hashing_algorithm="x"),
    ):
        proposals.apply(command)
    made = [command for command in read(FILE).commands("tenant", metadata) if isinstance(command, PutUser)]
    assert [command.name for command in made] == ["b.ob"]


def test_mirroring_is_named_as_without_effect() -> None:
    assert read(FILE).warnings == (
        "c:13: default_policies.operator.short.classic_queues.ha_mode has no effect: classic queues are not "
        "mirrored",
    )
    assert read({"default_policies.operator.a.classic_queues.ha_mode": "all"}).policies == ()


def test_passwords_are_not_shown() -> None:
    rows = {row.key: row.value for row in effective_settings(config(**FILE))}
    assert rows["default_users.alice.password"] == MASK
    assert rows["default_users.alice.read"] == "^public"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("default_users.alice", "x", "c:1: unknown key 'default_users.alice'"),
        ("default_users.alice.passwort", "x", "key 'default_users.alice.passwort': it is none of"),
        ("default_users.a.read", "(", "c:1: default_users.a.read must be a regular expression, not '('"),
        ("default_policies.a.max_length", "1", "c:1: unknown key 'default_policies.a.max_length'"),
        ("default_policies.operator.a.max_len", "1", "unknown key 'default_policies.operator.a.max_len'"),
        ("default_policies.operator.a.expires", "soon", "default_policies.operator.a.expires must be a time"),
        ("default_policies.operator.a.expires", "0", "c:1: default_policies.operator.a: Validation failed"),
        ("default_policies.operator.a.max_length_bytes", "1XB", "a.max_length_bytes must be a size such as"),
        ("default_limits.vhosts.1.max_queues", "0", "max_queues must be a number from 1"),
        ("default_limits.users.1.max_queues", "1", "c:1: unknown key 'default_limits.users.1.max_queues'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({key: value})
    assert message in str(caught.value)
