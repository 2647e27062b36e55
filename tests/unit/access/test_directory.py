"""Tags and permissions from the groups of a directory; names are escaped in patterns and filters."""

from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.unit.access.dependencies import finished

from warren.access.authorize import Authorizer
from warren.access.directory import (
    Directory,
    DirectoryEntry,
    DirectoryRules,
    DirectoryUser,
    GroupGrant,
    escaped_value,
    parse_distinguished_name,
    substitute_distinguished_name,
    variables,
)
from warren.errors import AccessRefused
from warren.metadata.commands import PutVhost, SetTopicPermissions
from warren.metadata.machine import Metadata
from warren.metadata.permissions import Permission
from warren.metadata.proposals import LocalProposals
from warren.model.names import QueueName

BASE = "ou=groups,dc=example,dc=org"


def user(
    name: str, groups: list[str], rules: DirectoryRules, metadata: Metadata | None = None
) -> DirectoryUser:
    async def find(asked: str, password: str) -> DirectoryEntry:
        assert (asked, password) == (name, "pw")
        return DirectoryEntry(name, f"uid={name}", frozenset(map(parse_distinguished_name, groups)))

    def ask(asked: str, password: str) -> Awaitable[DirectoryEntry]:
        return find(asked, password)

    return finished(Directory(ask, rules, metadata or Metadata()).user_of(name, "pw"))


def permission(name: str, groups: list[str], *grants: GroupGrant, vhost: str = "v") -> Permission | None:
    return user(name, groups, DirectoryRules(grants=grants)).grants.permission(vhost)


def test_tags_of_all_groups_are_given_once_each() -> None:
    rules = DirectoryRules(
        tags=(("administrator", f"cn=a,{BASE}"), ("monitoring", ""), ("administrator", f"cn=b,{BASE}"))
    )
    assert user("u", [f"cn=A, {BASE}", f"cn=b,{BASE}"], rules).tags == ("administrator", "monitoring")
    assert user("u", [f"cn=c,{BASE}"], rules).tags == ("monitoring",)


def test_without_a_rule_nothing_is_allowed() -> None:
    assert permission("u", [f"cn=a,{BASE}"]) is None
    assert permission("u", [], GroupGrant(group=f"cn=a,{BASE}")) is None


def test_the_permissions_of_several_groups_are_combined() -> None:
    found = permission(
        "u", ["cn=a", "cn=b"],
        GroupGrant(group="cn=a", permission=Permission("^a", "", "^r")),
        GroupGrant(group="cn=b", permission=Permission("^b", "", ".*")),
        GroupGrant(group="cn=c", permission=Permission(".*", ".*", ".*")),
    )  # fmt: skip
    assert found == Permission("(?:^a)|(?:^b)", "", ".*")


@pytest.mark.parametrize(
    ("pattern", "vhost", "is_open"),
    [
        ("v", "v", True), ("v", "vv", False), ("v*", "vv", True), ("*", "/", True), ("a.b", "axb", False),
        ("${username}-*", "u-1", True), ("${username}-*", "v-1", False), ("*\n", "a", False),
    ],
)  # fmt: skip
def test_the_vhost_of_a_rule_may_contain_wildcards(pattern: str, vhost: str, is_open: bool) -> None:
    assert (permission("u", [], GroupGrant(vhost=pattern), vhost=vhost) is not None) is is_open


def test_a_star_in_a_vhost_name_is_literal() -> None:
    assert permission("*", [], GroupGrant(vhost="${username}"), vhost="v") is None
    assert permission("*", [], GroupGrant(vhost="${username}"), vhost="*") is not None


def test_the_group_of_a_rule_may_contain_the_vhost_name() -> None:
    grant = GroupGrant(group=f"cn=${{vhost}}-users,{BASE}")
    assert permission("u", [f"cn=v-users,{BASE}"], grant) is not None
    assert permission("u", [f"cn=w-users,{BASE}"], grant) is None
    # A virtual host whose name is that of a group and more.
    assert permission("u", [f"cn=x,cn=v-users,{BASE}"], grant, vhost="x,cn=v") is None


def test_a_name_in_a_pattern_is_literal() -> None:
    metadata = Metadata()
    rules = DirectoryRules(grants=(GroupGrant(permission=Permission(r"^${username}\.", "", "")),))
    holder = user(".*", [], rules, metadata)
    authorizer = Authorizer(holder.grants, holder, "v")
    authorizer.check_configure(QueueName("v", ".*.1"))
    with pytest.raises(AccessRefused):
        authorizer.check_configure(QueueName("v", "other.1"))
    with pytest.raises(AccessRefused):
        authorizer.check_write(QueueName("v", ".*.1"))


def test_topic_permissions_come_from_the_metadata() -> None:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="v"))
    grants = user("u", [], DirectoryRules(grants=(GroupGrant(),)), metadata).grants
    before = grants.generation
    assert grants.topic_permission("v", "amq.topic") is None
    metadata.permissions.put_topic(
        SetTopicPermissions(user="u", vhost="v", exchange="amq.topic", write="^a", read="")
    )
    found = grants.topic_permission("v", "amq.topic")
    assert found is not None
    assert found.write == "^a"
    assert grants.generation != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cn=A,dc=B", "CN=a, DC=b"),
        ("cn=a\\2cb", "cn=a\\,b"),
        ("cn=caf\\c3\\a9", "cn=café"),
        ("cn=a\\20", "cn=a\\ "),
        ("cn=a+sn=b,o=x", "sn=b + cn=a,o=x"),
        ("cn=a;o=x", "cn=a,o=x"),
    ],
)
def test_equal_distinguished_names_are_equal_in_any_notation(one: str, other: str) -> None:
    assert parse_distinguished_name(one) == parse_distinguished_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cn=\x85a", "cn=a"),
        ("cn=a,o=x", "cn=a\\,o=x"),
        ("cn=a", "cn=b"),
        ("cn=a,o=x", "cn=a"),
        ("cn=a\\ ", "cn=a "),
    ],
)
def test_different_distinguished_names_are_not_equal(one: str, other: str) -> None:
    assert parse_distinguished_name(one) != parse_distinguished_name(other)


@given(some.text(min_size=1, max_size=20))
def test_an_escaped_name_is_one_attribute_value(name: str) -> None:
    found = parse_distinguished_name(f"uid={escaped_value(name)},{BASE}")
    assert len(found) == 4
    assert len(found[0]) == 1
    assert found[0][0] == ("uid", name.lower())
    assert found[1:] == parse_distinguished_name(BASE)


def test_a_bind_name_may_be_a_distinguished_name_or_a_principal_name() -> None:
    assert substitute_distinguished_name("${username}", variables("cn=a,o=x")) == "cn=a,o=x"
    assert substitute_distinguished_name("${ad_user}@${ad_domain}.org", variables("EX\\bob")) == "bob@EX.org"
    assert substitute_distinguished_name("uid=${username},o=x", variables("a,b")) == "uid=a\\2cb,o=x"
    assert substitute_distinguished_name("uid=${nothing}", variables("a")) == "uid=${nothing}"
