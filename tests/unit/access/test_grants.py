"""Permissions from a token or from the metadata, depending on how the user logged in."""

import pytest

from warren.access.authorize import Authorizer, check_vhost
from warren.access.grants import TokenGrants, TokenUser, grants_of, token_user
from warren.access.scopes import Scopes
from warren.errors import AccessRefused, NotAllowed
from warren.metadata.commands import PutUser, PutVhost, SetPermissions
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


def metadata() -> Metadata:
    found = Metadata()
    local = LocalProposals(found, lambda: 0)
    local.apply(PutVhost(name="v"))
    local.apply(PutUser(name="u", password_hash=b"", hashing_algorithm=""))
    local.apply(SetPermissions(user="u", vhost="v", configure=".*", write=".*", read=".*"))
    return found


def test_only_the_token_determines_the_permissions_of_its_bearer() -> None:
    known = metadata()
    holder = token_user("u", Scopes(["read:v/q"]), None)
    check_vhost(known, holder, "v")
    authorizer = Authorizer(grants_of(known, holder), holder, "v")
    authorizer.check_read_queue("q")
    with pytest.raises(AccessRefused):
        authorizer.check_write_exchange("q")
    with pytest.raises(NotAllowed):
        check_vhost(known, token_user("u", Scopes([]), None), "v")


def test_the_scopes_of_a_renewed_token_apply_at_once() -> None:
    holder = token_user("u", Scopes(["read:v/q"]), None)
    authorizer = Authorizer(holder.grants, holder, "v")
    authorizer.check_read_queue("q")
    generation = authorizer.generation
    holder.grants.renew(TokenGrants(Scopes(["read:v/other"])))
    assert authorizer.generation != generation
    authorizer.check_read_queue("other")
    with pytest.raises(AccessRefused):
        authorizer.check_read_queue("q")


def test_the_bearer_of_a_token_has_its_tags_and_no_password() -> None:
    holder = token_user("u", Scopes(["tag:monitoring"]), 5)
    assert isinstance(holder, TokenUser)
    assert (holder.password_hash, holder.tags, holder.expires_at) == (b"", ("monitoring",), 5)
