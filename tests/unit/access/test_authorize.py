"""Permissions: what each pattern allows, and the text of a refusal."""

from collections.abc import Callable

import pytest

from warren.access.authorize import Authorizer, check_vhost, expand_pattern
from warren.access.grants import UserGrants
from warren.errors import AccessRefused, NotAllowed
from warren.limits import PERMISSIONS_CACHED_MAX
from warren.metadata.commands import (
    ClearPermissions,
    PutUser,
    PutVhost,
    RemoveUser,
    SetPermissions,
    SetTopicPermissions,
)
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.model.names import ExchangeName, QueueName

Grant = Callable[[str, str, str], None]
QUEUE = QueueName("v", "theirs")


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="v"))
    local.apply(PutUser(name="u", password_hash=b"", hashing_algorithm=""))
    return metadata


@pytest.fixture
def grant(metadata: Metadata) -> Grant:
    def grant(configure: str, write: str, read: str) -> None:
        command = SetPermissions(user="u", vhost="v", configure=configure, write=write, read=read)
        LocalProposals(metadata, lambda: 0).apply(command)

    return grant


@pytest.fixture
def authorizer(metadata: Metadata) -> Authorizer:
    return Authorizer(UserGrants(metadata.permissions, "u"), metadata.users.by_name["u"], "v")


def refused(call: Callable[..., None], *arguments: object) -> str:
    with pytest.raises(AccessRefused) as caught:
        call(*arguments)
    return caught.value.message


def test_configure_write_and_read_have_a_pattern_each(authorizer: Authorizer, grant: Grant) -> None:
    grant("^c", "^w", "^r")
    authorizer.check_configure(QueueName("v", "c"))
    authorizer.check_write(QueueName("v", "w"))
    authorizer.check_read(QueueName("v", "r"))
    for call in (authorizer.check_configure, authorizer.check_write, authorizer.check_read):
        assert refused(call, QUEUE) == "access to queue 'theirs' in vhost 'v' refused for user 'u'"


def test_a_pattern_matches_anywhere_unless_it_is_anchored(authorizer: Authorizer, grant: Grant) -> None:
    grant("eir", "^eir", "")
    authorizer.check_configure(QUEUE)
    refused(authorizer.check_write, QUEUE)


def test_an_empty_pattern_allows_nothing_but_the_empty_name(authorizer: Authorizer, grant: Grant) -> None:
    grant("", "", "")
    refused(authorizer.check_read, QUEUE)
    authorizer.check_read(QueueName("v", ""))


def test_the_default_exchange_is_called_amq_default_in_permissions(
    authorizer: Authorizer, grant: Grant
) -> None:
    grant("", "^$", "")
    assert refused(authorizer.check_write_exchange, "") == (
        "access to exchange 'amq.default' in vhost 'v' refused for user 'u'"
    )
    grant("", "^amq\\.default$", "")
    authorizer.check_write_exchange("")
    assert refused(authorizer.check_write_exchange, "amq.direct") == (
        "access to exchange 'amq.direct' in vhost 'v' refused for user 'u'"
    )


def test_any_permission_allows_a_passive_declaration(authorizer: Authorizer, grant: Grant) -> None:
    for patterns in (("theirs", "", ""), ("", "theirs", ""), ("", "", "theirs")):
        grant(*patterns)
        authorizer.check_any(QUEUE)
    grant("mine", "mine", "mine")
    assert refused(authorizer.check_any, QUEUE).startswith("access to queue 'theirs'")
    refused(authorizer.check_any, ExchangeName("v", ""))


def test_without_permissions_nothing_is_allowed(authorizer: Authorizer) -> None:
    refused(authorizer.check_read_queue, "q")
    refused(authorizer.check_any, QUEUE)


def test_a_revoked_permission_has_no_effect_at_once(
    authorizer: Authorizer, grant: Grant, metadata: Metadata
) -> None:
    grant(".*", ".*", ".*")
    authorizer.check_read_queue("q")
    before = authorizer.generation
    LocalProposals(metadata, lambda: 0).apply(ClearPermissions(user="u", vhost="v"))
    assert authorizer.generation != before
    refused(authorizer.check_read_queue, "q")
    grant(".*", ".*", ".*")
    authorizer.check_read_queue("q")
    LocalProposals(metadata, lambda: 0).apply(RemoveUser(name="u"))
    refused(authorizer.check_read_queue, "q")


def test_the_number_of_cached_answers_is_bounded(authorizer: Authorizer, grant: Grant) -> None:
    grant(".*", ".*", ".*")
    for number in range(PERMISSIONS_CACHED_MAX * 3):
        authorizer.check_read_queue(f"q{number}")
        assert len(authorizer._allowed) <= PERMISSIONS_CACHED_MAX


def test_topic_permissions_expand_variables(authorizer: Authorizer, metadata: Metadata) -> None:
    authorizer.check_topic_write("amq.topic", "anything")
    LocalProposals(metadata, lambda: 0).apply(
        SetTopicPermissions(
            user="u", vhost="v", exchange="amq.topic", write="^{vhost}\\.{username}\\.", read="^r"
        )
    )
    authorizer.check_topic_write("amq.topic", "v.u.key")
    authorizer.check_topic_write("other", "x")
    authorizer.check_topic_read("amq.topic", "r")
    assert refused(authorizer.check_topic_write, "amq.topic", "v.w.key") == (
        "access to topic 'v.w.key' in exchange 'amq.topic' in vhost 'v' refused for user 'u'"
    )
    refused(authorizer.check_topic_read, "amq.topic", "x")


def test_the_value_of_a_variable_is_not_read_as_a_pattern() -> None:
    assert expand_pattern("^{username}$", {"username": ".*"}) == "^\\.\\*$"


def test_a_vhost_can_be_opened_by_users_with_permissions_in_it(metadata: Metadata, grant: Grant) -> None:
    with pytest.raises(NotAllowed) as caught:
        check_vhost(metadata, metadata.users.by_name["u"], "no-such-vhost")
    assert caught.value.message == "vhost no-such-vhost not found"
    with pytest.raises(NotAllowed) as caught:
        check_vhost(metadata, metadata.users.by_name["u"], "v")
    assert caught.value.message == "access to vhost 'v' refused for user 'u'"
    grant("", "", "")
    check_vhost(metadata, metadata.users.by_name["u"], "v")


def test_a_pattern_that_takes_too_long_allows_nothing(authorizer: Authorizer, grant: Grant) -> None:
    grant("", "", "^(a|aa)+$")
    refused(authorizer.check_read_queue, "a" * 200 + "b")
