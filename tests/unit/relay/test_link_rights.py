"""The users of links: who has a link that may run."""

import pytest

from warren.client.errors import BrokerRefused
from warren.metadata.commands import INTERNAL_USER, OPERATOR, PutUser
from warren.metadata.identity import identity_of
from warren.metadata.machine import Metadata
from warren.metadata.parameters import DELETED
from warren.metadata.proposals import LocalProposals
from warren.relay.link_rights import check_user


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    for name, tags in (("boss", ("administrator",)), ("pol", ("policymaker",)), ("al", ("management",))):
        LocalProposals(metadata, lambda: 0).apply(
            PutUser(name=name, password_hash=b"", hashing_algorithm="", tags=tags)
        )
    return metadata


@pytest.mark.parametrize("user", ["boss", "pol", OPERATOR, INTERNAL_USER, identity_of("al", "oauth2")])
def test_a_link_runs_for_who_may_set_it(metadata: Metadata, user: str) -> None:
    check_user(metadata, user)


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ("al", "user 'al', who has set it, has none of the tags administrator and policymaker any more"),
        ("gone", "user 'gone', who has set it, is deleted: it has to be set again"),
        (identity_of("boss", DELETED), "user 'boss', who has set it, is deleted: it has to be set again"),
    ],
)
def test_a_link_of_a_deleted_user_or_of_one_without_the_tag_does_not_run(
    metadata: Metadata, user: str, reason: str
) -> None:
    with pytest.raises(BrokerRefused) as caught:
        check_user(metadata, user)
    assert caught.value.text == reason
