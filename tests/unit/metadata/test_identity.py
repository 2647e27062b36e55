"""Identities: a name and who vouches for it, so that no two people are one."""

import pytest

from warren.metadata.commands import Outcome, PutUser
from warren.metadata.identity import INTERNAL, identity_of, issuer_of, shown_name
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals


@pytest.mark.parametrize("name", ["boss", "", "a\0b", "\0x\0boss"])
def test_an_identity_shows_its_name_and_its_issuer(name: str) -> None:
    identity = identity_of(name, "oauth2")
    assert (shown_name(identity), issuer_of(identity)) == (name, "oauth2")
    assert identity not in (name, identity_of(name, "ldap"))


def test_a_user_of_the_metadata_is_the_name() -> None:
    assert identity_of("boss", INTERNAL) == "boss"
    assert (shown_name("boss"), issuer_of("boss")) == ("boss", INTERNAL)


def test_no_user_of_the_metadata_has_the_identity_of_another_issuer() -> None:
    reply = LocalProposals(Metadata(), lambda: 0).apply(
        PutUser(name=identity_of("boss", "oauth2"), password_hash=b"", hashing_algorithm="")
    )
    assert reply.outcome is Outcome.REFUSED
