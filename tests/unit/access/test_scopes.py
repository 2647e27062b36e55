"""OAuth scopes and the permissions that they grant."""

import pytest

from warren.access.scopes import Scopes, ScopeSyntax
from warren.limits import TOKEN_SCOPES_MAX
from warren.limits_access import SCOPE_PATTERN_SIZE_MAX
from warren.metadata.permissions import Permission
from warren.model.patterns import matches


def allowed(scopes: Scopes, vhost: str, name: str) -> str:
    """The initials of the permissions (configure, write, read) that the scopes grant on `name`."""
    permission = scopes.permission(vhost)
    if permission is None:
        return "none"
    patterns = {"c": permission.configure, "w": permission.write, "r": permission.read}
    return "".join(letter for letter, pattern in patterns.items() if matches(pattern, name))


@pytest.mark.parametrize(
    ("words", "vhost", "name", "expected"),
    [
        (["configure:v/q"], "v", "q", "c"),
        (["configure:v/q", "write:v/q", "read:v/q"], "v", "q", "cwr"),
        (["read:v/q"], "v", "qq", ""),
        (["read:v/q"], "v", "aq", ""),
        (["read:v/q"], "w", "q", "none"),
        (["read:*/*"], "any", "thing", "r"),
        (["read:v/a*c"], "v", "abbc", "r"),
        (["read:v/a*c"], "v", "abbcd", ""),
        (["read:%2F/q"], "/", "q", "r"),
        (["read:v/a%2Fb%2A"], "v", "a/b*", "r"),
        (["read:v/a%2Fb%2A"], "v", "a/bb", ""),
        (["read:v/a.b"], "v", "axb", ""),
        (["write:v/x/key"], "v", "x", "w"),
        (["read:v"], "v", "q", "none"),
        (["read:v/a/b/c"], "v", "a", "none"),
        (["delete:v/q", "readv/q", ""], "v", "q", "none"),
        (["tag:administrator"], "v", "q", "none"),
        (["read:v/q"], "v", "q\n", ""),
    ],
)
def test_a_scope_grants_what_its_wildcards_match(
    words: list[str], vhost: str, name: str, expected: str
) -> None:
    assert allowed(Scopes(words), vhost, name) == expected


def test_a_scope_for_everything_becomes_the_cheapest_pattern() -> None:
    scopes = Scopes(["configure:*/*", "write:*/*", "read:*/*", "read:v/q"])
    assert scopes.permission("v") == Permission(".*", ".*", ".*")


def test_tag_scopes_become_tags_of_the_user() -> None:
    assert Scopes(["tag:administrator", "read:v/q", "tag:a:b"]).tags == ("administrator", "a:b")


def test_topic_patterns_come_from_scopes_whose_exchange_matches() -> None:
    scopes = Scopes(["write:v/x/a.*", "read:v/x/b", "write:v/y/*"])
    of_x = scopes.topic_permission("v", "x")
    assert [matches(of_x.write, key) for key in ("a.b", "b")] == [True, False]
    assert [matches(of_x.read, key) for key in ("a.b", "b")] == [False, True]
    of_y = scopes.topic_permission("v", "y")
    assert matches(of_y.write, "anything")
    assert not matches(of_y.read, "anything")
    assert not matches(scopes.topic_permission("w", "x").write, "a.b")


def test_a_scope_without_a_routing_key_grants_no_topic() -> None:
    assert not matches(Scopes(["write:*/*"]).topic_permission("v", "x").write, "a")
    both = Scopes(["write:*/*", "write:*/*/b"]).topic_permission("v", "x")
    assert [matches(both.write, key) for key in ("a", "b")] == [False, True]


def test_variables_are_not_expanded_in_scopes() -> None:
    assert "{username}" not in Scopes(["write:v/x/{username}"]).topic_permission("v", "x").write


def test_scopes_beyond_the_bound_are_ignored() -> None:
    scopes = Scopes([*(f"read:v/q{number}" for number in range(TOKEN_SCOPES_MAX)), "read:w/q"])
    assert scopes.permission("w") is None


@pytest.mark.parametrize(
    ("words", "vhost", "name", "expected"),
    [
        (["read:v/q[0-9]"], "v", "q1", "r"),
        (["read:v/q[0-9]"], "v", "q12", ""),
        (["read:v/q[0-9]"], "v", "aq1", ""),
        (["read:v|w/.*"], "w", "any", "r"),
        (["read:v|w/.*"], "vw", "any", "none"),
        (["read:v/a|b", "write:v/b"], "v", "b", "wr"),
        (["read:.*/%2F"], "v", "%2F", "r"),
        (["read:.*/(?!secret).*"], "v", "secret-1", ""),
        (["read:v/(a)\\1", "read:v/(b)\\1"], "v", "bb", "r"),
        (["read:v/(a)\\1", "read:v/(b)\\1"], "v", "aab", ""),
        (["read:v/a{2}"], "v", "aa", "r"),
        # What is no regular expression, or refused in one, grants nothing, and takes nothing from the others.
        (["read:v/q)|(?:.*", "read:v/ok"], "v", "other", ""),
        (["read:v/\\Qq", "read:v/ok"], "v", "ok", "r"),
        (["read:v/(q", "read:v/ok"], "v", "ok", "r"),
        (["read:v/(?i)q", "read:v/ok"], "v", "Q", ""),
        (["read:v/(?<n>q)", "read:v/(?<n>ok)"], "v", "q", "none"),
        (["read:v/(*ACCEPT)q"], "v", "q", "none"),
        (["read:v/(?#x)q"], "v", "q", "none"),
        (["read:v/" + "q" * (SCOPE_PATTERN_SIZE_MAX + 1)], "v", "q", "none"),
        (["read:v/q"], "v", "q\n", ""),
    ],
)
def test_a_scope_may_consist_of_regular_expressions_of_whole_texts(
    words: list[str], vhost: str, name: str, expected: str
) -> None:
    assert allowed(Scopes(words, ScopeSyntax.REGEX), vhost, name) == expected


@pytest.mark.parametrize("syntax", ScopeSyntax)
def test_the_virtual_host_and_claims_replace_their_names_in_braces(syntax: ScopeSyntax) -> None:
    claims = {"sub": "a.*", "list": ["x"]}
    words = ["read:t-{sub}/q", "read:v/{vhost}-{sub}", "write:v/{list}", "write:v/{other}"]
    scopes = Scopes(words, syntax, claims)
    assert allowed(scopes, "t-a.*", "q") == "r"
    assert allowed(scopes, "t-abc", "q") == "none"
    assert allowed(scopes, "v", "v-a.*") == "r"
    assert allowed(scopes, "v", "v-abc") == ""
    assert allowed(scopes, "v", "x") == ""
    topics = Scopes(["write:v/x/{vhost}.{sub}"], syntax, claims).topic_permission("v", "x")
    assert [key for key in ("v.a.*", "v.abc") if matches(topics.write, key)] == ["v.a.*"]


def test_a_regular_expression_has_no_variables_of_topic_permissions() -> None:
    topics = Scopes(["write:v/x/{username}"], ScopeSyntax.REGEX).topic_permission("v", "x")
    assert "{username}" not in topics.write.replace("\\{username}", "")
    assert matches(topics.write, "{username}")
